//! Settings and the private key, as every command takes them: `--config` for both, `THRONG_PRIVATE_KEY` for the key.

use std::path::Path;

use throng::settings::{PRIVATE_KEY_VARIABLE, SecretKey, Settings, SettingsError};

/// The settings in a file, or defaults for everything.
pub fn settings(config: Option<&Path>) -> Result<Settings, SettingsError> {
    config.map_or_else(|| Ok(Settings::default()), Settings::load)
}

/// The private key that the operator gave, if one.
pub fn given(settings: &Settings) -> Result<Option<SecretKey>, SettingsError> {
    settings.server.private_key(|name| std::env::var(name).ok())
}

/// The server's private key for a command that can do nothing without it; `reason` says why not.
pub fn of_the_server(settings: &Settings, reason: &str) -> Result<SecretKey, Box<dyn std::error::Error>> {
    let missing = || {
        format!(
            "no private key: {reason}; set {PRIVATE_KEY_VARIABLE} to the same 64 hexadecimal digits as the server's, or give \
             --config with [server] private_key_file"
        )
    };
    Ok(given(settings)?.ok_or_else(missing)?)
}
