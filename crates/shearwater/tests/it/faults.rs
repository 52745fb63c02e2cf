//! Faulty handlers: their request gets a `500`, others continue.

use shearwater::{App, Request, Response};

use crate::client::Client;
use crate::served::{Served, here};

fn app() -> App {
    let mut app = App::new();
    app.get("/", |_: &Request, response: &mut Response| {
        response.text("fine");
    });
    app.get("/panic", |_: &Request, response: &mut Response| {
        response.field("X-Half", "done").text("half done");
        panic!("asked to");
    });
    app.get("/status", |_: &Request, response: &mut Response| {
        response.status(99);
    });
    app.get("/field", |request: &Request, response: &mut Response| {
        let (name, value) = request.query().and_then(|query| query.split_once('=')).expect("a field to set");
        response.text("kept back").field(name, value.replace("%0d%0a", "\r\n"));
    });
    app
}

#[track_caller]
fn fails(client: &mut Client, target: &str) {
    let response = client.request("GET", target, &[]);
    assert_eq!((response.status, response.text()), (500, "Internal Server Error\n"), "{target}");
    assert_eq!(response.field("Connection"), Some("close"), "{target}");
    assert_eq!(response.field("X-Half"), None, "{target}");
    client.end_sending().is_ended();
}

#[test]
fn a_panic_costs_its_request_only() {
    let served = Served::app(app());
    let mut other = served.connect();
    assert_eq!(other.request("GET", "/", &[]).text(), "fine");
    fails(&mut served.connect(), "/panic");
    fails(&mut served.connect(), "/status");
    assert_eq!(other.request("GET", "/", &[]).text(), "fine");
    assert_eq!(served.connect().request("GET", "/", &[]).text(), "fine");
    let totals = served.stop();
    assert_eq!((totals.handler_panics, totals.handler_errors), (2, 0));
}

#[test]
fn many_panics_among_many_connections() {
    const CONNECTIONS: usize = 40;
    for workers in [1, 2] {
        let served = Served::of(here().workers(workers), app());
        let mut others: Vec<_> = (0..CONNECTIONS).map(|_| served.connect()).collect();
        for other in &mut others {
            fails(&mut served.connect(), "/panic");
            assert_eq!(other.request("GET", "/", &[]).text(), "fine");
        }
        for other in &mut others {
            assert_eq!(other.request("GET", "/", &[]).text(), "fine");
        }
        let totals = served.stop();
        assert_eq!(totals.handler_panics, CONNECTIONS as u64);
        assert_eq!(totals.requests, 3 * CONNECTIONS as u64);
    }
}

#[test]
fn what_was_pipelined_before_a_panic_is_responded() {
    let served = Served::app(app());
    let mut client = served.connect();
    client.ask("GET", "/", &[]).ask("GET", "/panic", &[]).ask("GET", "/", &[]);
    assert_eq!(client.response("GET").status, 200);
    assert_eq!(client.response("GET").status, 500);
    client.end_sending().is_ended();
}

#[test]
fn a_field_that_is_the_servers_own_or_malformed_is_a_500() {
    let served = Served::app(app());
    let bad = [
        "Content-Length=5",
        "content-length=5",
        "Transfer-Encoding=chunked",
        "CONNECTION=close",
        "Date=now",
        "X-Split=a%0d%0aSet-Cookie:b",
        "X(=a",
        "=a",
    ];
    for field in bad {
        fails(&mut served.connect(), &format!("/field?{field}"));
    }
    let mut client = served.connect();
    assert_eq!(client.request("GET", "/field?X-Good=a", &[]).field("X-Good"), Some("a"));
    assert_eq!(served.stop().handler_errors, bad.len() as u64);
}
