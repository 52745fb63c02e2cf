//! Requirements on services.

use bytes::Buf;
use http::{Request, Response};
use tower_service::Service;

use crate::body::Body;

/// Any error, as tower services use it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A service of HTTP requests, such as an axum `Router`. Implemented for all types that qualify.
///
/// The service is cloned for each request, so clones should be cheap.
pub trait HttpService:
    Service<
        Request<Body>,
        Response = Response<Self::ResponseBody>,
        Error = Self::Fault,
        Future = Self::ResponseFuture,
    > + Clone
    + Send
    + 'static
{
    /// The body type of responses.
    type ResponseBody: http_body::Body<Data = Self::Piece, Error = Self::BodyFault> + Send + 'static;
    /// The data type of the body's frames.
    type Piece: Buf + Send;
    /// The error type of the body.
    type BodyFault: Into<BoxError>;
    /// The error type of the service.
    type Fault: Into<BoxError>;
    /// The future of a response.
    type ResponseFuture: Future<Output = Result<Response<Self::ResponseBody>, Self::Fault>> + Send + 'static;
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
    type ResponseBody = B;
    type Piece = B::Data;
    type BodyFault = B::Error;
    type Fault = S::Error;
    type ResponseFuture = S::Future;
}
