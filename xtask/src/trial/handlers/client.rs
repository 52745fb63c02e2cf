//! What clients of misbehaving handlers do and see.

use std::net::SocketAddr;
use std::time::Duration;

use crate::harness::answer::Fault;
use crate::harness::client::{Answer, Client, request, request_with};

/// What did not come as it was promised, if anything.
pub(super) type Said = Result<(), Fault>;

/// A body that no socket swallows: its sender waits until the server reads.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

/// How long a request may have been on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

/// Connects, and sends.
pub(super) fn ask(address: SocketAddr, bytes: &[u8]) -> Result<Client, Fault> {
    let mut client = Client::open(address)?;
    if !bytes.is_empty() {
        client.exchange(bytes, false)?;
    }
    Ok(client)
}

/// Sends a request whose answer has to be a `200` with this body, and to keep the connection.
pub(super) fn expect(client: &mut Client, request: &[u8], body: &[u8]) -> Said {
    let answer = client.exchange(request, false)?;
    is(answer.head.status == 200 && answer.body == body && !answer.head.announces_close(), &answer)
}

/// A `500` behind which the connection ends, without a reset.
pub(super) fn fails(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    let answer = client.exchange(&request("GET", target), false)?;
    let wanted = answer.body == b"Internal Server Error\n" && answer.head.announces_close();
    is(answer.head.status == 500 && wanted, &answer)?;
    client.end()
}

/// A stream in chunks that ends without its last one.
pub(super) fn is_cut_off_in_chunks(address: SocketAddr, target: &str) -> Said {
    is_cut_off(address, target, b"5\r\nbegun\r\n")
}

/// A stream that ends short of its length.
pub(super) fn is_cut_off_in_a_length(address: SocketAddr, target: &str) -> Said {
    is_cut_off(address, target, b"xxxxx")
}

/// A head, this, and the connection's end, without a reset.
fn is_cut_off(address: SocketAddr, target: &str, sent: &[u8]) -> Said {
    let mut client = Client::open(address)?;
    client.send(&request("GET", target))?;
    let head = client.head()?;
    let mut body = Vec::new();
    let end = loop {
        match client.some(u64::MAX, &mut |bytes| body.extend_from_slice(bytes)) {
            Ok(_) => {}
            Err(end) => break end,
        }
    };
    match head.status == 200 && body == sent && end == Fault::Truncated {
        true => Ok(()),
        false => unlike(format!("{}, {:?}, {end}", head.status, String::from_utf8_lossy(&body))),
    }
}

/// The connection ends without an answer, in whatever form the kernel ends it.
pub(super) fn gets_no_answer(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    match client.exchange(&request("GET", target), false) {
        Err(Fault::Closed | Fault::Reset) => Ok(()),
        Err(fault) => Err(fault),
        Ok(answer) => is(false, &answer),
    }
}

/// As much as was announced, and the connection goes on.
pub(super) fn gets_what_was_announced(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    expect(&mut client, &request("GET", target), b"xxxxxxxxxx")?;
    expect(&mut client, &request("GET", "/"), b"Hello, world\n")
}

/// The body is taken and thrown away, and the connection goes on.
pub(super) fn is_read_all_the_same(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    client.send(&posting(target))?;
    client.send(&vec![b'x'; LARGE_BYTES])?;
    expect_answer(&mut client, b"unread", false)?;
    expect(&mut client, &request("GET", "/"), b"Hello, world\n")
}

/// The answer comes before the body was sent; what is sent then is thrown away.
pub(super) fn is_answered_before_the_body(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    client.send(&posting(target))?;
    expect_answer(&mut client, b"early", true)?;
    client.send(&vec![b'x'; LARGE_BYTES])?;
    client.finish_sending()?;
    client.end()
}

/// The answer comes although the body is never read.
pub(super) fn is_answered_without_the_body(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    client.send(&posting(target))?;
    client.send(&vec![b'x'; LARGE_BYTES])?;
    client.finish_sending()?;
    expect_answer(&mut client, b"ignored", true)?;
    client.end()
}

/// Goes away while the handler waits.
pub(super) fn goes_away(address: SocketAddr, target: &str) -> Said {
    goes_away_behind(address, &request("GET", target))
}

/// Closes in the middle of an answer, in order.
pub(super) fn closes_in_a_stream(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    client.send(&request("GET", target))?;
    client.head()?;
    client.finish_sending()
}

/// Goes away in the middle of the body.
pub(super) fn goes_away_in_the_body(address: SocketAddr, target: &str) -> Said {
    goes_away_behind(address, &[posting(target), vec![b'x'; 1000]].concat())
}

fn goes_away_behind(address: SocketAddr, bytes: &[u8]) -> Said {
    let mut client = Client::open(address)?;
    client.send(bytes)?;
    let mut other = Client::open(address)?;
    // However the request is on its way, it has to be at its handler before its client may go.
    let deadline = std::time::Instant::now() + super::case::PATIENCE;
    while expect(&mut other, &request("GET", "/alive"), b"1").is_err() {
        if std::time::Instant::now() >= deadline {
            return unlike("the handler was not called");
        }
    }
    client.reset()
}

/// Others of the worker wait until the handler lets it go; then all are answered.
pub(super) fn keeps_others_waiting(address: SocketAddr, target: &str) -> Said {
    let mut client = Client::open(address)?;
    let mut other = Client::open(address)?;
    client.send(&request("GET", target))?;
    std::thread::sleep(ON_ITS_WAY);
    expect(&mut other, &request("GET", "/"), b"Hello, world\n")?;
    expect_answer(&mut client, b"blocked", false)?;
    expect(&mut client, &request("GET", "/"), b"Hello, world\n")
}

/// The head of a request with a large body.
fn posting(target: &str) -> Vec<u8> {
    request_with("POST", target, &format!("Content-Length: {LARGE_BYTES}\r\n"))
}

fn expect_answer(client: &mut Client, body: &[u8], is_last: bool) -> Said {
    let answer = client.answer(false)?;
    let wanted = answer.body == body && answer.head.announces_close() == is_last;
    is(answer.head.status == 200 && wanted, &answer)
}

fn is(promised: bool, answer: &Answer) -> Said {
    match promised {
        true => Ok(()),
        false => unlike(format!("{:?} {:?}", answer.head.text, String::from_utf8_lossy(&answer.body))),
    }
}

/// Not what was promised.
fn unlike(what: impl Into<String>) -> Said {
    Err(Fault::Malformed(what.into()))
}
