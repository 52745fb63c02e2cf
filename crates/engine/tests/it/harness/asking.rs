//! Requests of one client, with the responses to each step.

use super::unit::head;
use super::waiting::at_work;
use super::{Client, World};

/// Asserts the response to a client that sends this, and nothing more.
#[track_caller]
pub(crate) fn got(world: &mut World, request: impl AsRef<[u8]>) -> (String, Client) {
    let mut client = world.connect();
    client.send(request);
    world.pass(400);
    let text = String::from_utf8_lossy(client.read()).into_owned();
    (text, client)
}

pub(crate) fn get(target: &str) -> Vec<u8> {
    head("GET", target, "")
}

pub(crate) fn post(target: &str, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Returns head and body of a response.
#[track_caller]
pub(crate) fn parts(response: &str) -> (&str, &str) {
    response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no end of the head: {response:?}"))
}

/// Asserts that the connection is usable: another request succeeds on it.
#[track_caller]
pub(crate) fn assert_goes_on(world: &mut World, client: &mut Client) {
    client.send(get("/plain/9"));
    world.settle();
    let text = String::from_utf8_lossy(client.read()).into_owned();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text:?}");
    assert!(!client.peer.saw_fin() && !client.peer.saw_reset());
}

/// Ends the conversation and checks for leftovers.
#[track_caller]
pub(crate) fn end(mut world: World, client: &mut Client) {
    client.peer.finish();
    world.end();
    assert_eq!(at_work(), 0, "handlers at work");
}
