//! Services: what they must implement, and where they come from.

use std::net::SocketAddr;

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

/// A source of services for [`serve`](crate::serve()) and [`bind`](crate::bind).
///
/// Implemented for each [`HttpService`], and for the results of axum's `into_make_service` and
/// `into_make_service_with_connect_info`.
///
/// `Kind` distinguishes these and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be served",
    note = "a router with a state needs `with_state` first",
    note = "a service that is fixed to `axum::extract::Request` goes into `shearwater_tower::AxumRequests`",
    note = "a type of `into_make_service_with_connect_info` has to implement `Connected<SocketAddr>`"
)]
pub trait MakeHttpService<Kind> {
    /// The type of service.
    type Service: HttpService;
    /// The source of services on each worker.
    type Maker: Maker<Service = Self::Service>;

    /// Converts into the source of services.
    #[doc(hidden)]
    fn into_maker(self) -> Self::Maker;
}

/// A source of services on a worker. Implemented by this crate alone.
pub trait Maker: Clone + Send + 'static {
    /// The type of service.
    type Service: HttpService;
    /// True if making a service needs the client's address.
    #[doc(hidden)]
    const NEEDS_PEER: bool;

    /// Returns the service for a request, or `None` if it needs the client's address and there is none.
    #[doc(hidden)]
    fn make(&self, peer: Option<SocketAddr>) -> Option<Self::Service>;
}

/// One service for all clients, cloned for each request.
#[derive(Debug, Clone)]
pub struct CloneService<S>(S);

impl<S: HttpService> Maker for CloneService<S> {
    type Service = S;
    const NEEDS_PEER: bool = false;

    #[inline]
    fn make(&self, _: Option<SocketAddr>) -> Option<S> {
        Some(self.0.clone())
    }
}

/// The [kind](MakeHttpService) of services themselves.
#[derive(Debug)]
pub struct OfService;

impl<S: HttpService> MakeHttpService<OfService> for S {
    type Service = S;
    type Maker = CloneService<S>;

    fn into_maker(self) -> CloneService<S> {
        CloneService(self)
    }
}

#[cfg(feature = "axum")]
pub use of_axum::{AxumRequests, ByPeer, OfAxum};

#[cfg(feature = "axum")]
mod of_axum {
    use std::convert::Infallible;
    use std::net::SocketAddr;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
    use axum::routing::IntoMakeService;
    use http::Request;
    use tower_service::Service;

    use super::{CloneService, HttpService, MakeHttpService, Maker};
    use crate::body::Body;

    /// Adapts a service of `axum::extract::Request` to an [`HttpService`].
    ///
    /// ```
    /// use axum::response::{IntoResponse, Response};
    /// use shearwater_tower::{AxumRequests, bind};
    ///
    /// let service = tower::service_fn(async |request: axum::extract::Request| -> Result<Response, std::convert::Infallible> {
    ///     Ok(request.uri().to_string().into_response())
    /// });
    /// let serve = bind("127.0.0.1:3000", AxumRequests(service));
    /// # drop(serve);
    /// ```
    #[derive(Debug, Clone)]
    pub struct AxumRequests<S>(
        /// The type of service.
        pub S,
    );

    impl<S: Service<axum::extract::Request>> Service<Request<Body>> for AxumRequests<S> {
        type Response = S::Response;
        type Error = S::Error;
        type Future = S::Future;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, request: Request<Body>) -> S::Future {
            self.0.call(request.map(axum::body::Body::new))
        }
    }

    /// The [kind](MakeHttpService) of axum's make services.
    #[derive(Debug)]
    pub struct OfAxum;

    impl<S> MakeHttpService<OfAxum> for IntoMakeService<S>
    where
        S: Clone,
        AxumRequests<S>: HttpService,
    {
        type Service = AxumRequests<S>;
        type Maker = CloneService<AxumRequests<S>>;

        fn into_maker(mut self) -> Self::Maker {
            CloneService(AxumRequests(ready_output(self.call(()))))
        }
    }

    impl<S, C> MakeHttpService<OfAxum> for IntoMakeServiceWithConnectInfo<S, C>
    where
        Self: Service<SocketAddr>,
        ByPeer<Self>: Maker<Service = AxumRequests<<Self as Service<SocketAddr>>::Response>>,
        AxumRequests<<Self as Service<SocketAddr>>::Response>: HttpService,
    {
        type Service = AxumRequests<<Self as Service<SocketAddr>>::Response>;
        type Maker = ByPeer<Self>;

        fn into_maker(self) -> Self::Maker {
            ByPeer(self)
        }
    }

    /// A source of services that know the client's address.
    #[derive(Debug, Clone)]
    pub struct ByPeer<M>(M);

    impl<M> Maker for ByPeer<M>
    where
        M: Service<SocketAddr, Error = Infallible> + Clone + Send + 'static,
        AxumRequests<M::Response>: HttpService,
    {
        type Service = AxumRequests<M::Response>;
        const NEEDS_PEER: bool = true;

        fn make(&self, peer: Option<SocketAddr>) -> Option<Self::Service> {
            Some(AxumRequests(ready_output(self.0.clone().call(peer?))))
        }
    }

    /// Returns the output of a future that is ready immediately, as those of axum's make services are.
    fn ready_output<T>(future: impl Future<Output = Result<T, Infallible>>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(made)) => made,
            Poll::Pending => unreachable!("axum's make services are ready immediately"),
        }
    }
}
