//! S3 servers that are not ours, on loopback. One is s3rver, from npm, by the versions in `tests/s3rver/package-lock.json`: it
//! knows the id of its key, and believes every signature. The other, of the full form, is versitygw, which believes none.
//!
//! The tests of the shipped command have it, too (`toolbox/shipped/tests/command/uploads.rs`).

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use throng::settings::ObjectStoreSettings;

pub const BUCKET: &str = "reports";
/// Id and secret of the key that is right.
pub const KEY: &str = "S3RVER";

/// Ends with the value.
pub struct S3Server {
    process: Child,
    pub endpoint: String,
    pub folder: PathBuf,
}

/// A folder of this process alone, empty.
pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-s3-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where s3rver is; brought by npm once for each version.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../upload/tests/s3rver");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("s3rver");
        let program = folder.join("node_modules/s3rver/bin/s3rver.js");
        let lock = "package-lock.json";
        let is_there = program.exists() && fs::read(wanted.join(lock)).ok() == fs::read(folder.join(lock)).ok();
        if !is_there {
            fs::create_dir_all(&folder).unwrap();
            fs::copy(wanted.join("package.json"), folder.join("package.json")).unwrap();
            fs::copy(wanted.join(lock), folder.join(lock)).unwrap();
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]).current_dir(&folder);
            let status = npm.status().expect("npm is there: `cargo xtask setup` installs it");
            assert!(status.success(), "npm could not bring s3rver: it needs its registry once");
        }
        program
    })
}

impl S3Server {
    pub fn start(name: &str) -> Self {
        let folder = folder(name);
        let mut command = Command::new("node");
        command.arg(program()).arg("-d").arg(&folder).args(["-a", "127.0.0.1", "-p", "0", "--no-vhost-buckets"]);
        command.args(["--configure-bucket", BUCKET]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("node is there: `cargo xtask setup` installs it");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("S3rver listening on ").map(str::to_owned));
        let endpoint = format!("http://{}", address.expect("it says where it listens"));
        // Read on, or it would wait for the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, endpoint, folder }
    }

    /// versitygw, by the program that the environment names: `go install github.com/versity/versitygw/cmd/versitygw@latest`
    /// makes it.
    pub fn start_strict(name: &str) -> Self {
        let program = std::env::var_os("VERSITYGW").expect("VERSITYGW names the program");
        let folder = folder(name);
        fs::create_dir_all(folder.join("data").join(BUCKET)).unwrap();
        fs::create_dir_all(folder.join("about")).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut command = Command::new(program);
        command.args(["--access", KEY, "--secret", KEY, "--port", &free, "posix", "--sidecar"]);
        command.arg(folder.join("about")).arg(folder.join("data"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let server = Self { process, endpoint: format!("http://{free}"), folder };
        while TcpStream::connect(&free).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Settings that reach it, with a key from a file.
    pub fn settings(&self, id: &str, secret: &str) -> ObjectStoreSettings {
        settings(&self.endpoint, &self.folder, id, secret)
    }
}

pub fn settings(endpoint: &str, folder: &Path, id: &str, secret: &str) -> ObjectStoreSettings {
    let key_file = folder.with_extension(format!("key-{id}-{secret}"));
    fs::write(&key_file, format!("{id}\n{secret}\n")).unwrap();
    ObjectStoreSettings {
        endpoint: Some(endpoint.to_owned()),
        bucket: Some(BUCKET.to_owned()),
        prefix: "live/eu".to_owned(),
        key_file: Some(key_file),
        ..ObjectStoreSettings::default()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
