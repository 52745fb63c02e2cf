//! Records of exchanges on each driver: a client that is slow, resets or half-closes has what it really received.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shearwater::{App, DriverChoice, ExchangeEnd, FinishedExchange, Request, Response, get};
use socket2::{Domain, SockRef, Socket, Type};
use testkit::TIMEOUT;

use crate::served::{Served, drivers, here, text, until};

/// More than a socket to a narrow client takes at once; few enough for a send without a completion.
static BODY: [u8; 60_000] = [b'x'; 60_000];

#[derive(Debug, Clone, Copy)]
struct Seen {
    peer: SocketAddr,
    end: ExchangeEnd,
    body_sent: u64,
    time: Duration,
}

/// A server with its records.
struct Observed {
    served: Served,
    records: Arc<Mutex<Vec<Seen>>>,
}

impl Observed {
    fn start(driver: DriverChoice) -> Self {
        let app = App::new().route("/", get(text("short"))).route(
            "/long",
            get(|_: &Request, response: &mut Response| {
                response.body_static(&BODY);
            }),
        );
        let records = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&records);
        let server = here().driver(driver).on_exchange(&[], move |_| {
            let kept = Arc::clone(&kept);
            move |finished: &FinishedExchange<'_>| {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(Seen {
                    peer: finished.peer().expect("its address"),
                    end: finished.end(),
                    body_sent: finished.body_bytes_sent(),
                    time: finished.duration(),
                });
            }
        });
        Self { served: Served::of(server, app), records }
    }

    /// Connects a client that has small buffers and segments, and asks for the long response; returns it once a part
    /// has arrived.
    fn narrow(&self) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(2048).expect("a small window");
        socket.set_tcp_mss(536).expect("small segments");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        socket.connect(&self.served.address.into()).expect("connects");
        let mut client = TcpStream::from(socket);
        client.write_all(b"GET /long HTTP/1.1\r\nHost: h\r\n\r\n").expect("sends");
        client.read_exact(&mut [0]).expect("a part arrives");
        client
    }

    /// Makes a request on another connection.
    fn pass(&self) {
        assert_eq!(self.served.connect().get("/").status, 200);
    }

    fn of(&self, peer: SocketAddr) -> Vec<Seen> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().filter(|seen| seen.peer == peer).copied().collect()
    }

    /// Waits for the record of a client, without any further event at the server.
    #[track_caller]
    fn record(&self, peer: SocketAddr) -> Seen {
        until("the exchange is reported", || !self.of(peer).is_empty());
        let own = self.of(peer);
        assert_eq!(own.len(), 1, "{own:?}");
        own[0]
    }
}

fn address(client: &TcpStream) -> SocketAddr {
    client.local_addr().expect("an address")
}

fn read_all(client: &mut TcpStream) {
    let mut got = Vec::new();
    while !got.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the head arrives");
        got.extend_from_slice(&byte);
    }
    client.read_exact(&mut [0; BODY.len()]).expect("the body arrives");
}

#[test]
fn records_are_the_same_on_each_driver() {
    if testkit::tls::skips("its client is a plain socket") {
        return;
    }
    for driver in drivers() {
        let observed = Observed::start(driver);
        for is_half_closed in [false, true] {
            let begin = || {
                let client = observed.narrow();
                let start = Instant::now();
                if is_half_closed {
                    client.shutdown(Shutdown::Write).expect("it can");
                }
                observed.pass();
                assert!(observed.of(address(&client)).is_empty(), "{driver:?}: it has received a part");
                (client, start)
            };
            // Slow.
            let (mut client, start) = begin();
            let held = start.elapsed();
            read_all(&mut client);
            let seen = observed.record(address(&client));
            assert_eq!((seen.end, seen.body_sent), (ExchangeEnd::Complete, BODY.len() as u64), "{driver:?}");
            assert!(seen.time >= held, "{driver:?}: {seen:?}, {held:?}");
            // Reset.
            let (client, start) = begin();
            let (peer, held) = (address(&client), start.elapsed());
            SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("it can");
            drop(client);
            let seen = observed.record(peer);
            assert_eq!(seen.end, ExchangeEnd::Disconnected, "{driver:?}");
            assert!((1..BODY.len() as u64).contains(&seen.body_sent), "{driver:?}: {seen:?}");
            assert!(seen.time >= held, "{driver:?}: {seen:?}, {held:?}");
        }
    }
}

#[test]
fn records_of_short_responses_need_no_later_event() {
    for driver in drivers() {
        let observed = Observed::start(driver);
        let mut client = observed.served.connect();
        for count in 1..=20 {
            assert_eq!(client.get("/").status, 200);
            let peer = client.stream().local_addr().expect("an address");
            until("the exchange is reported", || observed.of(peer).len() == count);
        }
    }
}

#[test]
fn records_of_a_stop_have_what_was_sent() {
    if testkit::tls::skips("its client is a plain socket") {
        return;
    }
    for driver in drivers() {
        let observed = Observed::start(driver);
        let client = observed.narrow();
        observed.pass();
        let Observed { served, records } = observed;
        served.stop();
        let records = records.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = records.iter().find(|seen| seen.peer == address(&client)).expect("its record");
        assert_eq!((records.len(), seen.end), (2, ExchangeEnd::Aborted), "{driver:?}");
        assert!((1..BODY.len() as u64).contains(&seen.body_sent), "{driver:?}: {seen:?}");
    }
}
