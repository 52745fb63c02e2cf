//! What a service has to be, said once.

use bytes::Buf;
use http::{Request, Response};
use tower_service::Service;

use crate::body::Body;

/// Any error, as services of tower have them.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A service that answers requests: an axum `Router`, or any other of tower. Implemented for all that fit; nobody implements it by hand.
///
/// It is cloned for each request, so a clone should be cheap.
pub trait HttpService:
    Service<Request<Body>, Response = Response<Self::Answer>, Error = Self::Fault, Future = Self::Answering>
    + Clone
    + Send
    + 'static
{
    /// The body of its answers.
    type Answer: http_body::Body<Data = Self::Piece, Error = Self::BodyFault> + Send + 'static;
    /// A piece of it.
    type Piece: Buf + Send;
    /// Why that may fail.
    type BodyFault: Into<BoxError>;
    /// Why there may be no answer.
    type Fault: Into<BoxError>;
    /// An answer on its way.
    type Answering: Future<Output = Result<Response<Self::Answer>, Self::Fault>> + Send + 'static;
}

impl<S, B> HttpService for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Answer = B;
    type Piece = B::Data;
    type BodyFault = B::Error;
    type Fault = S::Error;
    type Answering = S::Future;
}
