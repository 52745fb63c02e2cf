//! The client's address as a request extension: axum's `ConnectInfo`, or a `SocketAddr` without the feature `axum`.

use std::net::SocketAddr;

use http::Request;

/// Adds the client's address to a request.
#[cfg(feature = "axum")]
pub(crate) fn insert<B>(request: &mut Request<B>, peer: SocketAddr) {
    request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
}

/// Adds the client's address to a request.
#[cfg(not(feature = "axum"))]
pub(crate) fn insert<B>(request: &mut Request<B>, peer: SocketAddr) {
    request.extensions_mut().insert(peer);
}
