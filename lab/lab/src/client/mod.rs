//! Our own load generator, for what wrk cannot do: connections that end after some requests, requests that differ by
//! connection, and receive buffers of a given size. One thread, edge-triggered epoll, the next request written as soon as an answer is whole.
//!
//! It checks each answer's status line and knows its length from the probe, so a byte too many or too few shows at once.

pub mod beside;
mod connection;
pub mod crowd;
pub mod latency;
mod request;
pub(crate) mod source;
pub mod together;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::scenario::Scenario;
use crate::tally::Tally;
use connection::{Connection, Turn};
use request::Requests;
use source::Sources;

/// What every answer begins with.
const STATUS_LINE: &[u8] = b"HTTP/1.1 200";
/// Events of one wait.
const EVENTS_MAX: usize = 512;
/// Bytes of one receive, shared by all connections.
const RECEIVE_BYTES: usize = 64 * 1024;
/// So long a wait without any event ends in a look at the clock.
const WAIT_MS: u64 = 100;
/// Connections that fail one after the other before the run is given up.
const CONNECT_FAILURES_MAX: u64 = 100;

/// What the client is to do.
#[derive(Debug, Clone)]
pub struct Load {
    /// Whom to ask.
    pub address: SocketAddr,
    /// What to ask.
    pub scenario: Scenario,
    /// For how long.
    pub duration: Duration,
    /// Length of a whole answer.
    pub answer_bytes: usize,
    /// Connections held at once.
    pub connections: u32,
}

struct Client<'a> {
    load: &'a Load,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    sources: Sources,
    tally: Tally,
}

/// Sends requests until the time is up, and counts.
///
/// # Errors
/// What the kernel refuses at the start. Later failures are counted.
pub fn run(load: &Load) -> io::Result<Tally> {
    let started = Instant::now();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let sources = Sources::with_receive_buffers(load.scenario.receive_buffer_bytes);
    let mut client = Client { load, epoll, connections: Vec::new(), sources, tally: Tally::default() };
    for number in 0..load.connections {
        let socket = client.connect(u64::from(number))?;
        let requests = Requests::of(&load.scenario, number);
        let scenario = &load.scenario;
        let limit = scenario.requests_per_connection;
        client.connections.push(Connection::new(socket, requests, limit, scenario.depth));
    }
    client.serve_until(started + load.duration)?;
    client.tally.duration_us = latency::micros(started.elapsed());
    client.tally.receive_buffer_bytes = client.sources.granted_bytes();
    Ok(client.tally)
}

impl Client<'_> {
    fn connect(&mut self, number: u64) -> io::Result<OwnedFd> {
        let socket = self.sources.connect(self.load.address)?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &socket, EventData::new_u64(number), flags)?;
        Ok(socket)
    }

    fn serve_until(&mut self, end: Instant) -> io::Result<()> {
        let timeout = Timespec::try_from(Duration::from_millis(WAIT_MS)).map_err(io::Error::other)?;
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; RECEIVE_BYTES];
        while Instant::now() < end && self.tally.connect_errors < CONNECT_FAILURES_MAX {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                self.ready(event.data.u64(), &mut buffer);
            }
        }
        Ok(())
    }

    fn ready(&mut self, number: u64, buffer: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(number as usize) else { return };
        match connection.turn(buffer, self.load.answer_bytes, &mut self.tally) {
            Turn::GoOn => {}
            Turn::Reconnect => match self.connect(number) {
                Ok(socket) => self.connections[number as usize].renew(socket),
                Err(_) => self.tally.connect_errors += 1,
            },
        }
    }
}
