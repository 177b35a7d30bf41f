//! Keys: who is who at this port.
//!
//! ```text
//! # NAME      ROLE     KEY, 64 hexadecimal digits
//! alice       operate  5e0c...
//! prometheus  observe  91aa...
//! ```
//!
//! A file of keys is for its owner alone: one that others may read, or that somebody else could write, is refused. The
//! keys of whoever asks are read from such a file too ([`read_key`]). No error quotes what stands in a line.
//!
//! Runs once, when a server or a command starts.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use throng::settings::SecretKey;
use throng_platform::{process, random};

use super::Role;

/// The environment variable that a command takes its key from: other users cannot read it, unlike a command line.
pub const ADMIN_KEY_VARIABLE: &str = "THRONG_ADMIN_KEY";

/// Each request with a key is compared with all of them.
pub const KEYS_MAX: usize = 64;
/// In every audit line of its owner.
pub const NAME_CHARACTERS_MAX: usize = 32;
/// What [`KEYS_MAX`] lines and a comment for each take, several times over.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A key with its owner. `Debug` hides the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    name: String,
    role: Role,
    secret: SecretKey,
}

impl AccessKey {
    /// A new random key. The error says what is wrong with the name.
    pub fn generate(name: &str, role: Role) -> Result<Self, String> {
        Self::new(name, role, SecretKey::new(random::seed()))
    }

    fn new(name: &str, role: Role, secret: SecretKey) -> Result<Self, String> {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.chars().all(is_plain) {
            return Err(format!("a name has 1 to {NAME_CHARACTERS_MAX} letters, digits, `.`, `_` and `-`"));
        }
        Ok(Self { name: name.to_owned(), role, secret })
    }

    /// Whose it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether `shown` is this key. Takes as long for one as for another.
    pub(crate) fn is(&self, shown: &SecretKey) -> bool {
        verify_slices_are_equal(self.secret.as_bytes(), shown.as_bytes()).is_ok()
    }

    /// As a line of a file of keys: this is the key itself, for its file and its owner.
    pub fn to_line(&self) -> String {
        format!("{} {} {}", self.name, self.role, self.secret.to_hex())
    }

    fn from_line(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, role, secret] = words[..] else {
            return Err(format!("has {} words; a line is NAME ROLE KEY", words.len()));
        };
        Self::new(name, role.parse()?, secret_of(secret)?)
    }
}

/// The keys of one server.
#[derive(Clone, Debug, Default)]
pub struct AccessKeys(Vec<AccessKey>);

/// What is wrong with a file of keys: a line of text for each mistake, with file and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeysError(String);

impl AccessKeys {
    /// Reads a server's file. All of its mistakes are in the error, in the order of their lines.
    pub fn load(path: &Path) -> Result<Self, KeysError> {
        Self::parse(&path.display().to_string(), &read_private(path)?)
    }

    /// As [`load`](Self::load), from text already in memory; `file` is the name that mistakes show.
    pub fn parse(file: &str, text: &str) -> Result<Self, KeysError> {
        let mut keys: Vec<AccessKey> = Vec::new();
        let mut mistakes = Vec::new();
        for (number, line) in meant_lines(text) {
            match AccessKey::from_line(line).and_then(|key| beside(&keys, key)) {
                Ok(key) => keys.push(key),
                Err(reason) => mistakes.push(format!("{file}:{number}: {reason}")),
            }
        }
        if keys.is_empty() && mistakes.is_empty() {
            mistakes.push(format!("{file}: holds no key; `throng admin-key NAME ROLE` makes a line of it"));
        }
        if mistakes.is_empty() { Ok(Self(keys)) } else { Err(KeysError(mistakes.join("\n"))) }
    }

    /// These alone.
    pub(crate) fn only(key: AccessKey) -> Self {
        Self(vec![key])
    }

    /// Whose key this is. Takes as long for one as for another, and for a wrong one.
    pub(crate) fn find(&self, shown: &SecretKey) -> Option<&AccessKey> {
        let mut found = None;
        for key in &self.0 {
            if key.is(shown) {
                found = Some(key);
            }
        }
        found
    }
}

/// The key, if it can stand beside `others`.
fn beside(others: &[AccessKey], key: AccessKey) -> Result<AccessKey, String> {
    if others.len() == KEYS_MAX {
        return Err(format!("is one too many; there may be {KEYS_MAX} keys"));
    }
    match others.iter().find(|other| other.name == key.name || other.secret == key.secret) {
        Some(other) if other.name == key.name => Err(format!("`{}` has a key above", key.name)),
        Some(other) => Err(format!("`{}` has the same key; make a new one", other.name)),
        None => Ok(key),
    }
}

/// The key with which a command asks: the last word of the only line, so that a line of a server's file will do, and a
/// file with nothing but the key.
pub fn read_key(path: &Path) -> Result<SecretKey, KeysError> {
    let text = read_private(path)?;
    let file = path.display();
    let mut lines = meant_lines(&text);
    let (Some((number, line)), None) = (lines.next(), lines.next()) else {
        return Err(KeysError(format!("{file}: must hold one line, with the key at its end")));
    };
    let word = line.split_whitespace().last().unwrap_or_default();
    secret_of(word).map_err(|reason| KeysError(format!("{file}:{number}: {reason}")))
}

/// The key that is written so. The error does not show it.
pub fn secret_of(text: &str) -> Result<SecretKey, String> {
    const WRONG: &str =
        "the key is not one: 64 hexadecimal digits, not all zeros; `throng admin-key NAME ROLE` makes one";
    SecretKey::from_hex(text).map_err(|_| WRONG.to_owned())
}

/// Lines with something in them, numbered from 1, without comments.
fn meant_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let meant = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    meant.enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, line)| !line.is_empty())
}

/// The text of a file that nobody but its owner may read. The owner is this user, or root, who may let a group read it
/// (which is how a container is handed its secrets).
pub(crate) fn read_private(path: &Path) -> Result<String, KeysError> {
    let file = path.display();
    let fail = |reason: String| KeysError(format!("{file}: {reason}"));
    let cannot = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => {
            fail("no such file; `throng admin-key NAME ROLE` makes a line of it, then `chmod 600` it".to_owned())
        }
        io::ErrorKind::InvalidData => fail("is not UTF-8 text".to_owned()),
        _ => fail(format!("cannot be read: {cause}")),
    };
    let about = fs::metadata(path).map_err(cannot)?;
    if !about.is_file() {
        return Err(fail("is no file".to_owned()));
    }
    let (owner, user) = (about.uid(), process::user_id());
    if owner != user && owner != 0 {
        return Err(fail(format!("belongs to user {owner}, who could change it: run `chown {user} {file}`")));
    }
    let others = if owner == 0 { 0o037 } else { 0o077 };
    if about.mode() & others != 0 {
        return Err(fail(format!("others may read it (mode {:o}): run `chmod 600 {file}`", about.mode() & 0o777)));
    }
    let mut text = String::new();
    fs::File::open(path).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)).map_err(cannot)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(format!("is longer than {FILE_BYTES_MAX} bytes; is this the right file?")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    const ALICE: &str = "5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c";
    const PROMETHEUS: &str = "91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa";

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let error = AccessKeys::parse("admin.keys", text).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error, expect, "\n--- for the file:\n{text}");
        assert!(!error.contains(ALICE), "an error showed a key");
    }

    #[test]
    fn each_line_is_a_name_a_role_and_a_key() {
        let text = format!("# keys\n\n alice\toperate {ALICE} # the first\r\nprometheus observe {PROMETHEUS}\n");
        let keys = AccessKeys::parse("admin.keys", &text).unwrap();
        let whose = |text: &str| keys.find(&secret_of(text).unwrap()).map(|key| (key.name(), key.role()));
        assert_eq!(whose(ALICE), Some(("alice", Role::Operate)));
        assert_eq!(whose(PROMETHEUS), Some(("prometheus", Role::Observe)));
        assert_eq!(whose(&ALICE.to_uppercase()), Some(("alice", Role::Operate)));
        for wrong in [ALICE.replacen('5', "6", 1), format!("{}d", &ALICE[..63]), "11".repeat(32)] {
            assert_eq!(whose(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_mistake_is_told_with_its_file_and_line_and_without_the_key() {
        check("# none\n", "admin.keys: holds no key; `throng admin-key NAME ROLE` makes a line of it");
        let text = format!("alice operate\nalice {ALICE} operate\n{ALICE} operate {ALICE}\nbob operate {ALICE}\n");
        check(
            &(text + &format!("bob observe {PROMETHEUS}\ncarol observe {ALICE}\ndave observe 5e0c\n")),
            "admin.keys:1: has 2 words; a line is NAME ROLE KEY\n\
             admin.keys:2: a role is `observe` (reads) or `operate` (reads, changes, writes to disk)\n\
             admin.keys:3: a name has 1 to 32 letters, digits, `.`, `_` and `-`\n\
             admin.keys:5: `bob` has a key above\n\
             admin.keys:6: `bob` has the same key; make a new one\n\
             admin.keys:7: the key is not one: 64 hexadecimal digits, not all zeros; `throng admin-key NAME ROLE` makes \
             one",
        );
        let zeros = format!("alice operate {}\n", "0".repeat(64));
        assert!(AccessKeys::parse("admin.keys", &zeros).is_err());
        let line = |index: usize| format!("n{index} observe {:064x}\n", index + 1);
        let full: String = (0..KEYS_MAX).map(line).collect();
        check(&full, "");
        check(&(full + &line(KEYS_MAX)), "admin.keys:65: is one too many; there may be 64 keys");
    }

    #[test]
    fn a_new_key_is_read_as_it_is_written_and_not_shown_by_debug() {
        let key = AccessKey::generate("alice", Role::Operate).unwrap();
        let line = key.to_line();
        let keys = AccessKeys::parse("admin.keys", &line).unwrap();
        let hex = line.split_whitespace().last().unwrap();
        assert_eq!(keys.find(&secret_of(hex).unwrap()), Some(&key));
        assert_ne!(AccessKey::generate("alice", Role::Operate).unwrap(), key);
        let shown = format!("{key:?} {keys:?}");
        assert!(shown.contains("alice") && shown.contains("hidden") && !shown.contains(hex), "{shown}");
        assert!(AccessKey::generate("a b", Role::Observe).is_err());
    }

    /// A file of a test's own, which goes with it.
    struct KeyFile(PathBuf);

    impl KeyFile {
        fn new(name: &str, text: &str, mode: u32) -> Self {
            let path = std::env::temp_dir().join(format!("throng-admin-keys-{}-{name}", std::process::id()));
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Self(path)
        }
    }

    impl Drop for KeyFile {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_command_that_mends_it() {
        let line = format!("alice operate {ALICE}\n");
        for (mode, is_private) in [(0o600, true), (0o400, true), (0o604, false), (0o660, false), (0o644, false)] {
            let file = KeyFile::new(&format!("of-mode-{mode:o}"), &line, mode);
            let path = &file.0;
            let error = AccessKeys::load(path).err().map(|error| error.to_string());
            assert_eq!(error.is_none(), is_private, "{mode:o}: {error:?}");
            if let Some(error) = error {
                let expect = format!("others may read it (mode {mode:o}): run `chmod 600 {}`", path.display());
                assert_eq!(error, format!("{}: {expect}", path.display()));
            }
        }
        let missing = AccessKeys::load(Path::new("no/such/admin.keys")).unwrap_err().to_string();
        assert!(missing.starts_with("no/such/admin.keys: no such file; `throng admin-key"), "{missing}");
        let folder = AccessKeys::load(&std::env::temp_dir()).unwrap_err().to_string();
        assert!(folder.ends_with(": is no file"), "{folder}");
    }

    #[test]
    fn whoever_asks_gives_a_line_or_the_key_alone() {
        let check = |name: &str, text: &str, expect: Result<&str, &str>| {
            let file = KeyFile::new(name, text, 0o600);
            let path = &file.0;
            let read = read_key(path).map(|key| key.to_hex()).map_err(|error| error.to_string());
            let expect = expect.map(str::to_owned).map_err(|reason| format!("{}{reason}", path.display()));
            assert_eq!(read, expect);
        };
        check("line", &format!("# mine\nalice operate {ALICE}\n"), Ok(ALICE));
        check("alone", ALICE, Ok(ALICE));
        check("empty", "# none\n", Err(": must hold one line, with the key at its end"));
        check("two", &format!("{ALICE}\n{ALICE}\n"), Err(": must hold one line, with the key at its end"));
        let wrong =
            ":1: the key is not one: 64 hexadecimal digits, not all zeros; `throng admin-key NAME ROLE` makes one";
        check("short", "5e0c\n", Err(wrong));
    }
}
