//! Local key: what the user who runs a server changes it with, without having been given anything.
//!
//! A server on a loopback address that has no file of keys makes a random key at its start and leaves it where only its
//! own user can read it. The commands of the same user find it by the address that they talk to. Web pages and other
//! users of the host cannot read it, which is all that tells them apart on loopback.
//!
//! ```text
//! $RUNTIME_DIRECTORY/throng/admin-127.0.0.1:9100.key   where a service manager made it such a folder, else
//! $XDG_RUNTIME_DIR/throng/admin-127.0.0.1:9100.key     or, where there is no such folder
//! /tmp/throng-UID/admin-127.0.0.1:9100.key             all folders of mode 0700, the file of mode 0600
//! ```
//!
//! A service's own folder comes first because systemd's `PrivateTmp` hides its `/tmp` from everybody else.
//!
//! The file goes when the server ends; while it runs, one that was cleaned away is left again. A server that was killed
//! leaves a key that nothing takes any more, and the next one at that address replaces it, or removes it where it has keys of
//! its own: in all of these folders, and for one at `0.0.0.0` or `[::]` at every loopback address with its port. Anybody may make folders in
//! `/tmp`, so one that is not this user's, that others may enter or that is a link is not used.
//!
//! Runs on the admin thread, which looks every few seconds, and in a command that asks; some system calls.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use throng::settings::SecretKey;
use throng_platform::process;

use super::keys::{AccessKey, KeysError, read_key};
use throng::console::Role;

/// What audit lines call whoever shows it.
const NAME: &str = "local";

/// A file with a server's own key, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct LocalKey {
    address: SocketAddr,
    folders: Vec<PathBuf>,
    key: AccessKey,
    path: PathBuf,
}

impl LocalKey {
    /// Makes a key for the server at `address` and leaves it in the first of the folders that can be used. The error
    /// says why none can.
    pub(crate) fn leave(address: SocketAddr, folders: Vec<PathBuf>) -> Result<Self, String> {
        let key = AccessKey::generate(NAME, Role::Operate)?;
        let path = write_in(&folders, address, &key)?;
        Ok(Self { address, folders, key, path })
    }

    /// Leaves it again if it has gone: cleaners of `/tmp` take files that nobody touches for days, and a runtime folder
    /// goes when its user logs out.
    pub(crate) fn renew(&mut self) {
        if !self.path.exists()
            && let Ok(path) = write_in(&self.folders, self.address, &self.key)
        {
            self.path = path;
        }
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn key(&self) -> &AccessKey {
        &self.key
    }
}

/// Where the key was written.
fn write_in(folders: &[PathBuf], address: SocketAddr, key: &AccessKey) -> Result<PathBuf, String> {
    let line = key.to_line();
    let text = format!("# The server at {address} takes this key from its own user for as long as it runs.\n{line}\n");
    let mut reasons = Vec::new();
    for folder in folders {
        let path = file_in(folder, address);
        let written = || write_private(&path, &text).map_err(|cause| format!("{}: {cause}", path.display()));
        match make_folder(folder).and_then(|()| written()) {
            Ok(()) => return Ok(path),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

impl Drop for LocalKey {
    fn drop(&mut self) {
        // Another server may be at this address by now, in another network namespace.
        if read_key(&self.path).is_ok_and(|key| self.key.is(&key)) {
            // If it cannot be removed, it is a key of nothing.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The key of the server of this user at a loopback `address`, if one has left it.
pub fn find(address: SocketAddr) -> Option<Result<SecretKey, KeysError>> {
    find_in(address, &folders())
}

fn find_in(address: SocketAddr, folders: &[PathBuf]) -> Option<Result<SecretKey, KeysError>> {
    let usable = folders.iter().filter(|folder| check_folder(folder).is_ok());
    let path = usable.map(|folder| file_in(folder, address)).find(|path| path.exists())?;
    Some(read_key(&path))
}

/// Removes what servers left that were killed, at all addresses where `bound` is the server from now on.
///
/// Whoever asks a server at every address of the host by one of them finds the key that was left at that one. Where `bound` is
/// at every IPv6 address it is taken to be at those of IPv4, too, as is usual; another that runs there leaves its key again.
pub(crate) fn forget(bound: SocketAddr, folders: &[PathBuf]) {
    for folder in folders.iter().filter(|folder| check_folder(folder).is_ok()) {
        let Ok(files) = fs::read_dir(folder) else { continue };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        for address in names.filter_map(|name| address_of(&name)).filter(|address| is_at(bound, *address)) {
            // If it cannot be removed, it is a key of nothing.
            let _ = fs::remove_file(file_in(folder, address));
        }
    }
}

/// Whether who asks `address` asks the server that listens on `bound`.
fn is_at(bound: SocketAddr, address: SocketAddr) -> bool {
    let is_every = bound.ip().is_unspecified() && (bound.is_ipv6() || address.is_ipv4());
    bound.port() == address.port() && (bound.ip() == address.ip() || is_every)
}

/// Where keys may lie, the best place first. Server and command may have been started in different ways, so a command
/// looks in all of them.
pub(crate) fn folders() -> Vec<PathBuf> {
    folders_in(|name| std::env::var_os(name))
}

fn folders_in(environment: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let user = process::user_id();
    let is_own = |folder: &PathBuf| folder.is_absolute() && fs::metadata(folder).is_ok_and(|about| about.uid() == user);
    // Of several, which a colon parts, the first.
    let of_service = environment("RUNTIME_DIRECTORY").and_then(|folders| std::env::split_paths(&folders).next());
    let of_user = environment("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = [of_service, of_user].into_iter().flatten().filter(is_own);
    let fallback = PathBuf::from(format!("/tmp/throng-{user}"));
    runtime.map(|folder| folder.join("throng")).chain([fallback]).collect()
}

fn file_in(folder: &Path, address: SocketAddr) -> PathBuf {
    folder.join(format!("admin-{address}.key"))
}

/// The address in the name of a file with a key.
fn address_of(name: &str) -> Option<SocketAddr> {
    name.strip_prefix("admin-")?.strip_suffix(".key")?.parse().ok()
}

fn make_folder(folder: &Path) -> Result<(), String> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(format!("{}: {cause}", folder.display())),
        _ => check_folder(folder),
    }
}

/// Nobody but this user may have put anything there.
fn check_folder(folder: &Path) -> Result<(), String> {
    let fail = |reason: String| Err(format!("{}: {reason}", folder.display()));
    let about = match fs::symlink_metadata(folder) {
        Ok(about) => about,
        Err(cause) => return fail(cause.to_string()),
    };
    if !about.is_dir() {
        return fail("is no folder".to_owned());
    }
    if about.uid() != process::user_id() {
        return fail(format!("belongs to user {}", about.uid()));
    }
    if about.mode() & 0o077 != 0 {
        return fail(format!("others may enter it: run `chmod 700 {}`", folder.display()));
    }
    Ok(())
}

/// Written beside the place and moved there: a command reads the old key or the new one.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension(format!("key.{}", std::process::id()));
    // Of an earlier process with this number, at most.
    let _ = fs::remove_file(&fresh);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?.write_all(text.as_bytes())?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use std::ops::Deref;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const ADDRESS: &str = "127.0.0.1:9100";

    /// A folder of a test's own, with nothing in it, which goes with it.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let place = std::env::temp_dir().join(format!("throng-local-key-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&place);
            fs::create_dir_all(&place).unwrap();
            Self(place)
        }
    }

    impl Deref for Place {
        type Target = Path;

        fn deref(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn address() -> SocketAddr {
        ADDRESS.parse().unwrap()
    }

    #[test]
    fn a_key_is_found_while_the_server_runs_and_only_its_user_can_read_it() {
        let place = Place::new("found");
        let folders = [place.join("throng")];
        assert!(find_in(address(), &folders).is_none(), "no server, no key");
        let left = LocalKey::leave(address(), folders.to_vec()).unwrap();
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folders[0]), mode(&left.path)), (0o700, 0o600));
        let found = find_in(address(), &folders).unwrap().unwrap();
        assert!(left.key().is(&found) && left.key().role() == Role::Operate);
        assert!(find_in("127.0.0.1:9101".parse().unwrap(), &folders).is_none(), "another port");
        assert!(find_in("127.0.0.2:9100".parse().unwrap(), &folders).is_none(), "another address");
        let shown = format!("{left:?}");
        assert!(shown.contains("hidden") && !shown.contains(&found.to_hex()), "{shown}");

        drop(left);
        assert!(find_in(address(), &folders).is_none(), "it goes with its server");
        assert_eq!(fs::read_dir(&folders[0]).unwrap().count(), 0);
    }

    #[test]
    fn a_service_leaves_its_key_in_the_folder_that_it_was_given() {
        let [service, other, user] = ["service", "other", "user"].map(Place::new);
        let both = std::env::join_paths([&*service, &*other]).unwrap();
        let folders = |service: Option<OsString>| {
            folders_in(|name| match name {
                "RUNTIME_DIRECTORY" => service.clone(),
                "XDG_RUNTIME_DIR" => Some(user.as_os_str().to_owned()),
                _ => None,
            })
        };
        let fallback = PathBuf::from(format!("/tmp/throng-{}", process::user_id()));
        let of_user = user.join("throng");
        assert_eq!(folders(None), [of_user.clone(), fallback.clone()]);
        assert_eq!(folders(Some("relative".into())), [of_user.clone(), fallback.clone()]);
        assert_eq!(folders(Some(both.clone())), [service.join("throng"), of_user, fallback]);
        let left = LocalKey::leave(address(), folders(Some(both))).unwrap();
        assert!(left.path().starts_with(&*service), "{:?}", left.path());
    }

    #[test]
    fn what_a_killed_server_left_is_replaced_and_what_its_successor_left_stays() {
        let place = Place::new("stale");
        let folders = [place.to_path_buf()];
        fs::set_permissions(&folders[0], fs::Permissions::from_mode(0o700)).unwrap();
        let killed = LocalKey::leave(address(), folders.to_vec()).unwrap();
        let next = LocalKey::leave(address(), folders.to_vec()).unwrap();
        assert!(next.key().is(&find_in(address(), &folders).unwrap().unwrap()));
        drop(killed);
        assert!(next.key().is(&find_in(address(), &folders).unwrap().unwrap()));
        forget(address(), &folders);
        assert!(find_in(address(), &folders).is_none());
    }

    #[test]
    fn a_server_that_takes_a_port_forgets_what_was_left_where_it_listens_and_nothing_else() {
        let files = ["127.0.0.1:9100", "127.0.0.2:9100", "[::1]:9100", "127.0.0.1:9101"];
        for (bound, kept) in [
            ("127.0.0.1:9100", &files[1..]),
            ("0.0.0.0:9100", &files[2..]),
            ("[::]:9100", &files[3..]),
            ("192.0.2.7:9100", &files[..]),
        ] {
            let place = Place::new("taken");
            let folders = [place.join("user"), place.join("fallback")];
            for folder in &folders {
                make_folder(folder).unwrap();
                files.iter().for_each(|address| fs::write(file_in(folder, address.parse().unwrap()), "").unwrap());
                fs::write(folder.join("admin.key"), "").unwrap();
            }
            forget(bound.parse().unwrap(), &folders);
            let is_kept =
                |address: &&str| folders.each_ref().map(|folder| file_in(folder, address.parse().unwrap()).exists());
            let expect = files.map(|address| [kept.contains(&address); 2]);
            assert_eq!(files.each_ref().map(is_kept), expect, "{bound}");
            assert!(folders.iter().all(|folder| folder.join("admin.key").exists()), "it is nobody's key");
        }
    }

    #[test]
    fn a_key_that_was_cleaned_away_is_left_again_and_stays_the_same() {
        let place = Place::new("cleaned");
        let folders = [place.join("session").join("throng"), place.join("throng")];
        fs::create_dir(place.join("session")).unwrap();
        let mut left = LocalKey::leave(address(), folders.to_vec()).unwrap();
        fs::remove_dir_all(&folders[0]).unwrap();
        left.renew();
        assert!(left.key().is(&find_in(address(), &folders[..1]).unwrap().unwrap()), "the folder of files was cleaned");
        fs::remove_dir_all(place.join("session")).unwrap();
        left.renew();
        assert!(left.key().is(&find_in(address(), &folders).unwrap().unwrap()), "the user has logged out");
        drop(left);
        assert!(find_in(address(), &folders).is_none());
    }

    #[test]
    fn a_folder_that_others_could_have_made_is_passed_by() {
        let place = Place::new("foreign");
        let (open, link, file, good) = (place.join("open"), place.join("link"), place.join("file"), place.join("good"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let behind = place.join("behind");
        DirBuilder::new().mode(0o700).create(&behind).unwrap();
        symlink(&behind, &link).unwrap();
        fs::write(&file, "").unwrap();
        let bad = [open.clone(), link, file, place.join("no/such")];
        let error = LocalKey::leave(address(), bad.to_vec()).unwrap_err();
        assert!(error.contains(&format!("others may enter it: run `chmod 700 {}`", open.display())), "{error}");
        assert_eq!(error.matches("is no folder").count(), 2, "{error}");
        assert_eq!(fs::read_dir(&behind).unwrap().count(), 0);

        let all: Vec<PathBuf> = bad.into_iter().chain([good.clone()]).collect();
        let left = LocalKey::leave(address(), all.clone()).unwrap();
        assert!(left.path.starts_with(&good));
        assert!(find_in(address(), &all).is_some_and(|found| found.is_ok()));
        fs::copy(&left.path, file_in(&open, address())).unwrap();
        assert!(find_in(address(), &[open]).is_none(), "whoever can enter could have put it there");
    }
}
