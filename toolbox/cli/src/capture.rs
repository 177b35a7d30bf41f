//! `throng capture`: what recorders kept of bad frames, from having one saved to opening it in another viewer.
//!
//! Captures may come from strangers, so nothing of one reaches the terminal unescaped, and a damaged one is told with
//! its file and the place of the damage.

mod file;
mod list;
mod page;
mod save;

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use throng_capture::{
    convert::{self, Target},
    story::{self, Options},
};

use crate::outcome::{CommandResult, Verdict};

#[derive(Args)]
pub struct CaptureArguments {
    #[command(subcommand)]
    command: CaptureCommand,
}

#[derive(Subcommand)]
enum CaptureCommand {
    /// Have a running server save what its recorder holds.
    Save(save::SaveArguments),
    /// The captures of a folder, newest last.
    List(list::ListArguments),
    /// What happened in the bad frame, its cause first; with --html as a page with a picture of all threads.
    Show(ShowArguments),
    /// The page in which browsers show captures, with none inside: one drops a capture into it.
    Viewer(page::ViewerArguments),
    /// The same for another viewer: Perfetto and Tracy (fxt, chrome), speedscope, KCachegrind (callgrind), flame graphs
    /// (folded).
    Convert(ConvertArguments),
}

#[derive(Args)]
struct ShowArguments {
    /// A capture.
    file: PathBuf,
    /// Another frame than the one that it was saved for.
    #[arg(long, value_name = "NUMBER")]
    frame: Option<u64>,
    #[command(flatten)]
    memory: file::MemoryArguments,
    /// Print the same facts as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write a page instead, with the capture and its story inside; any browser opens it, without a network. `-` is
    /// stdout. Without a name, beside the capture.
    #[arg(long, value_name = "OUT", num_args = 0..=1, conflicts_with = "json")]
    html: Option<Option<PathBuf>>,
    /// In the page, leave log lines and notes as they are. Without it addresses, what looks like keys, and quoted text
    /// are taken out.
    #[arg(long, requires = "html")]
    with_free_text: bool,
}

#[derive(Args)]
struct ConvertArguments {
    /// A capture.
    file: PathBuf,
    /// fxt, chrome, speedscope, callgrind or folded.
    #[arg(long, value_name = "FORMAT")]
    to: Target,
    /// Where to; `-` is stdout. Without it, beside the capture with the ending that the viewer knows.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave log lines and notes as they are. Without it addresses, what looks like keys, and quoted text are taken
    /// out.
    #[arg(long)]
    with_free_text: bool,
    #[command(flatten)]
    memory: file::MemoryArguments,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: CaptureArguments) -> CommandResult {
    let result = match arguments.command {
        CaptureCommand::Save(arguments) => save::run(&arguments),
        CaptureCommand::List(arguments) => list::run(&arguments),
        CaptureCommand::Show(arguments) => show(&arguments),
        CaptureCommand::Viewer(arguments) => page::viewer(&arguments),
        CaptureCommand::Convert(arguments) => convert(&arguments),
    };
    match result {
        // Whoever read the output has seen enough.
        Err(error) if is_broken_pipe(error.as_ref()) => Ok(Verdict::Fine),
        other => other,
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn show(arguments: &ShowArguments) -> CommandResult {
    let capture = file::read(&arguments.file, &arguments.memory)?;
    if let Some(out) = &arguments.html {
        let capture = if arguments.with_free_text { capture } else { capture.without_free_text() };
        return page::show(&capture, &arguments.file, arguments.frame, out.as_deref());
    }
    let stdout = io::stdout();
    let options = Options { frame: arguments.frame, with_emphasis: stdout.is_terminal() };
    let told = story::tell(&capture, &options).map_err(|error| format!("{}: {error}", arguments.file.display()))?;
    let mut out = BufWriter::new(stdout.lock());
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string(&told)?)?;
    } else {
        told.write_text(options.with_emphasis, &mut out)?;
    }
    out.flush()?;
    Ok(Verdict::Fine)
}

fn convert(arguments: &ConvertArguments) -> CommandResult {
    let mut capture = file::read(&arguments.file, &arguments.memory)?;
    if !arguments.with_free_text {
        capture = capture.without_free_text();
    }
    let path = match &arguments.out {
        Some(path) if path.as_os_str() == "-" => {
            let mut out = BufWriter::new(io::stdout().lock());
            convert::convert(&capture, arguments.to, &mut out)?;
            out.flush()?;
            return Ok(Verdict::Fine);
        }
        Some(path) => path.clone(),
        None => arguments.file.with_extension(arguments.to.extension()),
    };
    let context = |error: io::Error| format!("{}: {error}", path.display());
    if file::is_same(&path, &arguments.file) {
        return Err(format!("{}: is the capture itself; give another --out", path.display()).into());
    }
    let file = File::create(&path).map_err(context)?;
    let mut out = BufWriter::new(file);
    convert::convert(&capture, arguments.to, &mut out).and_then(|()| out.flush()).map_err(context)?;
    let bytes = std::fs::metadata(&path).map_err(context)?.len();
    if arguments.json {
        let object = serde_json::json!({ "file": path, "to": arguments.to.name(), "bytes": bytes });
        writeln!(io::stdout(), "{object}")?;
    } else {
        writeln!(io::stdout(), "{} ({bytes} bytes)", path.display())?;
    }
    Ok(Verdict::Fine)
}
