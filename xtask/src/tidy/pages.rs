//! Built pages: each says the hash of the sources that it was built from, so that one that is older is seen without Node.
//!
//! The hash is FNV-1a of 64 bits over path and text of every file, in the order of paths, as `web/build.mjs` takes it: it
//! tells an honest mistake. That a page really is what its sources make is what `cargo xtask web --check` finds.

use std::fs;
use std::path::Path;

use crate::web::BUILT;

/// What pages are made of, in `web/`: as in `web/build.mjs`.
const SOURCES: [&str; 7] = ["client", "console", "elements", "play", "viewer", "build.mjs", "package-lock.json"];
const PAGES: [&str; 6] =
    ["client.js", "console.html", "play_duel.html", "play_frontier.html", "play_precinct.html", "viewer.html"];

pub(super) fn check(root: &Path) -> Vec<String> {
    let web = root.join("web");
    let mut files = Vec::new();
    SOURCES.iter().for_each(|path| list(&web, path, &mut files));
    files.sort();
    let texts: Vec<(String, Vec<u8>)> =
        files.into_iter().map(|path| (path.clone(), fs::read(web.join(&path)).unwrap_or_default())).collect();
    let expected = format!("sources: {:016x}", hash(&texts));
    let is_stale = |page: &str| {
        let text = fs::read_to_string(root.join(BUILT).join(page)).unwrap_or_default();
        !text.lines().take(4).any(|line| line.contains(&expected))
    };
    let problem = |page| format!("{BUILT}/{page}: is of other sources than those in web/; run `cargo xtask web`");
    PAGES.into_iter().filter(|page| is_stale(page)).map(problem).collect()
}

fn list(web: &Path, path: &str, files: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(web.join(path)) else {
        files.push(path.to_owned());
        return;
    };
    entries.flatten().for_each(|entry| list(web, &format!("{path}/{}", entry.file_name().to_string_lossy()), files));
}

fn hash(texts: &[(String, Vec<u8>)]) -> u64 {
    let bytes = texts.iter().flat_map(|(path, text)| [path.as_bytes(), &[0], text, &[0]].concat());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a of "a" 0 "b" 0, as Node computes it.
    const EXPECTED: u64 = 0xab40_d782_0d40_8076;

    #[test]
    fn the_hash_is_that_of_the_build() {
        assert_eq!(hash(&[("a".to_owned(), b"b".to_vec())]), EXPECTED);
        assert_ne!(hash(&[("ab".to_owned(), Vec::new())]), EXPECTED);
    }
}
