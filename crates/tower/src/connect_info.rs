//! The client's address, where services look for it: `ConnectInfo` of axum, or the bare address where that is left out.

use std::net::SocketAddr;

use http::Request;

/// Tells a service where the request came from.
#[cfg(feature = "axum")]
pub(crate) fn insert<B>(request: &mut Request<B>, peer: SocketAddr) {
    request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
}

/// Tells a service where the request came from.
#[cfg(not(feature = "axum"))]
pub(crate) fn insert<B>(request: &mut Request<B>, peer: SocketAddr) {
    request.extensions_mut().insert(peer);
}
