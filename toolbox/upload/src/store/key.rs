//! The key of a store: from the environment, or from a file. Never printed.

use rusty_s3::Credentials;
use throng::settings::ObjectStoreSettings;

use super::StoreError;

/// `environment` looks a variable up.
pub(super) fn find(
    settings: &ObjectStoreSettings,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Credentials, StoreError> {
    if let (Some(id), Some(secret)) = (environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY")) {
        return Ok(match environment("AWS_SESSION_TOKEN") {
            Some(token) => Credentials::new_with_token(id, secret, token),
            None => Credentials::new(id, secret),
        });
    }
    let file = settings.key_file.as_ref().ok_or(StoreError::NoKey)?;
    let wrong = |cause: String| StoreError::KeyFile { file: file.clone(), cause };
    let text = std::fs::read_to_string(file).map_err(|cause| wrong(cause.to_string()))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match (lines.next(), lines.next(), lines.next()) {
        (Some(id), Some(secret), None) => Ok(Credentials::new(id, secret)),
        _ => Err(wrong("has to have two lines: the key's id, and its secret".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_the_file_and_a_key_is_two_lines() {
        let file = std::env::temp_dir().join(format!("throng-store-key-{}", std::process::id()));
        let settings = ObjectStoreSettings { key_file: Some(file.clone()), ..ObjectStoreSettings::default() };
        let id = |settings, environment: fn(&str) -> Option<String>| {
            find(settings, environment).map(|key| key.key().to_owned()).map_err(|error| error.to_string())
        };
        assert!(id(&settings, |_| None).unwrap_err().contains(&file.display().to_string()));
        std::fs::write(&file, "ID\n\nSECRET\n").unwrap();
        assert_eq!(id(&settings, |_| None).unwrap(), "ID");
        assert_eq!(id(&settings, |name| name.starts_with("AWS").then(|| "other".into())).unwrap(), "other");
        std::fs::write(&file, "ID SECRET\n").unwrap();
        assert!(id(&settings, |_| None).unwrap_err().contains("two lines"));
        std::fs::remove_file(file).unwrap();
        assert!(id(&ObjectStoreSettings::default(), |_| None).unwrap_err().contains("AWS_ACCESS_KEY_ID"));
    }
}
