//! Why there is no picture.

use std::path::PathBuf;

use crate::charts::ChartError;

#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error("{}: cannot be read: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{}: does not hold the figures of a picture: {cause}", path.display())]
    Json { path: PathBuf, cause: serde_json::Error },
    #[error("there are no figures of {what}; measure it with the command that the file of figures names")]
    Missing { what: String },
    #[error(transparent)]
    Chart(#[from] ChartError),
}
