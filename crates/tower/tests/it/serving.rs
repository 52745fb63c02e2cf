//! Services that can be served, listeners, and the traits of public types.

use std::convert::Infallible;
use std::error::Error as _;
use std::fmt::Debug;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Router, ServiceExt};
use shearwater::{Error, StartError};
use shearwater_tower::{AxumRequests, Body, BodyError, Listen, MakeHttpService, Running, Serve, bind, serve};
use tower::{Layer, service_fn};

use crate::local::http2;
use crate::served::{Served, here, response_on_unix};

/// The response to `GET /`, and the client's address.
fn got<Kind>(service: impl MakeHttpService<Kind>) -> (String, String) {
    let served = Served::of(here(service));
    let mut client = served.connect();
    let own = client.stream().local_addr().expect("an address").to_string();
    (client.get("/").text().to_owned(), own)
}

async fn hello() -> &'static str {
    "hello"
}

fn router() -> Router {
    Router::new().route("/", get(hello))
}

#[test]
fn serves_routers_handlers_and_their_make_services() {
    assert_eq!(got(router()).0, "hello");
    assert_eq!(got(router().into_make_service()).0, "hello");
    assert_eq!(got(get(hello)).0, "hello");
    assert_eq!(got(get(hello).into_make_service()).0, "hello");
    assert_eq!(got(Handler::with_state(hello, ())).0, "hello");
    assert_eq!(got(axum::handler::HandlerWithoutStateExt::into_make_service(hello)).0, "hello");
}

#[test]
fn serves_services_of_axums_request() {
    async fn shout(request: Request, next: Next) -> Response {
        let mut response = next.run(request).await;
        response.headers_mut().insert("x-layer", "yes".parse().expect("a value"));
        response
    }
    let layered = || from_fn(shout).layer(router());
    assert_eq!(got(AxumRequests(layered())).0, "hello");
    assert_eq!(got(ServiceExt::<Request>::into_make_service(layered())).0, "hello");
    let own = service_fn(async |request: Request| {
        Ok::<_, Infallible>(request.uri().path().to_owned().into_response())
    });
    assert_eq!(got(AxumRequests(own)).0, "/");
}

/// An application's own address type.
#[derive(Clone)]
struct Guest(String);

impl Connected<SocketAddr> for Guest {
    fn connect_info(peer: SocketAddr) -> Self {
        Self(format!("guest at {peer}"))
    }
}

#[test]
fn passes_the_clients_address_to_make_services() {
    let show = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let (shown, own) =
        got(Router::new().route("/", any(show)).into_make_service_with_connect_info::<SocketAddr>());
    assert_eq!(shown, own);
    let show = async |ConnectInfo(Guest(name)): ConnectInfo<Guest>| name;
    let (shown, own) =
        got(Router::new().route("/", any(show)).into_make_service_with_connect_info::<Guest>());
    assert_eq!(shown, format!("guest at {own}"));
    let (shown, own) = got(any(show).into_make_service_with_connect_info::<Guest>());
    assert_eq!(shown, format!("guest at {own}"));
}

#[test]
fn responds_500_if_a_needed_address_is_missing() {
    let response = response_on_unix(router().into_make_service_with_connect_info::<SocketAddr>());
    assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
    assert!(response.ends_with("The client has no address.\n"), "{response}");
}

#[test]
fn serves_a_unix_socket() {
    let response = response_on_unix(router());
    assert!(response.ends_with("hello"), "{response}");
}

#[test]
fn serves_a_listening_socket_with_any_number_of_workers() {
    if testkit::tls::skips("a socket that the program gives is in clear") {
        return;
    }
    for workers in [1, 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let serve = serve(listener, router()).server(|server| server.http2(http2()));
        let served = Served::of(serve.workers(workers));
        assert_eq!(served.address, address);
        for _ in 0..4 {
            assert_eq!(served.connect().get("/").text(), "hello");
        }
    }
}

#[test]
fn reports_an_address_that_cannot_be_bound() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    match bind(address, router()).workers(1).start().err() {
        Some(Error::Start(StartError::Bind { error, .. })) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
        other => panic!("{other:?}"),
    }
    assert!(matches!(bind("nowhere", router()).start().err(), Some(Error::Address { .. })));
}

#[test]
fn knows_a_listeners_address_before_serving() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    assert_eq!(serve(listener, router()).local_addr().expect("known"), address);
    let error = here(router()).local_addr().expect_err("not bound");
    assert!(error.to_string().contains("Running::address"), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let listener = UnixListener::bind(folder.path().join("socket")).expect("a socket");
    let error = serve(listener, router()).local_addr().expect_err("it has none");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

fn sent<T: Debug + Send + 'static>() {}
fn shared<T: Debug + Send + Sync + 'static>() {}
fn spawned<F: IntoFuture<IntoFuture: Send + 'static>>(_: &F) {}

/// Checked by the compiler.
#[test]
fn bodies_and_servers_are_send() {
    shared::<Body>();
    shared::<BodyError>();
    shared::<Listen>();
    sent::<Serve<Router>>();
    sent::<Running>();
    sent::<<Serve<Router> as IntoFuture>::Output>();
    let serve = here(router());
    spawned(&serve);
    let shown = format!("{serve:?}");
    assert!(shown.starts_with("Serve { server: Ok("), "{shown}");
}

#[test]
fn body_error_has_a_complete_text() {
    assert_eq!(BodyError::Over.to_string(), "the request ended before its body was read");
    assert!(BodyError::Over.source().is_none());
}
