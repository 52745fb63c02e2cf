//! Many connections, each with one request under way, the next sent as soon as its answer is whole: how many answers, and how long each took.

use std::fmt::{self, Display};
use std::io::{self, Error};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::latency::{micros, percentile, permille};
use super::source::Sources;
use super::{EVENTS_MAX, STATUS_LINE, WAIT_MS};
use crate::counts::Counts;

/// How the line of counts begins.
const MARK: &str = "lab-together";
const RECEIVE_BYTES: usize = 16 * 1024;
/// Latencies kept: beyond, the client ends.
pub const ANSWERS_MAX: usize = 20_000_000;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Together {
    /// Answers, whole and with status 200.
    pub answers: u64,
    /// From the first request to the end.
    pub duration_us: u64,
    /// Half of the answers came within, in microseconds.
    pub p50_us: u64,
    /// 999 of 1,000.
    pub p999_us: u64,
    /// All of them.
    pub max_us: u64,
    /// Sockets that failed, answers that were wrong.
    pub errors: u64,
}

impl Display for Together {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{MARK} answers={} duration_us={}", self.answers, self.duration_us)?;
        write!(out, " p50_us={} p999_us={}", self.p50_us, self.p999_us)?;
        write!(out, " max_us={} errors={}", self.max_us, self.errors)
    }
}

impl Together {
    /// Finds and reads the line in the client's output.
    pub fn parse(output: &str) -> Option<Self> {
        let counts = Counts::find(output, MARK)?;
        Some(Self {
            answers: counts.count("answers")?,
            duration_us: counts.count("duration_us")?,
            p50_us: counts.count("p50_us")?,
            p999_us: counts.count("p999_us")?,
            max_us: counts.count("max_us")?,
            errors: counts.count("errors")?,
        })
    }
}

/// What to ask, and for how long.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whom to ask.
    pub address: SocketAddr,
    /// For what.
    pub target: String,
    /// Length of its whole answer.
    pub answer_bytes: usize,
    /// Connections, all open before the first request.
    pub connections: u32,
    /// For how long.
    pub duration: Duration,
}

struct Connection {
    socket: OwnedFd,
    asked: Instant,
    received: usize,
}

struct Client {
    bytes: Vec<u8>,
    answer_bytes: usize,
    connections: Vec<Connection>,
    latencies_us: Vec<u64>,
    errors: u64,
}

/// Connects, asks, and counts.
///
/// # Errors
/// What the kernel refuses at the start. Later failures are counted.
pub fn run(request: &Request) -> io::Result<Together> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut sources = Sources::new();
    let connect = |number: u32| {
        let socket = sources.connect(request.address)?;
        epoll::add(&epoll, &socket, EventData::new_u64(u64::from(number)), EventFlags::IN)?;
        Ok(Connection { socket, asked: Instant::now(), received: 0 })
    };
    let mut client = Client {
        bytes: format!("GET {} HTTP/1.1\r\nHost: lab\r\n\r\n", request.target).into_bytes(),
        answer_bytes: request.answer_bytes,
        connections: (0..request.connections).map(connect).collect::<io::Result<Vec<_>>>()?,
        latencies_us: Vec::new(),
        errors: 0,
    };
    let begun = Instant::now();
    (0..client.connections.len()).for_each(|number| client.ask(number));
    client.serve_until(&epoll, begun + request.duration)?;
    Ok(client.counted(begun.elapsed()))
}

impl Client {
    fn serve_until(&mut self, epoll: &OwnedFd, end: Instant) -> io::Result<()> {
        let timeout = Timespec::try_from(Duration::from_millis(WAIT_MS)).map_err(Error::other)?;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; RECEIVE_BYTES];
        while Instant::now() < end && self.latencies_us.len() < ANSWERS_MAX {
            events.clear();
            match epoll::wait(epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                self.answered(event.data.u64() as usize, &mut buffer);
            }
        }
        Ok(())
    }

    fn ask(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.asked = Instant::now();
        let sent = rustix::net::send(&connection.socket, &self.bytes, SendFlags::NOSIGNAL);
        self.errors += u64::from(sent != Ok(self.bytes.len()));
    }

    fn answered(&mut self, number: usize, buffer: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        let length = match rustix::net::recv(&connection.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => length,
            Err(Errno::AGAIN) => return,
            Ok(_) | Err(_) => return self.lose(number),
        };
        let wrong = connection.received == 0 && !buffer[..length].starts_with(STATUS_LINE);
        connection.received += length;
        if wrong || connection.received > self.answer_bytes {
            return self.lose(number);
        }
        if connection.received == self.answer_bytes {
            connection.received = 0;
            self.latencies_us.push(micros(connection.asked.elapsed()));
            self.ask(number);
        }
    }

    /// The connection failed: another descriptor takes its place, of which nothing will come.
    fn lose(&mut self, number: usize) {
        self.errors += 1;
        if let Ok(other) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) {
            self.connections[number].socket = other;
        }
    }

    fn counted(mut self, took: Duration) -> Together {
        self.latencies_us.sort_unstable();
        let sorted = &self.latencies_us;
        Together {
            answers: sorted.len() as u64,
            duration_us: micros(took),
            p50_us: percentile(sorted, 50),
            p999_us: permille(sorted, 999),
            max_us: percentile(sorted, 100),
            errors: self.errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::{Request, Together, run};

    /// What two connections count on a server that answers every request with these bytes.
    fn counted(answer: &'static [u8], answer_bytes: usize) -> Together {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let target = "/".to_owned();
        let request =
            Request { address, target, answer_bytes, connections: 2, duration: Duration::from_millis(50) };
        thread::scope(|scope| {
            scope.spawn(|| {
                for mut stream in listener.incoming().take(2).flatten() {
                    scope.spawn(move || {
                        while stream.read(&mut [0; 1024]).is_ok_and(|length| length > 0) {
                            if stream.write_all(answer).is_err() {
                                return;
                            }
                        }
                    });
                }
            });
            run(&request).expect("it connects")
        })
    }

    #[test]
    fn whole_answers_count_and_others_are_errors() {
        const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let right = counted(RIGHT, RIGHT.len());
        assert!(right.answers >= 2 && right.errors == 0, "{right}");
        assert!(right.p50_us <= right.p999_us && right.p999_us <= right.max_us, "{right}");
        let wrong = counted(b"HTTP/1.1 503 Service Unavailable\r\n\r\n", 36);
        assert_eq!((wrong.answers, wrong.errors), (0, 2));
        let longer = counted(RIGHT, RIGHT.len() - 1);
        assert_eq!((longer.answers, longer.errors), (0, 2));
    }

    #[test]
    fn what_is_printed_is_read() {
        let counts = Together { answers: 5, duration_us: 4, p50_us: 3, p999_us: 8, max_us: 9, errors: 2 };
        assert_eq!(Together::parse(&format!("noise\n{counts}\n")), Some(counts));
        assert_eq!(Together::parse("lab-together answers=1"), None);
    }
}
