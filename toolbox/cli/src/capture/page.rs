//! `throng capture show --html` and `throng capture viewer`: captures in a browser, as pages that need nothing else.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use throng_capture::{
    Capture, format,
    story::{self, Options},
};
use throng_pages::{Story, VIEWER, write_viewer};

use super::file;
use crate::outcome::{CommandResult, Verdict};

#[derive(Args)]
pub struct ViewerArguments {
    /// Where to; `-` is stdout.
    #[arg(long, value_name = "FILE", default_value = "throng-viewer.html")]
    out: PathBuf,
}

/// Writes the page without a capture.
pub fn viewer(arguments: &ViewerArguments) -> CommandResult {
    write(&arguments.out, |out| out.write_all(VIEWER.as_bytes()))
}

/// Writes the page with `capture`, which was read from `source`, and the story of `frame` inside.
pub fn show(capture: &Capture, source: &Path, frame: Option<u64>, out: Option<&Path>) -> CommandResult {
    let options = Options { frame, with_emphasis: false };
    let told = story::tell(capture, &options).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut text = Vec::new();
    told.write_text(false, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let story = Story {
        file: &name,
        verdict: &told.verdict,
        text: &text,
        frame: told.frame.as_ref().map(|frame| frame.number),
    };
    let mut bytes = Vec::new();
    format::write(capture, &mut bytes)?;
    let path = out.map_or_else(|| source.with_extension("html"), Path::to_owned);
    if file::is_same(&path, source) {
        return Err(format!("{}: is the capture itself; give another name behind --html", path.display()).into());
    }
    write(&path, |out| write_viewer(&bytes, &story, out))
}

fn write(path: &Path, page: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> CommandResult {
    if path.as_os_str() == "-" {
        let mut out = BufWriter::new(io::stdout().lock());
        page(&mut out)?;
        out.flush()?;
        return Ok(Verdict::Fine);
    }
    let context = |error: io::Error| format!("{}: {error}", path.display());
    let mut out = BufWriter::new(File::create(path).map_err(context)?);
    page(&mut out).and_then(|()| out.flush()).map_err(context)?;
    let bytes = std::fs::metadata(path).map_err(context)?.len();
    writeln!(io::stdout(), "{} ({bytes} bytes); open it in a browser", path.display())?;
    Ok(Verdict::Fine)
}
