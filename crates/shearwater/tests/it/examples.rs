//! The examples of deferred handlers, on each driver.

use std::io::Write;

use shearwater::App;

use crate::served::{Served, drivers, here};

#[path = "../../examples/async_handlers.rs"]
#[expect(dead_code, reason = "its start is for the program")]
mod async_handlers;

#[path = "../../examples/coroutine_handlers.rs"]
#[expect(dead_code, reason = "its start is for the program")]
mod coroutine_handlers;

const TEXTS: [&str; 2] =
    [include_str!("../../examples/async_handlers.rs"), include_str!("../../examples/coroutine_handlers.rs")];

/// A body of many lines: more than a worker buffers.
const LINES: usize = 50_000;

#[test]
fn they_have_sixty_lines_at_most() {
    for text in TEXTS {
        assert!((1..=60).contains(&text.lines().count()));
    }
}

#[test]
fn they_do_what_they_say() {
    for driver in drivers() {
        for make in [async_handlers::app as fn() -> App, coroutine_handlers::app] {
            let served = Served::of(here().driver(driver), make());
            let mut client = served.connect();
            assert_eq!(client.request("GET", "/slow", &[]).text(), "slow\n");
            assert_eq!(client.request("GET", "/primes", &[]).text(), "9592 primes below 100000\n");
            let body = "a line\n".repeat(LINES);
            client.ask("POST", "/lines", &[&format!("Content-Length: {}", body.len())]);
            client.stream.get_mut().write_all(body.as_bytes()).expect("it is read");
            assert_eq!(client.response("POST").text(), format!("{LINES} lines\n"));
            client.ask("GET", "/ticks", &["Connection: close"]);
            let head = client.head();
            assert_eq!(head.field("Content-Type"), Some("text/event-stream"));
            let chunks = (1..=3).map(|tick| format!("9\r\ndata: {tick}\n\n\r\n")).collect::<String>();
            assert_eq!(String::from_utf8_lossy(&client.rest()), format!("{chunks}0\r\n\r\n"));
            assert_eq!(served.stop().responses_5xx, 0);
        }
    }
}
