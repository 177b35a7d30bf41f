//! Where the server hands out what uploads are counted in.

use std::sync::Arc;

use super::SharedUploadCounts;
use crate::server::Server;

impl Server {
    /// Where a thread that uploads the server's files counts.
    pub fn upload_counts(&self) -> Arc<SharedUploadCounts> {
        self.uploads.shared.clone()
    }
}
