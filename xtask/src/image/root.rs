//! The root file system: the executable, what the loader finds for it, and the names of two users.
//!
//! Libraries lie where they lie on this host, which is where the loader looks for them. Lines and names for crash reports stay
//! in the executable, compressed: they are most of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{DATA, EXECUTABLE, NOBODY, unusable};
use crate::error::XtaskError;
use crate::step;

/// Folders that a container's runtime fills, and one for what a server leaves for its own user: see docs/admin.md.
const FOLDERS: [&str; 5] = ["dev", "etc", "proc", "sys", "tmp"];
/// `deploy/Containerfile` copies both, also where the loader needs one of them only.
const LIBRARY_FOLDERS: [&str; 2] = ["lib", "lib64"];

pub(super) fn make(root: &Path, executable: &Path) -> Result<(), XtaskError> {
    // What an earlier run left is not in this one.
    let _ = fs::remove_dir_all(root);
    for folder in FOLDERS.iter().chain(&LIBRARY_FOLDERS) {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).map_err(|cause| unusable(&folder, &cause))?;
    }
    set_mode(&root.join("tmp"), 0o1777)?;
    let users =
        format!("root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:{NOBODY}:{NOBODY}:nobody:{DATA}:/usr/sbin/nologin\n");
    write(&root.join("etc/passwd"), &users)?;
    write(&root.join("etc/group"), &format!("root:x:0:\nnogroup:x:{NOBODY}:\n"))?;
    for library in libraries(executable)? {
        copy(&library, &inside(root, &library))?;
    }
    install(executable, &inside(root, Path::new(EXECUTABLE)))
}

/// What all files in the folder take together.
pub(super) fn size_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_bytes(&entry.path()),
        _ => entry.metadata().map_or(0, |file| file.len()),
    };
    entries.map(size).sum()
}

fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The executable with its lines compressed, where objcopy is there to do it.
fn install(executable: &Path, to: &Path) -> Result<(), XtaskError> {
    copy(executable, to)?;
    let mut command = step::program("objcopy".as_ref());
    command.arg("--compress-debug-sections=zlib").arg(executable).arg(to);
    if !step::succeeds(&mut command) {
        eprintln!("── image: objcopy (binutils) did not compress its lines; it is larger for that");
        // It may have left half a file.
        copy(executable, to)?;
    }
    set_mode(to, 0o755)
}

/// What the loader takes for it on this host.
fn libraries(executable: &Path) -> Result<Vec<PathBuf>, XtaskError> {
    let mut command = step::program("ldd".as_ref());
    let output = command.arg(executable).output().map_err(|cause| unusable(executable, &cause))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        // Linked with nothing, it needs nothing.
        let is_static = said.contains("not a dynamic executable");
        return if is_static { Ok(Vec::new()) } else { Err(unusable(executable, &said.trim())) };
    }
    in_words_of_ldd(&String::from_utf8_lossy(&output.stdout)).map_err(|missing| {
        unusable(executable, &format!("this host has no {missing}, which it is linked with; install it"))
    })
}

/// The files among the words of `ldd`; the error is a library that is not there.
///
/// ```text
/// linux-vdso.so.1 (0x00007fcca5e74000)                                   the kernel's own
/// libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fcca5120000)
/// libx.so.1 => not found
/// /lib64/ld-linux-x86-64.so.2 (0x00007fcca5e76000)                       the loader itself
/// ```
fn in_words_of_ldd(said: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for line in said.lines() {
        let (name, file) = line.split_once("=>").unwrap_or((line, line));
        if file.trim() == "not found" {
            return Err(name.trim().to_owned());
        }
        let file = file.split(" (").next().unwrap_or_default().trim();
        if file.starts_with('/') {
            files.push(PathBuf::from(file));
        }
    }
    Ok(files)
}

/// Copies what a path leads to, however many links are on the way.
fn copy(from: &Path, to: &Path) -> Result<(), XtaskError> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).map_err(|cause| unusable(parent, &cause))?;
    fs::copy(from, to).map_err(|cause| unusable(from, &cause))?;
    set_mode(to, 0o755)
}

fn write(path: &Path, text: &str) -> Result<(), XtaskError> {
    fs::write(path, text).map_err(|cause| unusable(path, &cause))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), XtaskError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|cause| unusable(path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_loader_are_found_and_a_missing_one_is_named() {
        let said = "\tlinux-vdso.so.1 (0x00007fcca5e74000)\n\
                    \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007fcca5120000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007fcca5e76000)\n";
        let expect = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(in_words_of_ldd(said).unwrap(), expect);
        assert_eq!(in_words_of_ldd("\tlibx.so.1 => not found\n"), Err("libx.so.1".to_owned()));
        assert_eq!(in_words_of_ldd("\tstatically linked\n"), Ok(Vec::new()));
    }
}
