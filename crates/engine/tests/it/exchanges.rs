//! Finished exchanges as a listener sees them: one for each request, in order, with its counts, times and end.

use std::sync::{Arc, Mutex, PoisonError};

use shearwater_engine::http1::Version;
use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::limits::{EXCHANGE_FIELDS_MAX, EXCHANGE_TEXT_BYTES_MAX, REQUESTS_PER_TURN_MAX};
use shearwater_engine::{ExchangeEnd, ExchangeListener, FinishedExchange, Limits, Timeouts};

use crate::harness::app::{BIG_BYTES, FILE_BYTES};
use crate::harness::handlers::TICK_MS;
use crate::harness::unit::{chunked, get, head, post};
use crate::harness::{Setting, SimWorld, Unit};

mod records;

/// An exchange as a listener saw it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    /// Method, target and status.
    line: String,
    end: ExchangeEnd,
    received: u64,
    sent: u64,
    body_sent: u64,
    first_byte_ms: Option<u128>,
    ms: u128,
    agent: Option<String>,
    version: Option<Version>,
    peer: String,
}

impl Seen {
    fn of(finished: &FinishedExchange<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let status = finished.status().map_or("-".to_owned(), |status| status.to_string());
        Self {
            line: format!("{} {} {status}", text(finished.method()), text(finished.target())),
            end: finished.end(),
            received: finished.body_bytes_received(),
            sent: finished.bytes_sent(),
            body_sent: finished.body_bytes_sent(),
            first_byte_ms: finished.first_byte().map(|time| time.as_millis()),
            ms: finished.duration().as_millis(),
            agent: finished.field("user-agent").map(text),
            version: finished.version(),
            peer: finished.peer().map(|peer| peer.to_string()).unwrap_or_default(),
        }
    }
}

/// Exchanges so far.
#[derive(Default, Clone)]
struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    fn listener(&self) -> ExchangeListener {
        let log = self.clone();
        ExchangeListener::new(&["User-Agent"], move |_| {
            let log = log.clone();
            move |finished: &FinishedExchange<'_>| {
                log.0.lock().unwrap_or_else(PoisonError::into_inner).push(Seen::of(finished));
            }
        })
    }

    /// Takes the exchanges.
    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the exchanges' lines and ends.
    fn lines(&self) -> Vec<(String, ExchangeEnd)> {
        self.take().into_iter().map(|seen| (seen.line, seen.end)).collect()
    }

    /// Takes the only one.
    #[track_caller]
    fn only(&self) -> Seen {
        let mut all = self.take();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }
}

fn world_with(setting: Setting) -> (SimWorld, Log) {
    let log = Log::default();
    (SimWorld::new(Setting { listeners: vec![log.listener()], ..setting }), log)
}

fn world() -> (SimWorld, Log) {
    world_with(Setting::default())
}

fn complete(line: &str) -> (String, ExchangeEnd) {
    (line.to_owned(), ExchangeEnd::Complete)
}

#[test]
fn reports_an_immediate_response_with_its_counts() {
    let (mut world, log) = world();
    let request = head("POST", "/buffer/1?a=b", "User-Agent: test/1\r\nContent-Length: 3\r\n");
    let mut client = world.send([&request[..], b"abc"].concat());
    let text = client.text();
    let head_len = text.find("\r\n\r\n").expect("a head") + 4;
    let seen = log.only();
    assert_eq!((&*seen.line, seen.end), ("POST /buffer/1?a=b 200", ExchangeEnd::Complete));
    assert_eq!((seen.received, seen.sent), (3, text.len() as u64));
    assert_eq!(seen.body_sent, (text.len() - head_len) as u64);
    assert_eq!((seen.agent.as_deref(), seen.version), (Some("test/1"), Some(Version::Http11)));
    assert_eq!((seen.first_byte_ms, seen.ms), (Some(0), 0));
    assert!(seen.peer.contains(':'), "{}", seen.peer);
    world.finish(&client);
    assert_eq!(log.take(), []);
}

#[test]
fn reports_pipelined_requests_in_order() {
    let (mut world, log) = world();
    let count = 2 * REQUESTS_PER_TURN_MAX + 3;
    let units: Vec<_> = (0..count)
        .map(|number| if number % 7 == 3 { Unit::later("GET", number) } else { Unit::get(number) })
        .collect();
    let mut client = world.send(Unit::stream(&units));
    world.pass(1000);
    client.assert_got(&Unit::responses(&units));
    let wanted: Vec<_> = (0..count)
        .map(|number| {
            complete(&format!("GET /{}/{number} 200", if number % 7 == 3 { "later" } else { "plain" }))
        })
        .collect();
    assert_eq!(log.lines(), wanted);
    world.finish(&client);
}

#[test]
fn reports_deferred_and_streamed_responses_when_they_end() {
    let (mut world, log) = world();
    let client = world.send(get("/ticks?2"));
    assert_eq!(log.take(), []);
    world.pass(3 * TICK_MS);
    let seen = log.only();
    assert_eq!((&*seen.line, seen.end), ("GET /ticks?2 200", ExchangeEnd::Complete));
    assert!(seen.first_byte_ms < Some(seen.ms), "{seen:?}");
    assert!(seen.ms >= u128::from(TICK_MS), "{seen:?}");
    world.finish(&client);
}

#[test]
fn reports_a_large_response_once_the_client_has_taken_it() {
    for (target, body) in [("/big", BIG_BYTES), ("/file", FILE_BYTES)] {
        let (mut world, log) = world();
        let mut client = world.connect();
        client.stop_reading(10_000);
        client.send(get(target));
        world.settle();
        world.pass(2000);
        assert_eq!(log.take(), []);
        world.read_on(&client);
        let seen = log.only();
        assert_eq!((seen.body_sent, seen.end), (body as u64, ExchangeEnd::Complete));
        assert!(seen.ms >= 2000 && seen.first_byte_ms == Some(0), "{seen:?}");
        world.finish(&client);
    }
}

#[test]
fn reports_a_client_that_disconnects_before_it_has_the_response() {
    let (mut world, log) = world();
    let mut client = world.connect();
    client.stop_reading(10_000);
    client.send(get("/big"));
    world.settle();
    client.peer.reset();
    world.end();
    let seen = log.only();
    assert_eq!((&*seen.line, seen.end), ("GET /big 200", ExchangeEnd::Disconnected));
    assert!((1..=20_000).contains(&seen.sent), "{seen:?}");
    for (request, line) in [
        (get("/never"), "GET /never -"),
        (head("POST", "/buffer/1", "Content-Length: 9\r\n"), "POST /buffer/1 -"),
        (head("POST", "/pulled/0", "Content-Length: 9\r\n"), "POST /pulled/0 -"),
    ] {
        let (mut world, log) = self::world();
        let client = world.send_pieces([&request[..], b"ab"]);
        client.peer.reset();
        world.end();
        let seen = log.only();
        assert_eq!((&*seen.line, seen.end), (line, ExchangeEnd::Disconnected));
        assert_eq!((seen.received, seen.sent), (if line.starts_with('P') { 2 } else { 0 }, 0), "{line}");
    }
    let (mut world, log) = self::world();
    let client = world.send("GET / HT");
    client.peer.reset();
    world.end();
    assert_eq!(log.take(), [], "no request");
}

#[test]
fn reports_each_refusal_with_its_request() {
    let x = |count: usize| "x".repeat(count);
    let long = format!("GET /{} 414", x(EXCHANGE_TEXT_BYTES_MAX - 1));
    for (request, line) in [
        (b"GET /a HTTP/1.1\r\n\r\n".to_vec(), "GET /a 400"),
        (b"\r\nGET  / HTTP/1.1\r\n\r\n".to_vec(), "GET  / 400"),
        (b"nonsense\r\n\r\n".to_vec(), "nonsense  400"),
        (chunked("/plain/1", "nothing"), "POST /plain/1 400"),
        (head("POST", "/plain/1", "Content-Length: 99999999999\r\n"), "POST /plain/1 413"),
        (chunked("/buffer/1", &format!("ffffff\r\n{}", x(40_000))), "POST /buffer/1 413"),
        (get(&format!("/{}", x(9000))), &long),
        (head("GET", "/e", "Expect: nothing\r\n"), "GET /e 417"),
        (head("GET", "/f", &"X: y\r\n".repeat(100)), "GET /f 431"),
        (get("/panic"), "GET /panic 500"),
        (post("/policy-panics", "abc").into_bytes(), "POST /policy-panics 500"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n".to_vec(), "CONNECT a:1 501"),
        (b"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), "GET https://a/ 421"),
        (b"GET /v HTTP/3.0\r\nHost: a\r\n\r\n".to_vec(), "GET /v HTTP/3.0 505"),
    ] {
        let (mut world, log) = world();
        let client = world.send(request);
        assert_eq!(log.lines(), [complete(line)]);
        world.finish(&client);
    }
}

#[test]
fn reports_requests_that_are_too_slow() {
    let timeouts = Timeouts { first_head_ms: 1000, body_ms: 1000, ..Timeouts::default() };
    for (request, line) in [
        (b"GET /slow HTTP/1.1\r\nHost".to_vec(), "GET /slow 408"),
        (head("POST", "/plain/1", "Content-Length: 9\r\n"), "POST /plain/1 408"),
        (head("POST", "/pulled/0", "Content-Length: 9\r\n"), "POST /pulled/0 408"),
    ] {
        let (mut world, log) = world_with(Setting { timeouts, ..Setting::default() });
        let client = world.send(request);
        world.pass(3000);
        let seen = log.only();
        assert_eq!((&*seen.line, seen.end), (line, ExchangeEnd::Complete));
        assert!(seen.ms >= 900, "{seen:?}");
        world.finish(&client);
    }
}

#[test]
fn reports_requests_that_end_in_the_middle() {
    for (request, line) in [
        (b"GET /half HTTP/1.1\r\nHost".to_vec(), "GET /half 400"),
        (head("POST", "/plain/1", "Content-Length: 9\r\n"), "POST /plain/1 400"),
        (head("POST", "/pulled/0", "Content-Length: 9\r\n"), "POST /pulled/0 400"),
    ] {
        let (mut world, log) = world();
        let client = world.send(request);
        client.peer.finish();
        world.end();
        assert_eq!(log.lines(), [complete(line)]);
    }
}

#[test]
fn reports_clients_that_read_too_slowly() {
    let (mut world, log) = world();
    let mut client = world.connect();
    client.stop_reading(1000);
    client.send(get("/big"));
    world.settle();
    world.sleep_until_closed(&client);
    world.end();
    let seen = log.only();
    assert_eq!((seen.end, seen.line.as_str()), (ExchangeEnd::TimedOut, "GET /big 200"));
}

#[test]
fn reports_a_half_closed_client_that_waits_too_long_once() {
    let (mut world, log) = world();
    let client = world.send(get("/never"));
    client.peer.finish();
    world.pass(2 * Timeouts::default().half_closed_ms);
    assert_eq!(world.totals().hit_half_closed_ms, 1);
    assert_eq!(log.lines(), [("GET /never -".to_owned(), ExchangeEnd::TimedOut)]);
    world.end();
    assert_eq!(log.take(), []);
}

#[test]
fn reports_responses_that_are_cut_off() {
    for target in ["/cut/1", "/short-file", "/changed-file"] {
        let (mut world, log) = world();
        let client = world.send(get(target));
        world.pass(1000);
        let seen = log.only();
        assert_eq!((seen.end, &*seen.line), (ExchangeEnd::Truncated, &*format!("GET {target} 200")));
        world.finish(&client);
    }
}

#[test]
fn reports_exchanges_that_the_end_of_the_server_aborts() {
    let (mut world, log) = world();
    let waiting = world.send(get("/never"));
    let mut reading = world.connect();
    reading.stop_reading(1000);
    reading.send(get("/big"));
    world.settle();
    world.control.drain(1000);
    world.run();
    let mut lines = log.lines();
    lines.sort_by(|one, other| one.0.cmp(&other.0));
    let aborted = |line: &str| (line.to_owned(), ExchangeEnd::Aborted);
    assert_eq!(lines, [aborted("GET /big 200"), aborted("GET /never -")]);
    drop(waiting);
}

/// A response whose send counts as done and is taken back is reported at its real end.
#[test]
fn reports_each_response_once_with_sends_of_every_kind() {
    for unsent in [0.0, 1.0] {
        let sim = SimOptions { unsent, short_writes: 1.0, ..SimOptions::default() };
        let (mut world, log) = world_with(Setting { sim, ..Setting::default() });
        let mut client = world.connect();
        for number in 0..5 {
            world.feed(&mut client, Unit::get(number).bytes);
        }
        let wanted: Vec<_> = (0..5).map(|number| complete(&format!("GET /plain/{number} 200"))).collect();
        assert_eq!(log.lines(), wanted);
        world.finish(&client);
    }
}

#[test]
fn reports_evicted_requests() {
    let (mut world, log) = world_with(Setting {
        limits: Limits { buffered_bytes_max: 100_000, ..Limits::default() },
        ..Setting::default()
    });
    let request = head("POST", "/buffer/1", "Content-Length: 30000\r\n");
    let mut large = world.send_pieces([&request[..], &[b'x'; 29_000]]);
    let half = head("GET", "/plain/1", &format!("X: {}\r\n", "x".repeat(3000)));
    let small: Vec<_> = (0..20).map(|_| world.send(&half[..half.len() - 2])).collect();
    assert!(large.text().starts_with("HTTP/1.1 503 "));
    let seen = log.take();
    assert!(seen.iter().any(|seen| seen.line == "POST /buffer/1 503" && seen.received == 29_000), "{seen:?}");
    small.iter().chain([&large]).for_each(|client| client.peer.reset());
    world.end();
}

#[test]
fn reports_evicted_requests_that_wait_for_their_turn() {
    let (mut world, log) = world_with(Setting {
        limits: Limits { buffered_bytes_max: 100_000, ..Limits::default() },
        ..Setting::default()
    });
    let mut clients: Vec<_> = (0..40).map(|_| world.connect()).collect();
    world.settle();
    // All in one turn: the first one's requests are more than a turn handles.
    let half = head("GET", "/plain/2", &format!("X: {}\r\n", "x".repeat(3000)));
    clients[0].send(get("/plain/1").repeat(8 * REQUESTS_PER_TURN_MAX));
    clients[1..].iter_mut().for_each(|client| client.send(&half[..half.len() - 2]));
    world.settle();
    let lines: Vec<_> = log.take().into_iter().map(|seen| seen.line).collect();
    let is_evicted = |line: &&String| matches!(line.as_str(), "GET /plain/1 503" | "GET /plain/1 -");
    assert_eq!(lines.iter().filter(is_evicted).count(), 1, "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("GET /plain/")), "{lines:?}");
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
}

/// Exchanges beyond the bound are reported when their response begins to be sent.
#[test]
fn keeps_a_bounded_number_of_bytes_of_unfinished_exchanges() {
    let (mut world, log) = world();
    let request = head("GET", "/big", &format!("User-Agent: {}\r\n", "x".repeat(8000)));
    let clients: Vec<_> = (0..3000)
        .map(|_| {
            let mut client = world.connect();
            client.stop_reading(100);
            client.send(&request);
            world.settle();
            client
        })
        .collect();
    let unknown = log.take();
    let count = unknown.len() as u64;
    assert!((500..2500).contains(&count), "{count}");
    assert!(unknown.iter().all(|seen| seen.end == ExchangeEnd::Unknown));
    clients.iter().for_each(|client| client.peer.reset());
    world.end();
    assert_eq!(world.totals().hit_exchange_bytes, count);
    let rest = log.take();
    assert_eq!(rest.len() as u64 + count, 3000);
    assert!(rest.iter().all(|seen| seen.end == ExchangeEnd::Disconnected));
}

#[test]
fn a_listener_that_panics_costs_nothing_else() {
    let log = Log::default();
    let panicking = ExchangeListener::new(&[], |_| {
        |_: &FinishedExchange<'_>| panic!("{}", crate::harness::app::ON_PURPOSE)
    });
    let (mut world, log) = {
        let listeners = vec![panicking, log.listener()];
        (SimWorld::new(Setting { listeners, ..Setting::default() }), log)
    };
    let mut client = world.send(Unit::get(1).bytes);
    world.assert_usable(&mut client);
    assert_eq!(log.lines(), [complete("GET /plain/1 200"), complete("GET /plain/9 200")]);
    world.finish(&client);
}

/// A client can't hide a value behind another one.
#[test]
fn listeners_see_all_values_of_a_repeated_field() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&found);
    let names = ["user-agent", "x-own", "referer", "x-none"];
    let listener = ExchangeListener::new(&names, move |_| {
        let kept = Arc::clone(&kept);
        move |finished: &FinishedExchange<'_>| {
            let values = names.map(|name| finished.field(name).map(<[u8]>::to_vec));
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(values);
        }
    });
    let mut world = SimWorld::new(Setting { listeners: vec![listener], ..Setting::default() });
    let long = "x".repeat(EXCHANGE_TEXT_BYTES_MAX - 4);
    let fields = format!(
        "User-Agent: one\r\nX-Own: 1\r\nX-Other: 2\r\nx-own:\r\nUser-Agent: two\r\nX-OWN: 3\r\nReferer: {long}\r\nReferer: abcd\r\n"
    );
    let client = world.send(head("GET", "/plain/1", &fields));
    let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    let bounded = format!("{long}, ab");
    let wanted = [Some("one, two"), Some("1, , 3"), Some(&*bounded), None];
    assert_eq!(found, [wanted.map(|value| value.map(|value| value.as_bytes().to_vec()))]);
    world.finish(&client);
}

#[test]
fn listeners_see_a_bounded_number_of_fields() {
    let names: Vec<String> = (0..EXCHANGE_FIELDS_MAX + 1).map(|number| format!("x-{number}")).collect();
    let found = Arc::new(Mutex::new(Vec::new()));
    let (kept, asked) = (Arc::clone(&found), names.clone());
    let listener = ExchangeListener::new(&names.iter().map(String::as_str).collect::<Vec<_>>(), move |_| {
        let (kept, asked) = (Arc::clone(&kept), asked.clone());
        move |finished: &FinishedExchange<'_>| {
            let values = asked.iter().map(|name| finished.field(name).map(<[u8]>::to_vec));
            kept.lock().unwrap_or_else(PoisonError::into_inner).extend(values);
        }
    });
    let mut world = SimWorld::new(Setting { listeners: vec![listener], ..Setting::default() });
    let fields: String = names.iter().map(|name| format!("{name}: of {name}\r\n")).collect();
    let client = world.send(head("GET", "/plain/1", &fields));
    let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    for (number, value) in found.iter().enumerate() {
        let wanted = (number < EXCHANGE_FIELDS_MAX).then(|| format!("of x-{number}").into_bytes());
        assert_eq!(*value, wanted, "x-{number}");
    }
    assert_eq!(found.len(), EXCHANGE_FIELDS_MAX + 1);
    world.finish(&client);
}
