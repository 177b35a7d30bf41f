//! Pictures: what the README shows of a load run and of benches, each one SVG.
//!
//! Each is drawn from a file of figures that is committed, with the machine, the command and the build in it: so a
//! picture is what a command wrote, and says which. A test holds the committed pictures to the committed figures.
//!
//! ```text
//! docs/figures/load.json     a report.json of `throng load`     -> report.svg: how the report's page begins
//! docs/figures/crowd.json    `cargo xtask bench crowd --keep`   -> crowd.svg: one world against its players
//! docs/figures/peers.json    `cargo xtask bench peers --keep`   -> peers.svg: the table of peers as bars
//! ```
//!
//! A bench that compares two runs draws its own, second by second ([`draw_over_time`]).
//!
//! The charts are those of the report's page, in another size. They stand on a sheet of their own ([`sheet`]), light or
//! dark as the reader's browser is.

use std::path::Path;

use serde::de::DeserializeOwned;

pub use error::PictureError;
pub use over_time::{FigureOverTime, RunsOverTime, draw_over_time};

mod bench;
mod crowd;
mod error;
mod over_time;
mod peers;
mod report;
mod sheet;

/// One picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Of its file.
    pub name: &'static str,
    pub svg: String,
}

/// Draws all of them from the files in `figures`.
pub fn draw_all(figures: &Path) -> Result<Vec<Picture>, PictureError> {
    let report = report::draw(&read::<report::ReportFile>(&figures.join("load.json"))?)?;
    let crowd = crowd::draw(&read::<bench::Bench>(&figures.join("crowd.json"))?)?;
    let peers = peers::draw(&read::<bench::Bench>(&figures.join("peers.json"))?)?;
    let named = [("report.svg", report), ("crowd.svg", crowd), ("peers.svg", peers)];
    Ok(named.map(|(name, svg)| Picture { name, svg }).into())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, PictureError> {
    let text = std::fs::read_to_string(path).map_err(|cause| PictureError::Read { path: path.to_owned(), cause })?;
    serde_json::from_str(&text).map_err(|cause| PictureError::Json { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_something_else_is_named() {
        let folder = std::env::temp_dir().join(format!("throng-pictures-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let missing = draw_all(&folder).unwrap_err().to_string();
        std::fs::write(folder.join("load.json"), "[]").unwrap();
        let wrong = draw_all(&folder).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(missing.contains("load.json: cannot be read: "), "{missing}");
        assert!(wrong.contains("load.json: does not hold the figures of a picture: "), "{wrong}");
    }
}
