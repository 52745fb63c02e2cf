//! Requests that the server refuses, and after which it ends the connection.

use std::net::SocketAddr;

use super::exchange::Form;
use super::expected::Expected;
use crate::harness::answer::Fault;
use crate::harness::client::Client;
use crate::harness::trouble::Outcome;

/// Longer than any head may be, bytes.
const TOO_LONG_A_HEAD: usize = 70_000;
/// Longer than any target may be, bytes.
const TOO_LONG_A_TARGET: usize = 9_000;
/// More field lines than a head may have.
const TOO_MANY_FIELDS: usize = 200;
/// What a client sends of a body that is refused at its head, bytes.
const SENT_IN_VAIN: usize = 50_000;

/// Every kind of refusal, with the status that it has to get.
fn drafts() -> Vec<(Vec<u8>, u16)> {
    let request = |line: &str, fields: &str, body: &str| {
        format!("{line} HTTP/1.1\r\nHost: soak.test\r\n{fields}\r\n{body}").into_bytes()
    };
    let vain = "v".repeat(SENT_IN_VAIN);
    vec![
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n".to_vec(), 400),
        (b"GET / HTTP/2.0\r\nHost: soak.test\r\n\r\n".to_vec(), 505),
        (request("GET /", "A : b\r\n", ""), 400),
        (request("GET /", "A: b\nC: d\r\n", ""), 400),
        (request("POST /", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400),
        (request("POST /", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), 400),
        (request("POST /", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\nno size\r\n"), 400),
        (request("POST /", "Transfer-Encoding: gzip\r\n", ""), 400),
        (request("POST /", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501),
        (request("POST /", "Content-Length: 99999999999\r\n", &vain), 413),
        (request(&format!("{} /", "M".repeat(100)), "", ""), 501),
        (request(&format!("GET /{}", "t".repeat(TOO_LONG_A_TARGET)), "", ""), 414),
        (request("GET /", &"Field: value\r\n".repeat(TOO_MANY_FIELDS), ""), 431),
        (request("GET /", &format!("Long: {}\r\n", "l".repeat(TOO_LONG_A_HEAD)), ""), 431),
    ]
}

/// Asks the server each once, and takes its answers as the ones to come after having checked the status and the end.
pub(super) fn learn(address: SocketAddr) -> Outcome<Vec<Form>> {
    let mut forms = Vec::new();
    for (request, status) in drafts() {
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        let form = learn_one(address, request, status);
        forms.push(form.map_err(|fault| format!("first answer to {shown:?}: {fault}"))?);
    }
    Ok(forms)
}

fn learn_one(address: SocketAddr, request: Vec<u8>, status: u16) -> Result<Form, Fault> {
    let mut client = Client::open(address)?;
    let answer = client.exchange(&request, false)?;
    if answer.head.status != status || !answer.head.announces_close() {
        return Err(Fault::Malformed(answer.head.text));
    }
    client.finish_sending()?;
    client.end()?;
    let answer = Expected::new(&answer.head.text, &answer.body).map_err(Fault::Malformed)?;
    Ok(Form { request, answer })
}
