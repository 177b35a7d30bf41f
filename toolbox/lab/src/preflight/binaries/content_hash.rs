//! Hashes by which programs are told apart, in files that outlive the build which wrote them.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;

use siphasher::sip::SipHasher13;

/// SipHash-1-3 of a program's bytes, with the key 0, which is the same only for the same build: two of one commit may differ by what was
/// not committed. Empty if it cannot be read. Files of runs keep it, so it stays what it is, whatever compiles us.
pub fn content_hash(program: &Path) -> String {
    File::open(program).and_then(hash).unwrap_or_default()
}

/// The same of a text.
pub(super) fn text_hash(text: &str) -> String {
    hash(text.as_bytes()).unwrap_or_default()
}

fn hash(mut read: impl Read) -> io::Result<String> {
    let mut hasher = SipHasher13::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match read.read(&mut piece)? {
            0 => return Ok(format!("{:016x}", hasher.finish())),
            length => hasher.write(&piece[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_build_is_known_by_its_bytes() {
        let folder = std::env::temp_dir().join(format!("throng-preflight-content-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [one, same, other] = ["one", "same", "other"].map(|name| folder.join(name));
        fs::write(&one, vec![7; 3 << 20]).unwrap();
        fs::copy(&one, &same).unwrap();
        fs::write(&other, [vec![7; (3 << 20) - 1], vec![8]].concat()).unwrap();
        let [one, same, other] = [one, same, other].map(|path| content_hash(&path));
        let known = folder.join("known");
        fs::write(&known, "throng").unwrap();
        // By the reference's arithmetic: who changes it parts all runs that were kept.
        assert_eq!(content_hash(&known), "071b36093b6cc432");
        assert_eq!(text_hash("throng"), "071b36093b6cc432");
        fs::remove_dir_all(&folder).unwrap();
        assert!(one.len() == 16 && one == same && one != other, "{one} {same} {other}");
        assert_eq!(content_hash(&folder), "", "nothing is there");
    }
}
