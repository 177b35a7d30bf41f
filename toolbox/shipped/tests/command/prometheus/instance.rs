//! A Prometheus of a test: on a free port of loopback, with a folder of its own, gone with its owner.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::Value;

use crate::child::{folder, wait_until};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// Which of a histogram's two forms it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histograms {
    Classic,
    Native,
}

pub struct Prometheus {
    child: Child,
    pub address: SocketAddr,
}

impl Prometheus {
    /// With a whole file of settings.
    pub fn start(name: &str, settings: &str, histograms: Histograms) -> Self {
        let place = folder(&format!("prometheus-{name}"));
        let file = place.join("prometheus.yml");
        fs::write(&file, settings).expect("a folder of ours");
        let features = match histograms {
            Histograms::Classic => "exemplar-storage",
            Histograms::Native => "exemplar-storage,native-histograms",
        };
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", place.join("data").display()))
            .arg(format!("--enable-feature={features}"))
            .args(["--web.listen-address=127.0.0.1:0", "--log.level=info"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("`cargo xtask setup` installs Prometheus");
        let log = BufReader::new(child.stderr.take().expect("a pipe was asked for"));
        let (tell, told) = mpsc::channel();
        // Reads on to the end, so that the log never holds it up.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let address = line.split_once("\"Listening on\" address=").map(|(_, address)| address.to_owned());
                let _ = tell.send(address.ok_or(line));
            }
        });
        let mut lines = Vec::new();
        let address = loop {
            match told.recv_timeout(READY_WITHIN) {
                Ok(Ok(address)) => break address.parse().expect("an address"),
                Ok(Err(line)) => lines.push(line),
                Err(_) => panic!("it does not listen:\n{}", lines.join("\n")),
            }
        };
        let prometheus = Self { child, address };
        let ready = wait_until(READY_WITHIN, || prometheus.try_get("/-/ready").filter(|(status, _)| *status == 200));
        assert!(ready.is_some(), "it is never ready");
        prometheus
    }

    /// With what is shipped, told where `server` is and to look every second.
    pub fn with_shipped_settings(name: &str, server: SocketAddr, histograms: Histograms) -> Self {
        let shipped = fs::read_to_string(deploy("prometheus/prometheus.yml")).expect("it is shipped");
        let mut settings = shipped.clone();
        for (from, to) in [
            ("scrape_interval: 5s", "scrape_interval: 1s".to_owned()),
            ("scrape_timeout: 4s", "scrape_timeout: 1s".to_owned()),
            ("evaluation_interval: 5s", "evaluation_interval: 1s".to_owned()),
            ("- rules/*.yml", format!("- {}", deploy("prometheus/rules/*.yml").display())),
            ("- targets: [\"127.0.0.1:9100\"]", format!("- targets: [\"{server}\"]")),
        ] {
            assert!(settings.contains(from), "{from:?} is not in what is shipped:\n{shipped}");
            settings = settings.replace(from, &to);
        }
        Self::start(name, &settings, histograms)
    }

    fn try_get(&self, path: &str) -> Option<(u32, String)> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(READY_WITHIN)).ok()?;
        // Of this version an answer is whole, and not in pieces.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// What its API answers.
    #[track_caller]
    pub fn api(&self, path: &str) -> Value {
        let (status, body) = self.try_get(&format!("/api/v1/{path}")).expect("it answers");
        let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert!(status == 200 && answer["status"] == "success", "{path}: {status} {body}");
        answer["data"].clone()
    }

    /// The rows of an instant query.
    #[track_caller]
    pub fn query(&self, expr: &str) -> Vec<Value> {
        let data = self.api(&format!("query?query={}", encoded(expr)));
        data["result"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until a query has rows.
    #[track_caller]
    pub fn wait_for(&self, expr: &str) -> Vec<Value> {
        self.wait_longer_for(Duration::ZERO, expr)
    }

    /// The same where what is waited for takes so long by itself.
    #[track_caller]
    pub fn wait_longer_for(&self, longer: Duration, expr: &str) -> Vec<Value> {
        let found = wait_until(READY_WITHIN + longer, || Some(self.query(expr)).filter(|rows| !rows.is_empty()));
        found.unwrap_or_else(|| panic!("nothing comes of {expr}; targets: {}", self.api("targets")))
    }

    /// Has promtool evaluate a query, and returns its rows as it prints them.
    #[track_caller]
    pub fn promtool_query(&self, expr: &str) -> String {
        promtool(&["query", "instant", &format!("http://{}", self.address), expr])
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What promtool says of something, which has to be fine.
#[track_caller]
pub fn promtool(arguments: &[&str]) -> String {
    let output = Command::new("promtool").args(arguments).output().expect("`cargo xtask setup` installs promtool");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "promtool {}:\n{said}", arguments.join(" "));
    said
}

/// A file of what is shipped for operators.
pub fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

pub fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}
