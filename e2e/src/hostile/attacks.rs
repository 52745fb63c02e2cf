//! The attacks with their bounds. A time is the server's documented limit and the lateness of its timers. Memory that may be left is what a
//! worker keeps for the next requests (`SPARE_…`: 1 MiB each of blocks, outputs and pages) and the allocator's slack.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use testkit::random::Rng;
use testkit::request;
use testkit::tls::ClientTls;

use crate::script::{Ending, Reading, Script};

/// The attacked server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The program with a small file and one of 2 GiB.
    Files,
    /// The same with few descriptors.
    FewDescriptors,
    /// The example, which takes bodies.
    Handlers,
    /// The program with a page for users of an htpasswd file beside one for everybody.
    Passwords,
    /// The program with TLS on the address of the attackers, and without on that of the others.
    Tls,
}

/// An attack by `count` connections in each wave.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) host: Host,
    pub(super) count: u64,
    /// Script of the connection with a number.
    pub(super) script: fn(&mut Rng, u64) -> Arc<Script>,
    /// CPU beyond the normal clients', per cent of a core.
    pub(super) cpu_max: f64,
    /// Growth of memory at the peak, MiB.
    pub(super) peak_mib_max: f64,
    /// Growth of memory after a rest, MiB.
    pub(super) left_mib_max: f64,
    /// Growth of the normal clients' p99.
    pub(super) p99_growth_max: f64,
    /// Permitted ends of connections, with their latest time in seconds.
    pub(super) ends: &'static [(&'static str, f64)],
}

/// Every attack, those first that are watched longest.
#[rustfmt::skip]
pub(super) const ATTACKS: [Attack; 16] = [
    Attack { name: "slow-readers", about: "read a file of 2 GiB, one byte a second", host: Host::Files, count: 1_000, script: slow_reader,
        cpu_max: 10.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("200 reset", 68.0)] },
    Attack { name: "slow-bodies", about: "send one byte of a body a second", host: Host::Handlers, count: 1_000, script: slow_body,
        cpu_max: 10.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("408 closed", 14.0)] },
    Attack { name: "unread-pipelines", about: "send 10,000 requests at once; five of six never read", host: Host::Files, count: 120, script: pipeline,
        cpu_max: 60.0, peak_mib_max: 32.0, left_mib_max: 6.0, p99_growth_max: 2.0, ends: &[("200 served", 10.0), ("200 reset", 68.0)] },
    Attack { name: "few-descriptors", about: "connect and never send, more than the server has descriptors", host: Host::FewDescriptors, count: 1_200, script: silence,
        cpu_max: 5.0, peak_mib_max: 8.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("closed", 36.0)] },
    Attack { name: "slow-heads", about: "send one byte of a head a second; half of them read once a second", host: Host::Files, count: 1_000, script: slow_head,
        cpu_max: 10.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("408 closed", 13.0)] },
    Attack { name: "large-heads", about: "send 60 KB of a head and never its end", host: Host::Files, count: 6_000, script: large_head,
        cpu_max: 60.0, peak_mib_max: 300.0, left_mib_max: 32.0, p99_growth_max: 2.0, ends: &[("408 closed", 13.0), ("503 closed", 13.0), ("503 reset", 13.0)] },
    Attack { name: "silence", about: "connect and never send", host: Host::Files, count: 5_000, script: silence,
        cpu_max: 20.0, peak_mib_max: 4.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("closed", 13.0)] },
    Attack { name: "sending-on", about: "are refused (400, 413, 414, 431), never read and send on", host: Host::Handlers, count: 200, script: refused_and_sending_on,
        cpu_max: 40.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("400 reset", 14.0), ("413 reset", 14.0), ("414 reset", 14.0), ("431 reset", 14.0)] },
    Attack { name: "large-bodies", about: "send 9.4 MB; half of the bodies are buffered, half discarded", host: Host::Handlers, count: 100, script: large_body,
        cpu_max: 60.0, peak_mib_max: 320.0, left_mib_max: 32.0, p99_growth_max: 2.0, ends: &[("200 served", 15.0), ("503 closed", 15.0), ("503 reset", 15.0)] },
    Attack { name: "resets", about: "reset at random moments: before, within and after requests and responses", host: Host::Files, count: 3_000, script: reset_at_random,
        cpu_max: 60.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("left", 2.0), ("200 left", 2.0), ("405 left", 2.0), ("405 closed", 2.0)] },
    Attack { name: "many-ranges", about: "request thousands of ranges of a file of 2 GiB: apart, overlapping, each the whole file", host: Host::Files, count: 300, script: many_ranges,
        cpu_max: 40.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("200 left", 4.0), ("206 left", 4.0), ("206 served", 4.0), ("416 left", 4.0)] },
    Attack { name: "tls-half-handshakes", about: "begin a handshake and never go on", host: Host::Tls, count: 10_000, script: half_handshake,
        cpu_max: 100.0, peak_mib_max: 100.0, left_mib_max: 8.0, p99_growth_max: 8.0, ends: &[("closed", 13.0)] },
    Attack { name: "tls-slow-hellos", about: "send one byte of a ClientHello a second", host: Host::Tls, count: 1_000, script: slow_hello,
        cpu_max: 10.0, peak_mib_max: 8.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("closed", 13.0)] },
    Attack { name: "tls-large-hellos", about: "send a ClientHello of 16 MB", host: Host::Tls, count: 1_000, script: large_hello,
        cpu_max: 20.0, peak_mib_max: 16.0, left_mib_max: 4.0, p99_growth_max: 2.0, ends: &[("closed", 13.0), ("reset", 13.0)] },
    Attack { name: "wrong-passwords", about: "try 1,000 passwords a second from many addresses", host: Host::Passwords, count: 2_500, script: wrong_password,
        cpu_max: 100.0, peak_mib_max: 16.0, left_mib_max: 8.0, p99_growth_max: 8.0, ends: &[("401 closed", 4.0), ("429 closed", 4.0), ("503 closed", 4.0)] },
    Attack { name: "tls-floods", about: "leave once the server has signed, 2,000 a second", host: Host::Tls, count: 5_000, script: signed_and_gone,
        cpu_max: 90.0, peak_mib_max: 16.0, left_mib_max: 8.0, p99_growth_max: 8.0, ends: &[("left", 5.0)] },
];

/// Target of a file for users, and the `Authorization` of one.
pub(super) const STAFF_PAGE: &str = "/staff/page.txt";
pub(super) const AUTHORIZATION: &str = "Authorization: Basic YW5uOnNlY3JldA==";
/// Htpasswd file with this user, by bcrypt at cost 10.
pub(super) const HTPASSWD: &str = "ann:$2y$10$h4X74mrHdlbSun4YGtaZZeNfe6guGymfGI4vOEGqMuMANMZCxHwPi\n";
/// Target of the small file.
pub(super) const PAGE: &str = "/page.txt";
const LARGE: &str = "/large.bin";
/// Length of the large file.
pub(super) const LARGE_BYTES: u64 = 2 << 30;
const SECOND: Duration = Duration::from_secs(1);
/// More than a connection gets to send.
const ENDLESS: u64 = u64::MAX / 2;
const PIECE: usize = 64 * 1024;
/// Length of a large body: below the server's bound of 10 MiB.
const BODY_BYTES: u64 = 9_400_000;
/// Length of a large head: below the server's bound of 64 KiB.
const HEAD_BYTES: usize = 60_000;
/// Ranges that the server doesn't ignore, at most.
const RANGES_MAX: u64 = 64;
const PIPELINED: usize = 10_000;

/// A whole ClientHello.
static HELLO: LazyLock<Vec<u8>> =
    LazyLock::new(|| ClientTls::any("localhost").hello().expect("nothing of it can be wrong"));

/// A script for all connections: some are long.
type SharedScript = LazyLock<Arc<Script>>;

fn post(target: &str, length: u64) -> Vec<u8> {
    request("POST", target, &[&format!("Content-Length: {length}")])
}

fn half_handshake(_: &mut Rng, _: u64) -> Arc<Script> {
    static SCRIPT: SharedScript =
        LazyLock::new(|| Arc::new(Script { reading: Reading::Ignoring, ..Script::new(HELLO.clone()) }));
    Arc::clone(&SCRIPT)
}

fn slow_hello(_: &mut Rng, _: u64) -> Arc<Script> {
    static SCRIPT: SharedScript = LazyLock::new(|| {
        let (first, rest) = HELLO.split_at(1);
        let script = rest.iter().fold(Script::new(first), |script, byte| script.then(&[*byte], SECOND, 1));
        Arc::new(Script { reading: Reading::Ignoring, ..script })
    });
    Arc::clone(&SCRIPT)
}

/// Whole records with parts of a message whose length is the largest possible.
fn large_hello(_: &mut Rng, _: u64) -> Arc<Script> {
    static SCRIPT: SharedScript = LazyLock::new(|| {
        let record = |content: &[u8]| [&[22, 3, 1, 0x40, 0], content, &[0; 0x4000][content.len()..]].concat();
        let script =
            Script::new(record(&[1, 0xff, 0xff, 0xff, 3, 3])).then(&record(&[]), Duration::ZERO, 16 << 20);
        Arc::new(Script { reading: Reading::Ignoring, ..script })
    });
    Arc::clone(&SCRIPT)
}

fn wrong_password(random: &mut Rng, _: u64) -> Arc<Script> {
    // `ann:` and any three bytes, in base64.
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
    let password: String = (0..4).map(|_| char::from(digits[random.usize(..digits.len())])).collect();
    let authorization = format!("Authorization: Basic YW5uOmFh{password}");
    Arc::new(Script::new(request("GET", STAFF_PAGE, &[&authorization, "Connection: close"])))
}

fn signed_and_gone(_: &mut Rng, _: u64) -> Arc<Script> {
    static SCRIPT: SharedScript = LazyLock::new(|| {
        let script = Script::new(HELLO.clone());
        Arc::new(Script { reading: Reading::Ignoring, leaves_after_bytes: Some(1), ..script })
    });
    Arc::clone(&SCRIPT)
}

/// Chooses a route that buffers the body or one that discards it.
fn keep_or_count(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "/keep" } else { "/count" }
}

fn slow_head(_: &mut Rng, number: u64) -> Arc<Script> {
    let script = Script::new("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").then(b"a", SECOND, ENDLESS);
    // Those that read seldom send into a connection that has been closed for them.
    let slowly = Reading::Slowly { bytes: PIECE, every: SECOND };
    let reading = if number.is_multiple_of(2) { Reading::AtOnce } else { slowly };
    Arc::new(Script { reading, ..script })
}

fn slow_body(_: &mut Rng, number: u64) -> Arc<Script> {
    Arc::new(Script::new(post(keep_or_count(number), 100_000)).then(b"a", SECOND, 100_000))
}

fn slow_reader(_: &mut Rng, _: u64) -> Arc<Script> {
    let reading = Reading::Slowly { bytes: 1, every: SECOND };
    Arc::new(Script { reading, ..Script::new(request("GET", LARGE, &[])) })
}

fn large_head(_: &mut Rng, _: u64) -> Arc<Script> {
    static SCRIPT: SharedScript = LazyLock::new(|| {
        let line = format!("X-Large: {}\r\n", "a".repeat(5_980));
        let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}", line.repeat(HEAD_BYTES / line.len()));
        Arc::new(Script::new(head))
    });
    Arc::clone(&SCRIPT)
}

/// Sends some megabytes a second, so that many bodies are under way at once.
fn large_body(_: &mut Rng, number: u64) -> Arc<Script> {
    let script = Script::new(post(keep_or_count(number), BODY_BYTES));
    let script = script.then(&[b'a'; PIECE], Duration::from_millis(30), BODY_BYTES);
    Arc::new(Script { responses: 1, ending: Ending::Closes, ..script })
}

fn silence(_: &mut Rng, _: u64) -> Arc<Script> {
    static SCRIPT: SharedScript = LazyLock::new(|| Arc::new(Script::new("")));
    Arc::clone(&SCRIPT)
}

fn pipeline(_: &mut Rng, number: u64) -> Arc<Script> {
    static UNREAD: SharedScript = LazyLock::new(|| {
        let requests = request("GET", PAGE, &[]).repeat(PIPELINED);
        Arc::new(Script { reading: Reading::Never, ..Script::new(requests) })
    });
    static READ: SharedScript = LazyLock::new(|| {
        let responses = PIPELINED as u64;
        Arc::new(Script {
            reading: Reading::AtOnce,
            responses,
            ending: Ending::Closes,
            ..Script::clone(&UNREAD)
        })
    });
    Arc::clone(if number.is_multiple_of(6) { &READ } else { &UNREAD })
}

fn reset_at_random(random: &mut Rng, _: u64) -> Arc<Script> {
    let opening = match random.u8(..5) {
        0 => Vec::new(),
        1 => {
            let whole = request("GET", PAGE, &[]);
            whole[..random.usize(1..whole.len() - 1)].to_vec()
        }
        2 => request("GET", PAGE, &[]).repeat(50),
        3 => request("GET", LARGE, &[]),
        _ => post(PAGE, BODY_BYTES),
    };
    let slowly = Reading::Slowly { bytes: PIECE, every: Duration::from_millis(20) };
    let reading = if random.bool() { slowly } else { Reading::AtOnce };
    let leaves_after = Some(Duration::from_millis(random.u64(..300)));
    Arc::new(Script { reading, leaves_after, leaves_after_bytes: Some(1 << 20), ..Script::new(opening) })
}

/// A request that is refused before its end: its beginning, what is sent after it, and how much of that.
fn refused(number: u64) -> (Vec<u8>, Vec<u8>, u64) {
    const BODY: u64 = 20_000_000;
    const HEAD: u64 = 1 << 20;
    let letters = vec![b'a'; PIECE / 4];
    let get = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    match number {
        0 => (post("/count", BODY), letters, BODY),
        1 => (b"GET /".to_vec(), letters, HEAD),
        2 => (format!("{get}X-Endless: ").into_bytes(), letters, HEAD),
        3 => (request("POST", "/count", &["Content-Length: 5", "Transfer-Encoding: chunked"]), letters, HEAD),
        4 => (get.into(), b"X-Field: value\r\n".repeat(1024), HEAD),
        _ => {
            let chunk = [format!("{:x}\r\n", letters.len()).as_bytes(), &letters, b"\r\n"].concat();
            (request("POST", "/count", &["Transfer-Encoding: chunked"]), chunk, BODY)
        }
    }
}

fn refused_and_sending_on(_: &mut Rng, number: u64) -> Arc<Script> {
    let (opening, piece, _) = refused(number % 4);
    let script = Script::new(opening).then(&piece, Duration::from_millis(50), ENDLESS);
    Arc::new(Script { reading: Reading::Never, sends_on: true, ..script })
}

/// Clients that send on for a while and read only then, with their statuses: each must read the whole response.
pub(super) const EARLY_ERRORS: &[(&str, f64)] =
    &[("400 closed", 20.0), ("413 closed", 20.0), ("414 closed", 20.0), ("431 closed", 20.0)];

/// Returns the script of one of them, which sends on for `time`.
pub(super) fn refused_and_reading_late(number: u64, time: Duration) -> Arc<Script> {
    let (opening, piece, total) = refused(number % 6);
    let script = Script::new(opening).then(&piece, Duration::ZERO, total);
    Arc::new(Script { reading: Reading::After(time), ..script })
}

/// Requests ranges of three shapes, as many as a head may have or as the server doesn't ignore, and leaves with some of the response.
fn many_ranges(_: &mut Rng, number: u64) -> Arc<Script> {
    static SCRIPTS: LazyLock<Vec<Arc<Script>>> = LazyLock::new(|| {
        const SHARE: u64 = LARGE_BYTES / 4096;
        let shapes: [fn(u64) -> String; 3] = [
            |index| format!("{0}-{0}", 2 * index),
            |index| format!("{index}-"),
            |index| format!("{}-{}", index * SHARE, index * SHARE + SHARE / 2),
        ];
        let script = |shape: fn(u64) -> String, count| {
            let mut range = format!("Range: bytes={}", shape(0));
            for next in (1..count).map(shape) {
                if range.len() + next.len() > HEAD_BYTES {
                    break;
                }
                range.push(',');
                range.push_str(&next);
            }
            Arc::new(Script {
                responses: 1,
                ending: Ending::Closes,
                leaves_after_bytes: Some(256 * 1024),
                leaves_after: Some(Duration::from_secs(2)),
                ..Script::new(request("GET", LARGE, &[&range]))
            })
        };
        shapes
            .into_iter()
            .flat_map(|shape| [u64::MAX, RANGES_MAX].map(|count| script(shape, count)))
            .collect()
    });
    Arc::clone(&SCRIPTS[number as usize % SCRIPTS.len()])
}
