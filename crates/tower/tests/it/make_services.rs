//! axum's routers and make services, and the client addresses that they get.

use std::convert::Infallible;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};

use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Router, ServiceExt};
use shearwater_tower::{AxumRequests, MakeHttpService, bind, serve};
use testkit::TIMEOUT;
use tower::{Layer, service_fn};

use crate::served::Served;

/// The response to `GET /`, and the client's address.
fn got<Kind>(service: impl MakeHttpService<Kind>) -> (String, String) {
    let served = Served::of(bind("127.0.0.1:0", service).workers(1));
    let mut client = served.connect();
    let own = client.stream().local_addr().expect("an address").to_string();
    (client.request("GET", "/", &[]).text().to_owned(), own)
}

async fn hello() -> &'static str {
    "hello"
}

#[test]
fn routers_routes_handlers_and_their_make_services_are_served() {
    let router = || Router::new().route("/", get(hello));
    assert_eq!(got(router()).0, "hello");
    assert_eq!(got(router().into_make_service()).0, "hello");
    assert_eq!(got(get(hello)).0, "hello");
    assert_eq!(got(get(hello).into_make_service()).0, "hello");
    assert_eq!(got(Handler::with_state(hello, ())).0, "hello");
    assert_eq!(got(axum::handler::HandlerWithoutStateExt::into_make_service(hello)).0, "hello");
}

#[test]
fn services_fixed_to_axums_request_are_served() {
    async fn shout(request: Request, next: Next) -> Response {
        let mut response = next.run(request).await;
        response.headers_mut().insert("x-layer", "yes".parse().expect("a value"));
        response
    }
    let layered = || from_fn(shout).layer(Router::new().route("/", get(hello)));
    assert_eq!(got(AxumRequests(layered())).0, "hello");
    assert_eq!(got(ServiceExt::<Request>::into_make_service(layered())).0, "hello");
    let own =
        service_fn(async |request: Request| Ok::<_, Infallible>(request.uri().to_string().into_response()));
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
fn make_services_with_connect_info_know_the_client() {
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
fn a_client_without_an_address_gets_a_500_where_one_is_needed() {
    let path = std::env::temp_dir().join(format!("shearwater-make-{}", std::process::id()));
    drop(std::fs::remove_file(&path));
    let listener = UnixListener::bind(&path).expect("a socket");
    let service = Router::new().route("/", get(hello)).into_make_service_with_connect_info::<SocketAddr>();
    let running = serve(listener, service).workers(1).start().expect("starts");
    let mut stream = UnixStream::connect(&path).expect("connects");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").expect("sends");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("an orderly close");
    assert!(
        response.starts_with("HTTP/1.1 500 ") && response.ends_with("The client has no address.\n"),
        "{response}"
    );
    drop(running);
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn a_listener_s_address_is_known_before_it_serves() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    assert_eq!(serve(listener, Router::new()).local_addr().expect("known"), address);
    let error = bind("127.0.0.1:0", Router::new()).local_addr().expect_err("not bound");
    assert!(error.to_string().contains("Running::address"), "{error}");
    let path = std::env::temp_dir().join(format!("shearwater-addr-{}", std::process::id()));
    drop(std::fs::remove_file(&path));
    let error = serve(UnixListener::bind(&path).expect("a socket"), Router::new()).local_addr();
    assert_eq!(error.expect_err("it has none").kind(), ErrorKind::Unsupported);
    std::fs::remove_file(&path).expect("it is there");
}
