//! The body of an answer that lasts: lines, or pieces of a file, as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;

/// Ends when nobody sends any more.
pub(crate) struct Lines(mpsc::Receiver<Bytes>);

impl Lines {
    pub fn new(lines: mpsc::Receiver<Bytes>) -> Self {
        Self(lines)
    }
}

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}
