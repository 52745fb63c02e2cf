//! HTTP/2 requests as services see them: as on hyper.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use shearwater::Http2Options;
use shearwater_tower::bind_tls;
use testkit::tls::{ClientTls, ClientTlsOptions};
use testkit::{TIMEOUT, TestClient};

use crate::http2_client::{Client, OnHyper, content_of, run};
use crate::local::certificates;
use crate::served::{Served, drivers, here};

/// Describes a request.
async fn describe(request: Request) -> String {
    let uri = request.uri();
    let mut names: Vec<_> = request.headers().keys().map(header::HeaderName::as_str).collect();
    names.sort_unstable();
    let host = request.headers().get(header::HOST);
    format!(
        "{} {uri} {:?} {:?} {:?} {:?} {:?} host {host:?} of {names:?}",
        request.method(),
        request.version(),
        uri.scheme_str(),
        uri.authority().map(|authority| authority.as_str()),
        uri.path(),
        uri.query(),
    )
}

fn router() -> Router {
    Router::new().fallback(describe)
}

fn in_clear(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

const SCHEME: (&str, &str) = (":scheme", "http");

#[test]
fn requests_are_as_on_hyper() {
    if testkit::tls::skips("the client is in clear") {
        return;
    }
    let hyper = OnHyper::new(router());
    let (get, a) = ((":method", "GET"), (":authority", "a.test"));
    let cases: &[&[(&str, &str)]] = &[
        &[get, SCHEME, a, (":path", "/")],
        &[get, SCHEME, a, (":path", "/x%20y?q=1&r")],
        &[get, SCHEME, a, (":path", "/?")],
        &[get, SCHEME, (":authority", "[::1]:8080"), (":path", "//x/../y")],
        &[get, SCHEME, (":authority", "A.Test:80"), (":path", "/"), ("accept", "*/*"), ("cookie", "a=b")],
        &[get, SCHEME, a, (":path", "/"), ("te", "trailers"), ("x-own", "1"), ("x-own", "2")],
        &[(":method", "HEAD"), SCHEME, a, (":path", "/")],
        &[(":method", "PROPFIND"), SCHEME, a, (":path", "/dav")],
        &[(":method", "OPTIONS"), SCHEME, a, (":path", "*")],
        // A request that was translated from HTTP/1.
        &[get, SCHEME, (":path", "/x?y"), ("host", "a.test")],
    ];
    for driver in drivers() {
        let served = Served::on(driver, router());
        for fields in cases {
            let text = content_of(in_clear(served.address), fields);
            assert_eq!(text, content_of(in_clear(hyper.address), fields), "{driver:?} {fields:?}");
            assert_eq!(text.is_empty(), fields[0].1 == "HEAD", "{text}");
        }
    }
}

#[test]
fn a_host_field_beside_the_authority_is_dropped() {
    if testkit::tls::skips("the client is in clear") {
        return;
    }
    let served = Served::new(router());
    let fields = [(":method", "GET"), SCHEME, (":authority", "a.test"), (":path", "/"), ("host", "a.test")];
    let text = content_of(in_clear(served.address), &fields);
    assert!(text.starts_with("GET http://a.test/ HTTP/2.0"), "{text}");
    assert!(text.ends_with("host None of []"), "{text}");
}

#[test]
fn requests_by_tls_are_https() {
    let options = ClientTlsOptions { protocols: &["h2"], ..ClientTlsOptions::default() };
    let tls = ClientTls::with("localhost", &options).expect("settings");
    for driver in drivers() {
        let serve = bind_tls("127.0.0.1:0", certificates(), router()).workers(1).driver(driver);
        let served = Served::of(serve);
        let client = TestClient::connect_by_tls(served.address, &tls);
        let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/x")];
        let text = content_of(client.stream(), &fields);
        assert!(text.starts_with("GET https://localhost/x HTTP/2.0 Some(\"https\")"), "{text}");
    }
}

#[test]
fn prior_knowledge_is_a_setting() {
    if testkit::tls::skips("the client is in clear") {
        return;
    }
    let http1 = |served: &Served, request: &str| {
        let mut client = in_clear(served.address);
        client.write_all(request.as_bytes()).expect("the server reads");
        let mut response = String::new();
        client.read_to_string(&mut response).expect("text");
        response
    };
    let served = Served::of(here(router()).http2(Http2Options::default()));
    let response = http1(&served, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");

    let served = Served::new(router());
    let response = http1(&served, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(response.contains("GET / HTTP/1.1"), "{response}");
    let response = run(async { Client::connect(served.address).await.get("/").await.expect("a response") });
    assert!(response.text().contains("HTTP/2.0"), "{}", response.text());
}
