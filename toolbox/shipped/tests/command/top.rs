//! `throng top` at a live server, and at what is none.

use std::{
    io::{Read, Write},
    net::TcpListener,
    time::Duration,
};

use serde_json::Value;

use crate::{
    child::{Finished, Server, finish, throng, wait_until},
    crowd::Crowd,
};

const WITHIN: Duration = Duration::from_secs(60);

fn top(address: &str, more: &[&str]) -> Finished {
    finish(throng(&[&["top", address], more].concat()), WITHIN)
}

#[test]
fn a_second_of_a_server_is_told_as_text_and_as_an_object() {
    let server = Server::start(&["--players", "8", "--npcs", "16", "--workers", "1"]);
    let address = server.admin_address.to_string();
    let told = top(&address, &["--once"]);
    assert!(told.status.success(), "{}", told.stderr);
    for words in
        [format!("{address}  sleeping").as_str(), "1 workers", "frame  ", "cores  ", "load  ", "subsystem  ", "world  "]
    {
        assert!(told.stdout.contains(words), "{words} is not in\n{}", told.stdout);
    }
    let told = top(&address, &["--once", "--json"]);
    let [line] = told.stdout.lines().collect::<Vec<_>>()[..] else { panic!("one line: {}", told.stdout) };
    let object: Value = serde_json::from_str(line).expect("one JSON object");
    assert_eq!(object["health"]["state"], "sleeping", "nobody is here");
    assert!(object["second"]["server"]["worlds"].as_u64().is_some_and(|worlds| worlds > 0), "{line}");
    assert!(object["second"]["subsystems"].as_array().is_some_and(|subsystems| !subsystems.is_empty()), "{line}");

    let crowd = Crowd::start(server.address, 4);
    // The first second of play comes late on a full machine.
    let told = || Some(top(&address, &["--once"]).stdout).filter(|text| text.contains("  4 players"));
    let text = wait_until(WITHIN, told).expect("players are told of");
    assert!(text.starts_with(&format!("{address}  running")), "{text}");
    let bars = text.lines().nth(2).expect("a line of bars");
    assert!(bars.chars().count() > 1, "a bar for each frame:\n{text}");
    // KIND WORLD PLAYERS TICK_US ...
    let is_played = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 3 && words[2] != "0" && words[3].parse::<f64>().is_ok_and(|us| us > 0.0)
    };
    let mut worlds = text.lines().skip_while(|line| !line.contains("  players  tick us")).skip(1);
    assert!(worlds.any(is_played), "{text}");
    assert_eq!(crowd.finish().disconnects, 0);
}

#[test]
fn what_is_no_server_of_ours_is_told_in_words() {
    top("127.0.0.1:1", &["--once"]).check_refused(&["127.0.0.1:1: ", "the admin port of a server that runs?"]);
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        for answer in ["HTTP/1.1 200 OK\r\n\r\n\u{1b}[2Jhello\n", "HTTP/1.1 404 Not Found\r\n\r\n", "SSH-2.0\r\n"] {
            let (mut stream, _) = stranger.accept().unwrap();
            // All that is asked is read, or closing would take the answer back.
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request that ends");
                asked.extend(byte);
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    top(&address, &["--once"]).check_refused(&["this is no line of a Throng server"]);
    top(&address, &["--once"]).check_refused(&["answered 404 to GET /api/watch"]);
    top(&address, &["--once"]).check_refused(&["not HTTP"]);
    answers.join().unwrap();
}
