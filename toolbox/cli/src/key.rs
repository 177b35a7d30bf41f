//! Settings and the private key, as a command takes them that knows a server: `--config`, or `throng.toml` in the working
//! folder, for both, `THRONG_PRIVATE_KEY` for the key.

use std::path::PathBuf;

use clap::Args;
use throng::settings::{AnySection, PRIVATE_KEY_VARIABLE, SecretKey, Settings, SettingsError};

/// Where a command finds the settings and the key of the server that it is about.
#[derive(Args)]
pub struct KeyArguments {
    /// Settings that hold protocol id and private key; without it `throng.toml` here, if there is one. The key may also
    /// come from THRONG_PRIVATE_KEY.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl KeyArguments {
    /// Both, for a command that can do nothing without the key; `reason` says why not.
    pub fn settings_and_key(&self, reason: &str) -> Result<(Settings, SecretKey), Box<dyn std::error::Error>> {
        let (settings, AnySection {}) = Settings::find(self.config.as_deref())?;
        let missing = || {
            format!(
                "no private key: {reason}; set {PRIVATE_KEY_VARIABLE} to the same 64 hexadecimal digits as the server's, or give \
                 --config with [server] private_key_file"
            )
        };
        let key = given(&settings)?.ok_or_else(missing)?;
        Ok((settings, key))
    }
}

/// The private key that the operator gave, if one.
pub fn given(settings: &Settings) -> Result<Option<SecretKey>, SettingsError> {
    settings.server.private_key(|name| std::env::var(name).ok())
}
