//! A folder for one test, gone when it is over.

use std::path::{Path, PathBuf};

pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("throng-saves-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn store(&self) -> PathBuf {
        self.0.join("saves.redb")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
