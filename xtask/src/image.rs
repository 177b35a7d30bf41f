//! Image: a server as a container image that is made from nothing.
//!
//! ```text
//! target/image/root      one executable, the libraries that it is linked with, names for nobody     `root`
//!        │ tried: it is run with this as its whole world                                            `trial`
//!        ▼
//! target/image/own       folders that belong to the server's user
//!        │ deploy/Containerfile, by buildah: no daemon, nothing is downloaded
//!        ▼
//! target/image/NAME.oci.tar
//! ```
//!
//! There is no shell in it, no package and no certificate: a server asks nobody anything over TLS. CI makes and tries the
//! root file system with the tests' executable; the image itself takes buildah and a release build.

mod root;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::XtaskError;
use crate::step::{self, cargo};

/// Where the server is in its image; `deploy/Containerfile` starts it.
const EXECUTABLE: &str = "/usr/bin/throng";
/// Where it is when it starts, and keeps what is to outlive it.
const DATA: &str = "/data";
/// Debian's nobody: what runs as this number owns nothing else on any host.
const NOBODY: u32 = 65_534;

const CONTAINERFILE: &str = "deploy/Containerfile";

#[derive(Args)]
pub(crate) struct ImageArguments {
    /// The server of a game, built in its own project; `throng` is built and taken if none is given.
    #[arg(long, value_name = "FILE")]
    executable: Option<PathBuf>,
    /// The image's name.
    #[arg(long, default_value = "throng")]
    name: String,
    /// Make and try the root file system, and no image of it: does without buildah.
    #[arg(long)]
    root_only: bool,
}

pub(crate) fn run(arguments: &ImageArguments) -> Result<(), XtaskError> {
    let executable = match &arguments.executable {
        // From where the person is, as cargo is run there.
        Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        None => build()?,
    };
    let place = make(&executable)?;
    if arguments.root_only { Ok(()) } else { pack(&place, &arguments.name) }
}

/// What every change must pass: the tests' executable runs in a root file system of its own.
pub(crate) fn ci() -> Result<(), XtaskError> {
    make(&step::target_folder().join("debug/throng")).map(drop)
}

fn build() -> Result<PathBuf, XtaskError> {
    step::run("build", cargo().args(["build", "--release", "--locked", "--bin", "throng"]), "put right what it names")?;
    Ok(step::target_folder().join("release/throng"))
}

/// Makes and tries the root file system, and returns the folder that it is in.
fn make(executable: &Path) -> Result<PathBuf, XtaskError> {
    if !executable.is_file() {
        return Err(XtaskError::Usage(format!("{} is no file; build it first", executable.display())));
    }
    let place = step::target_folder().join("image");
    let root = place.join("root");
    root::make(&root, executable)?;
    eprintln!("── image: a root file system of {} MB in {}", root::size_bytes(&root) / 1_000_000, root.display());
    trial::run(&root)?;
    Ok(place)
}

/// Makes the image, by buildah with storage of its own below `place`: the user's images stay as they are.
fn pack(place: &Path, name: &str) -> Result<(), XtaskError> {
    if !step::succeeds(step::program("buildah".as_ref()).arg("--version")) {
        return Err(XtaskError::Usage(format!(
            "buildah is not installed: `apt-get install --no-install-recommends buildah`; or build {CONTAINERFILE} by other means, \
             with {} as its context; or leave it at the root file system with --root-only",
            place.display()
        )));
    }
    fs::create_dir_all(place.join("own").join(DATA.trim_start_matches('/')))
        .map_err(|cause| unusable(&place.join("own"), &cause))?;
    let archive = place.join(format!("{name}.oci.tar"));
    // An archive is not written over.
    let _ = fs::remove_file(&archive);
    let buildah = || {
        let mut command = step::program("buildah".as_ref());
        command.arg("--root").arg(place.join("storage")).arg("--runroot").arg(place.join("run"));
        command.args(["--storage-driver", "vfs"]);
        command
    };
    let mut command = buildah();
    // The context has the storage in it: only what the file names is copied.
    command.args(["build", "--isolation", "chroot", "--format", "oci", "--layers=false", "--tag", name, "--file"]);
    command.arg(step::root().join(CONTAINERFILE)).arg(place);
    step::run("image", &mut command, "its own words are above")?;
    let mut command = buildah();
    command.args(["push", name, &format!("oci-archive:{}:{name}", archive.display())]);
    step::run("image", &mut command, "its own words are above")?;
    let size_bytes = fs::metadata(&archive).map_or(0, |file| file.len());
    eprintln!("── image: {} MB in {}", size_bytes / 1_000_000, archive.display());
    Ok(())
}

fn unusable(path: &Path, cause: &dyn std::fmt::Display) -> XtaskError {
    XtaskError::Usage(format!("{}: {cause}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: what is tried here is what the image starts.
    #[test]
    fn the_image_starts_what_was_tried() {
        let file = fs::read_to_string(step::root().join(CONTAINERFILE)).unwrap();
        let has = |line: String| assert!(file.lines().any(|it| it == line), "{CONTAINERFILE} lacks `{line}`");
        has(format!("ENTRYPOINT [\"{EXECUTABLE}\", \"serve\"]"));
        has(format!("USER {NOBODY}:{NOBODY}"));
        has(format!("COPY --chown={NOBODY}:{NOBODY} own/ /"));
        has(format!("WORKDIR {DATA}"));
        has(format!("VOLUME {DATA}"));
        has("FROM scratch".to_owned());
    }
}
