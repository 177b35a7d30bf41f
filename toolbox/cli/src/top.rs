//! `throng top`: how a running server does, drawn anew each second, for who has a terminal and no browser.
//!
//! Follows the stream of the admin port ([`throng_admin::watch`]), which the console's page follows, too. What a server
//! says may be any program's word: nothing of it reaches the terminal unescaped.

mod screen;

use std::{
    io::{self, BufRead, IsTerminal, Write},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use throng_admin::watch::document::{Frames, Health, Line, Second};

use crate::{
    admin_port::{self, ShownKey, ShownKeyArguments},
    outcome::{CommandResult, Verdict},
    output::remark,
};

#[derive(Args)]
pub struct TopArguments {
    /// The server's admin port.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:9100")]
    server: String,
    #[command(flatten)]
    key: ShownKeyArguments,
    /// One second of it, and no more.
    #[arg(long)]
    once: bool,
    /// Print one JSON object a second: `health`, and `second`, which is null while the server's frame stands still.
    #[arg(long)]
    json: bool,
}

/// Before a server that is gone is looked for again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Without a second for so many lines of health its frame stands still: health comes once a second.
const STILL_AFTER: u32 = 3;
/// Frames that the screen shows.
const FRAMES_KEPT: usize = 600;
/// A stream that says nothing for so long is dead: health comes once a second.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// A line of a server of many worlds has some 30 KB.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// What the server has told so far.
#[derive(Default)]
struct Told {
    health: Option<Health>,
    second: Option<Second>,
    /// Lines of health since the last second.
    without_second: u32,
    /// Length of the last frames, the newest last (us).
    frames: Vec<u32>,
}

/// What scripts get.
#[derive(Serialize)]
struct Object<'a> {
    health: &'a Health,
    second: Option<&'a Second>,
}

pub fn run(arguments: TopArguments) -> CommandResult {
    let TopArguments { server, key, once, json } = arguments;
    let key = key.key()?;
    let is_drawn = !json && !once && io::stdout().is_terminal();
    loop {
        match follow(&server, &key, once, json, is_drawn) {
            Ok(()) => return Ok(Verdict::Fine),
            // Who looks at a screen waits for the next server on that port.
            Err(reason) if is_drawn && reason.may_pass => {
                remark(format_args!("{}; looking again", reason.text));
                std::thread::sleep(AGAIN_AFTER);
            }
            Err(reason) => return Err(reason.text.into()),
        }
    }
}

struct Reason {
    text: String,
    /// It may be otherwise in a moment.
    may_pass: bool,
}

fn follow(server: &str, key: &ShownKey, once: bool, json: bool, is_drawn: bool) -> Result<(), Reason> {
    let passing = |text: String| Reason { text, may_pass: true };
    let (status, mut stream) = admin_port::open(server, key, "/api/watch", SILENCE_MAX).map_err(passing)?;
    if status != 200 {
        let refused = admin_port::error_in(&mut stream);
        let text = refused.unwrap_or_else(|| admin_port::strange_answer(server, status, "GET /api/watch"));
        return Err(Reason { text: format!("{server}: {text}"), may_pass: status == 503 });
    }
    let mut told = Told::default();
    loop {
        let line = next_line(&mut stream).map_err(|error| passing(format!("{server}: {error}")))?;
        let is_health = matches!(line, Line::Health(_));
        told.take(line);
        let Some(health) = told.health.as_ref().filter(|_| is_health) else { continue };
        let second = told.second.as_ref().filter(|_| told.without_second <= STILL_AFTER);
        if second.is_none() && told.without_second < STILL_AFTER {
            // The first one is not over yet.
            continue;
        }
        let out = &mut io::stdout().lock();
        let printed = if json {
            let object = serde_json::to_string(&Object { health, second }).expect("numbers and texts");
            writeln!(out, "{object}")
        } else if is_drawn {
            screen::draw(server, health, second, &told.frames, out)
        } else {
            let lines = screen::lines(server, health, second, &told.frames, screen::ROWS);
            lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| writeln!(out))
        };
        match printed.and_then(|()| out.flush()) {
            Ok(()) if !once => {}
            Ok(()) => return Ok(()),
            // Whoever read has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Reason { text: format!("stdout: {error}"), may_pass: false }),
        }
    }
}

impl Told {
    fn take(&mut self, line: Line) {
        match line {
            Line::Hello(_) | Line::Past(_) => {}
            Line::Frames(Frames { us, .. }) => {
                self.frames.extend(us);
                let surplus = self.frames.len().saturating_sub(FRAMES_KEPT);
                self.frames.drain(..surplus);
            }
            Line::Health(health) => {
                self.health = Some(health);
                self.without_second += 1;
            }
            Line::Second(second) => {
                self.second = Some(*second);
                self.without_second = 0;
            }
        }
    }
}

fn next_line(stream: &mut impl BufRead) -> Result<Line, String> {
    let mut text = Vec::new();
    let read = io::Read::take(&mut *stream, LINE_BYTES_MAX).read_until(b'\n', &mut text);
    match read {
        Ok(0) => Err("the server has ended the stream".to_owned()),
        Ok(_) => serde_json::from_slice(&text).map_err(|error| format!("this is no line of a Throng server: {error}")),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Err(format!("the server said nothing for {} s", SILENCE_MAX.as_secs()))
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_is_told_in_words() {
        let check = |text: &str, expect: &str| {
            let told = next_line(&mut text.as_bytes()).unwrap_err();
            assert!(told.starts_with(expect), "{told}");
        };
        check("", "the server has ended the stream");
        check("<html>\n", "this is no line of a Throng server");
        check("{\"line\":\"frames\",\"num", "this is no line of a Throng server");
        let line = next_line(&mut "{\"line\":\"frames\",\"numbers\":[1.0],\"us\":[5],\"lost\":0.0}\nmore".as_bytes());
        assert!(matches!(line, Ok(Line::Frames(_))));
    }

    #[test]
    fn the_last_frames_are_kept() {
        let mut told = Told::default();
        let frames = |us: Vec<u32>| Line::Frames(Frames { us, ..Frames::default() });
        (0..1_000).for_each(|us| told.take(frames(vec![us, us])));
        assert_eq!((told.frames.len(), told.frames.last()), (FRAMES_KEPT, Some(&999)));
    }
}
