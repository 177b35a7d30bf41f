//! The certificates by which browsers know the server: the operator's, from two files in PEM, or, for WebTransport on this
//! host alone, one of its own for a few days.
//!
//! A browser speaks QUIC with nobody whose certificate it cannot judge. What it takes without an authority is a certificate
//! whose hash the page names, if it has a key of P-256 and is good for no longer than 14 days; so that one is made anew
//! long before ([`RENEWED_AFTER`]).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use time::OffsetDateTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{
    self, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem, pem::PemObject},
};
use web_transport_quinn::crypto::sha256;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Whoever got the hash of the last one, and comes with it, has as long as there is between this and its end.
pub(crate) const RENEWED_AFTER: Duration = DAY.saturating_mul(6);
const GOOD_FOR: Duration = DAY.saturating_mul(12);
/// For browsers whose clock is slow.
const GOOD_BEFORE: Duration = DAY;
const _: () = assert!(GOOD_FOR.as_secs() + GOOD_BEFORE.as_secs() < 14 * DAY.as_secs());

/// Why there is no TLS. The texts name the setting to change.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("[browser] {key}: {file} cannot be read as PEM: {cause}", file = .file.display())]
    Unreadable { key: &'static str, file: PathBuf, cause: pem::Error },
    #[error(
        "[browser] certificate_file {chain} and certificate_key_file {key} do not work together: {cause}",
        chain = .chain.display(),
        key = .key.display()
    )]
    Refused { chain: PathBuf, key: PathBuf, cause: rustls::Error },
    #[error(
        "a certificate for WebTransport cannot be made: {0}; name one in [browser] certificate_file, or set web_transport_address to \"off\""
    )]
    Unmade(String),
}

/// The operator's certificate and key.
pub(crate) struct Named {
    chain_file: PathBuf,
    key_file: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Named {
    /// Reads both; a new certificate takes a restart.
    pub fn load(chain_file: &Path, key_file: &Path) -> Result<Self, CertificateError> {
        let unreadable = |key, file: &Path| {
            let file = file.to_owned();
            move |cause| CertificateError::Unreadable { key, file, cause }
        };
        let chain = CertificateDer::pem_file_iter(chain_file)
            .and_then(Iterator::collect)
            .map_err(unreadable("certificate_file", chain_file))?;
        let key = PrivateKeyDer::from_pem_file(key_file).map_err(unreadable("certificate_key_file", key_file))?;
        Ok(Self { chain_file: chain_file.to_owned(), key_file: key_file.to_owned(), chain, key })
    }

    /// For pages and WebSockets.
    pub fn tls(&self) -> Result<TlsAcceptor, CertificateError> {
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth());
        let config = builder.and_then(|builder| builder.with_single_cert(self.chain.clone(), self.key.clone_key()));
        Ok(TlsAcceptor::from(Arc::new(config.map_err(|cause| self.refused(cause))?)))
    }

    /// For WebTransport.
    pub fn quic(&self) -> Result<ServerConfig, CertificateError> {
        quic(self.chain.clone(), self.key.clone_key()).map_err(|cause| self.refused(cause))
    }

    fn refused(&self, cause: rustls::Error) -> CertificateError {
        CertificateError::Refused { chain: self.chain_file.clone(), key: self.key_file.clone(), cause }
    }
}

/// A certificate that this server has made for itself.
pub(crate) struct ShortLived {
    pub config: ServerConfig,
    /// SHA-256 of the certificate, by which a page has its browser know it.
    pub hash: [u8; 32],
}

impl ShortLived {
    /// For one address, as of now.
    pub fn make(address: IpAddr) -> Result<Self, CertificateError> {
        let unmade = |cause: &dyn std::fmt::Display| CertificateError::Unmade(cause.to_string());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|cause| unmade(&cause))?;
        let names = vec![address.to_string(), "localhost".to_owned()];
        let mut about = CertificateParams::new(names).map_err(|cause| unmade(&cause))?;
        let now = OffsetDateTime::now_utc();
        (about.not_before, about.not_after) = (now - GOOD_BEFORE, now + GOOD_FOR);
        let certificate = about.self_signed(&key).map_err(|cause| unmade(&cause))?;
        let digest = sha256(&Arc::new(aws_lc_rs::default_provider()), certificate.der());
        let hash = digest.as_ref().try_into().expect("SHA-256 has 32 bytes");
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = quic(vec![certificate.der().clone()], private).map_err(|cause| unmade(&cause))?;
        Ok(Self { config, hash })
    }
}

/// QUIC knows TLS 1.3 alone, and HTTP/3 by its name.
fn quic(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![web_transport_quinn::ALPN.into()];
    Ok(config)
}
