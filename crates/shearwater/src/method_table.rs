//! A path's handlers by method.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use shearwater_http1::Method;

use crate::fast::Cors;
use crate::handlers::{Handler, Prepared};
use crate::router::RouteMethod;

/// A path's handlers by method, for [`App::route`](crate::App::route). [`get`], [`post`] … and [`on`] begin one.
///
/// A handler for `GET` serves `HEAD` too. `OPTIONS` and methods without a handler get a response with `Allow`.
///
/// ```
/// use std::time::Duration;
/// use shearwater::{App, Call, Cors, Request, Status, buffered, get, later};
///
/// let notes = get(later(async |call: &mut Call| format!("{:?}\n", call.query_raw())))
///     .post(buffered(64 * 1024, |_: &Request, note: &[u8]| (Status::CREATED, note.to_vec())))
///     .on("PROPFIND", |_: &Request| Status::MULTI_STATUS)
///     .timeout(Duration::from_secs(30))
///     .cors(Cors::any());
/// let app = App::new().route("/notes", notes);
/// assert!(app.build().is_ok());
/// ```
pub struct MethodTable<S = ()> {
    pub(crate) entries: Vec<MethodEntry<S>>,
    pub(crate) timeout: Option<(Duration, &'static Location<'static>)>,
    pub(crate) cors: Option<(Cors, &'static Location<'static>)>,
    /// The protocol that its handler of `GET` upgrades to, also by HTTP/2.
    pub(crate) protocol: Option<(String, &'static Location<'static>)>,
}

/// A method's handler.
pub(crate) struct MethodEntry<S> {
    pub(crate) method: RouteMethod,
    pub(crate) prepared: Prepared<S>,
    pub(crate) location: &'static Location<'static>,
}

impl<S> fmt::Debug for MethodTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<_> = self.entries.iter().map(|entry| entry.method.to_string()).collect();
        f.debug_struct("MethodTable").field("methods", &methods).finish_non_exhaustive()
    }
}

/// Begins a table with a handler for a method: a standard one ([`Method`]) or an extension such as `"PROPFIND"`.
#[track_caller]
pub fn on<S, K>(method: impl Into<RouteMethod>, handler: impl Handler<S, K>) -> MethodTable<S> {
    MethodTable { entries: Vec::new(), timeout: None, cors: None, protocol: None }.on(method, handler)
}

impl<S> MethodTable<S> {
    /// Adds a handler for a method: a standard one ([`Method`]) or an extension such as `"PROPFIND"`.
    ///
    /// A second handler for a method, and a method that can't be routed (`CONNECT`), are errors at startup.
    #[must_use]
    #[track_caller]
    pub fn on<K>(mut self, method: impl Into<RouteMethod>, handler: impl Handler<S, K>) -> Self {
        let (method, prepared, location) = (method.into(), handler.prepare(), Location::caller());
        self.entries.push(MethodEntry { method, prepared, location });
        self
    }

    /// Limits the time of its handlers that wait: the client gets a `503`, or a stream that has begun is cut off.
    ///
    /// The time begins when the handler is called, and the handler is dropped at its end. A table without a handler that
    /// waits is an error at startup.
    #[must_use]
    #[track_caller]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some((timeout, Location::caller()));
        self
    }

    /// Passes extended CONNECTs for a protocol such as `websocket` to its handler of `GET`, too (RFC 8441).
    ///
    /// By HTTP/2 they ask for what a `GET` with `Upgrade` asks for by HTTP/1.1, and the handler
    /// [upgrades](shearwater_engine::Response::upgrade) both in the same way. A table without this never sees one. Without a
    /// handler of `GET`, and with an invalid name of a protocol, it is an error at startup.
    #[must_use]
    #[track_caller]
    pub fn upgrades(mut self, protocol: impl Into<String>) -> Self {
        self.protocol = Some((protocol.into(), Location::caller()));
        self
    }

    /// Lets pages of other origins use its methods (CORS), and handles their preflights (`OPTIONS`).
    ///
    /// A preflight for a method that the table doesn't have goes to the mount or fallback that covers the path, if there is
    /// one. An invalid policy, and a handler for `OPTIONS` besides, are errors at startup.
    #[must_use]
    #[track_caller]
    pub fn cors(mut self, cors: Cors) -> Self {
        self.cors = Some((cors, Location::caller()));
        self
    }
}

macro_rules! methods {
    ($($name:ident $method:ident $text:literal)*) => {
        $(
            #[doc = concat!("Begins a table with a handler for `", $text, "`.")]
            #[track_caller]
            pub fn $name<S, K>(handler: impl Handler<S, K>) -> MethodTable<S> {
                on(Method::$method, handler)
            }
        )*

        impl<S> MethodTable<S> {
            $(
                #[doc = concat!("Adds a handler for `", $text, "`. See [`on`](Self::on).")]
                #[must_use]
                #[track_caller]
                pub fn $name<K>(self, handler: impl Handler<S, K>) -> Self {
                    self.on(Method::$method, handler)
                }
            )*
        }
    };
}

methods! {
    get Get "GET"
    post Post "POST"
    put Put "PUT"
    patch Patch "PATCH"
    delete Delete "DELETE"
}
