//! A key as an operator writes it: 64 hexadecimal digits. The private key stands in a setting, a file or the
//! environment; the keys of the admin port are read from their own file (`throng_admin::access`).
//!
//! Never printed: `Debug` hides it and no error quotes it, because errors end up in logs and tickets.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use throng_net::protocol::PrivateKey;

use super::SettingsError;

/// The environment variable that wins over the file: other users cannot read it, unlike a command line.
pub const PRIVATE_KEY_VARIABLE: &str = "THRONG_PRIVATE_KEY";

/// A key of 32 bytes that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key as the network takes it.
    pub fn to_private_key(&self) -> PrivateKey {
        PrivateKey::new(self.0)
    }

    /// The 32 bytes, for whoever compares or sends them; they are not for showing.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 digits, as [`from_hex`](Self::from_hex) reads them, for whoever hands the key out or shows it to a server.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads 64 hexadecimal digits, white space around them allowed. The error says what is wrong, not the key.
    pub fn from_hex(text: &str) -> Result<Self, String> {
        const FIX: &str = "a private key is 64 hexadecimal digits; make one with `openssl rand -hex 32`";
        let text = text.trim();
        let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        let digits = digits.ok_or_else(|| format!("has characters that are not hexadecimal digits; {FIX}"))?;
        if digits.len() != 64 {
            return Err(format!("has {} digits; {FIX}", digits.len()));
        }
        let key = std::array::from_fn(|i| digits[2 * i] << 4 | digits[2 * i + 1]);
        // What a placeholder looks like, and the first guess of a stranger.
        if key == [0; 32] {
            return Err(format!("is all zeros, which anybody can guess; {FIX}"));
        }
        Ok(Self(key))
    }

    pub(super) fn from_environment(text: &str) -> Result<Self, SettingsError> {
        let place = format!("environment variable {PRIVATE_KEY_VARIABLE}");
        Self::from_hex(text).map_err(|reason| SettingsError::Key { place, reason })
    }

    pub(super) fn from_file(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path).map_err(|cause| SettingsError::Key {
            place: format!("private_key_file {}", path.display()),
            reason: format!("cannot be read: {cause}; make it with `openssl rand -hex 32 > {}`", path.display()),
        })?;
        let place = format!("private_key_file {}", path.display());
        Self::from_hex(&text).map_err(|reason| SettingsError::Key { place, reason })
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretKey(hidden)")
    }
}

impl<'de> Deserialize<'de> for SecretKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::from_hex(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}
