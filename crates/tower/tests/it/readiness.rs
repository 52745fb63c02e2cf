//! Services that aren't ready immediately.

use std::io::Error;
use std::task::{Context, Poll};

use axum::body::Bytes;
use axum::http::{Request, Response};
use http_body_util::Full;
use shearwater::Verbosity;
use shearwater_tower::{Body, bind};
use tower::Service;

use crate::served::Served;

/// A service that is ready after a number of polls, or never.
#[derive(Clone)]
struct Reluctant {
    asked: usize,
    ready_at: Option<usize>,
}

impl Service<Request<Body>> for Reluctant {
    type Response = Response<Full<Bytes>>;
    type Error = Error;
    type Future = std::future::Ready<Result<Self::Response, Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(ready_at) = self.ready_at else {
            return Poll::Ready(Err(Error::other("as the test wants it")));
        };
        self.asked += 1;
        if self.asked < ready_at {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(Some(self.asked) >= self.ready_at, "it is called though it isn't ready");
        std::future::ready(Ok(Response::new(Full::new(Bytes::from(self.asked.to_string())))))
    }
}

#[test]
fn they_are_waited_for() {
    for ready_at in [1, 2, 5] {
        let service = Reluctant { asked: 0, ready_at: Some(ready_at) };
        let served = Served::of(bind("127.0.0.1:0", service).workers(1).verbosity(Verbosity::Off));
        let mut client = served.connect();
        for _ in 0..3 {
            assert_eq!(client.request("GET", "/", &[]).text(), ready_at.to_string());
            assert_eq!(client.send_body("POST", "/", &[], b"a body").text(), ready_at.to_string());
        }
    }
}

#[test]
fn one_that_never_will_be_is_a_500() {
    let served = Served::of(
        bind("127.0.0.1:0", Reluctant { asked: 0, ready_at: None }).workers(1).verbosity(Verbosity::Off),
    );
    assert_eq!(served.connect().request("GET", "/", &[]).status, 500);
    assert_eq!(served.connect().send_body("POST", "/", &[], b"a body").status, 500);
    assert_eq!(served.totals().handler_errors, 2);
}
