//! The viewer of captures, with a capture inside or without.
//!
//! ```text
//!   ... <script type="application/json" id="story">{"file":...}</script>
//!       <script type="text/plain" id="capture">H4sI...</script>
//!       <script>the viewer</script>
//! ```
//!
//! Both are data to a browser: it runs neither, whatever stands in them.

use std::io::{self, Write};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;

/// The viewer, as a page into which one drops a capture.
pub const VIEWER: &str = include_str!("../built/viewer.html");

/// Where [`VIEWER`] takes a capture.
const PLACE: &str = "<!--capture-->";

/// What is told beside the picture of a capture.
#[derive(Debug, Clone, Serialize)]
pub struct Story<'a> {
    /// The file's name, as the page shows it.
    pub file: &'a str,
    /// One sentence that names the cause.
    pub verdict: &'a str,
    /// The story's text, whose names the page makes links of.
    pub text: &'a str,
    /// The number of the frame that it is about; the page opens there.
    pub frame: Option<u64>,
}

/// Writes the viewer with `capture`, the bytes of a capture file, inside. They are not looked at: the page refuses what
/// is no capture, in words. Fails only where `out` does.
pub fn write_viewer(capture: &[u8], story: &Story, mut out: impl Write) -> io::Result<()> {
    let (before, after) = VIEWER.split_once(PLACE).unwrap_or((VIEWER, ""));
    out.write_all(before.as_bytes())?;
    // Nothing in it may look like the end of the script that it stands in.
    let story = serde_json::to_string(story)?.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"story\">{story}</script>")?;
    write!(out, "<script type=\"text/plain\" id=\"capture\">")?;
    let mut packed = GzEncoder::new(EncoderWriter::new(&mut out, &STANDARD), Compression::default());
    packed.write_all(capture)?;
    packed.finish()?.finish()?;
    out.write_all(b"</script>")?;
    out.write_all(after.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use base64::Engine;
    use flate2::read::GzDecoder;

    use super::*;

    fn page(capture: &[u8], verdict: &str) -> String {
        let mut page = Vec::new();
        let story = Story { file: "a.capture", verdict, text: "what happened", frame: Some(7) };
        write_viewer(capture, &story, &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    fn data<'a>(page: &'a str, tag: &str) -> &'a str {
        let begin = page.find(tag).unwrap() + tag.len();
        &page[begin..begin + page[begin..].find("</script>").unwrap()]
    }

    #[test]
    fn a_page_holds_the_capture_and_its_story() {
        let capture: Vec<u8> = (0..100_000u32).flat_map(|value| (value % 251).to_le_bytes()).collect();
        let page = page(&capture, "it was slow");
        let packed = STANDARD.decode(data(&page, "<script type=\"text/plain\" id=\"capture\">")).unwrap();
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, capture);
        let story: serde_json::Value =
            serde_json::from_str(data(&page, "<script type=\"application/json\" id=\"story\">")).unwrap();
        assert_eq!(
            story,
            serde_json::json!({"file": "a.capture", "verdict": "it was slow", "text": "what happened", "frame": 7})
        );
        // The rest is the viewer, which comes after its data.
        assert!(page.len() > VIEWER.len() && page.find("id=\"capture\"") < page.rfind("<script>"));
    }

    #[test]
    fn names_in_a_story_cannot_end_its_script() {
        let page = page(b"", "</script><script>alert(1)</script><!--");
        assert!(!page.contains("alert(1)</script>"));
        assert_eq!(page.matches("</script>").count(), VIEWER.matches("</script>").count() + 2);
    }

    #[test]
    fn the_viewer_asks_no_network_for_anything() {
        assert!(VIEWER.contains("default-src 'none'") && VIEWER.contains("script-src 'sha256-"));
        assert!(!VIEWER.contains("connect-src") && !VIEWER.contains("unsafe-"));
        for address in ["src=\"http", "href=\"http", "url(http", "import("] {
            assert!(!VIEWER.contains(address), "{address}");
        }
        assert_eq!(VIEWER.matches(PLACE).count(), 1);
    }
}
