//! The HTTP client of all that is sent: time-outs, TLS, and what becomes of an answer.

use std::{sync::Arc, time::Duration};

use rustls::crypto::aws_lc_rs;
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig, TlsProvider},
};

/// For a connection to be there (s).
const CONNECT_S_MAX: u64 = 5;

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "no certificate authority is known on this host, so that no server can be trusted: {0}; install ca-certificates, or \
         name a file of them in SSL_CERT_FILE"
    )]
    NoAuthorities(String),
}

/// A client whose requests end after `request_s_max`, whatever the other side does. Answers of any status are answers.
/// `https`: whether it will speak TLS; then the host's certificate authorities are read.
pub(crate) fn client(request_s_max: u64, https: bool) -> Result<Agent, ClientError> {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(if https { authorities()? } else { Vec::new() })))
        .build();
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(concat!("throng/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(CONNECT_S_MAX)))
        .timeout_global(Some(Duration::from_secs(request_s_max)))
        .tls_config(tls);
    Ok(config.build().new_agent())
}

fn authorities() -> Result<Vec<Certificate<'static>>, ClientError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(ClientError::NoAuthorities(errors.join(", ")));
    }
    Ok(found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}
