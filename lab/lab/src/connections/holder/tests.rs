//! The client process, in a thread, against a server that is right and ones that are not.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use testkit::{Head, Response};

use super::super::plan::Share;
use super::super::protocol::ExpectedResponse;
use super::*;

const RIGHT: &str = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 2\r\n\r\nok";
const LATER: &str = "HTTP/1.1 200 OK\r\nDate: 1st\r\nContent-Length: 2\r\n\r\nok";
const WRONG: &str = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 2\r\n\r\nno";
const REQUEST: &str = "GET / HTTP/1.1\r\n\r\n";
const OPEN: Order = Order::Open { per_second: 10_000, pending_max: 4 };

/// A holder in a thread of its own.
struct Running {
    orders: UnixStream,
    reports: BufReader<UnixStream>,
    thread: JoinHandle<io::Result<()>>,
    ordered: u32,
    /// The last report.
    counts: Counts,
}

impl Running {
    /// Starts it with so many connections from a source address of the test's own.
    fn start(server: SocketAddr, source: u8, connections: u16, keep_alive_ms: u32) -> Self {
        let head = Head::parse(RIGHT.split_inclusive("\r\n\r\n").next().expect("a head").as_bytes());
        let response = Response { head: head.expect("a head"), body: b"ok".to_vec() };
        let task = Task {
            server,
            share: Share { source: Ipv4Addr::new(127, 0, 3, source), ports: 10_000..10_000 + connections },
            request: REQUEST.to_owned(),
            expected: ExpectedResponse::of(&response),
            keep_alive_ms,
        };
        let (orders, given) = UnixStream::pair().expect("sockets");
        let (reports, written) = UnixStream::pair().expect("sockets");
        let thread = thread::spawn(move || Holder::new(task, given.into(), written).and_then(Holder::run));
        Self { orders, reports: BufReader::new(reports), thread, ordered: 0, counts: Counts::default() }
    }

    /// Gives an order and returns the counts when it is done.
    fn order(&mut self, order: Order) -> Counts {
        let line = serde_json::to_string(&order).expect("JSON") + "\n";
        self.orders.write_all(line.as_bytes()).expect("it reads");
        self.ordered += 1;
        let wanted = self.ordered;
        self.counts_when(|counts| counts.done == wanted)
    }

    fn counts_when(&mut self, is_wanted: impl Fn(&Counts) -> bool) -> Counts {
        while !is_wanted(&self.counts) {
            let mut line = String::new();
            assert!(self.reports.read_line(&mut line).expect("it reports") > 0, "it has ended");
            self.counts = serde_json::from_str(&line).expect("counts");
        }
        self.counts.clone()
    }

    /// Ends its orders, and with them the holder.
    fn end(self) {
        drop(self.orders);
        self.thread.join().expect("no panic").expect("no error");
    }
}

/// Serves each connection in a thread; the n-th request of a connection gets the n-th response, and then it is closed.
fn serve(responses: &'static [&'static str]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let converse = move |mut stream: TcpStream| {
        for response in responses {
            let is_sent = stream
                .read_exact(&mut [0; REQUEST.len()])
                .and_then(|()| stream.write_all(response.as_bytes()));
            if is_sent.is_err() {
                return;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || converse(stream));
        }
    });
    address
}

fn reasons(counts: &Counts) -> Vec<(&str, u64)> {
    counts.failures.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[test]
fn opens_asks_again_and_closes() {
    let mut holder = Running::start(serve(&[LATER; 100]), 1, 10, 60_000);
    let opened = holder.order(OPEN);
    assert_eq!((opened.held, opened.responses, opened.failed()), (10, 10, 0), "{opened:?}");
    let asked = holder.order(Order::Ask { per_second: 200, millis: 100 });
    assert_eq!((asked.held, asked.failed()), (10, 0), "{asked:?}");
    assert!((11..=40).contains(&asked.responses), "{asked:?}");
    let closed = holder.order(Order::Close);
    assert_eq!((closed.held, closed.failed()), (0, 0));
    holder.end();
}

#[test]
fn wrong_responses_and_closed_connections_are_failures() {
    for (source, responses, reason) in [
        (2, &[WRONG][..], "receive: a wrong response"),
        (3, &["HTTP/1.1 200 OK\r\n"][..], "receive: closed before the response"),
        (4, &[][..], "receive: closed before the response"),
    ] {
        let mut holder = Running::start(serve(responses), source, 3, 60_000);
        let counts = holder.order(OPEN);
        assert_eq!((counts.held, counts.failed()), (0, 3), "{counts:?}");
        // Unread requests make the end a reset.
        let is_expected = |(found, _): &(&str, u64)| {
            *found == reason || ["reset", "Broken pipe"].iter().any(|end| found.contains(end))
        };
        assert!(reasons(&counts).iter().all(is_expected), "{counts:?}");
        holder.end();
    }
}

#[test]
fn connections_that_nobody_accepts_are_failures_with_the_reason() {
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut holder = Running::start(unused, 5, 300, 60_000);
    let counts = holder.order(OPEN);
    let refused = "connect: Connection refused (os error 111)";
    assert_eq!(reasons(&counts).first().map(|(reason, _)| *reason), Some(refused), "{counts:?}");
    assert!((FAILURES_MAX..FAILURES_MAX + 10).contains(&counts.failed()), "it stops: {counts:?}");
    holder.end();
}

#[test]
fn idle_connections_that_end_have_expired_or_failed() {
    let mut expiring = Running::start(serve(&[RIGHT]), 6, 5, EARLY_MS);
    expiring.order(OPEN);
    let expired = expiring.counts_when(|counts| counts.expired == 5);
    assert_eq!((expired.held, expired.failed()), (0, 0));
    expiring.end();
    let mut failing = Running::start(serve(&[RIGHT]), 7, 5, 60_000);
    failing.order(OPEN);
    let failed = failing.counts_when(|counts| counts.failed() == 5);
    assert_eq!(reasons(&failed), [("receive: closed while idle", 5)]);
    failing.end();
}
