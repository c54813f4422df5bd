//! How many requests of one connection are under way, until their answers are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::watch;

/// The count of one connection.
#[derive(Clone)]
pub struct UnderWay(Arc<watch::Sender<usize>>);

/// One of the count.
pub struct Begun(UnderWay);

/// The body of an answer, which is under way until its end.
pub struct Answering {
    body: Body,
    _begun: Begun,
}

impl UnderWay {
    pub fn new() -> (Self, watch::Receiver<usize>) {
        let (count, seen) = watch::channel(0);
        (Self(Arc::new(count)), seen)
    }

    pub fn begin(&self) -> Begun {
        self.0.send_modify(|count| *count += 1);
        Begun(self.clone())
    }
}

impl Begun {
    pub fn until_end_of(self, body: Body) -> Answering {
        Answering { body, _begun: self }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
