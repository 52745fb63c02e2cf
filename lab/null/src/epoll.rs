//! The floor with epoll: per request one receive and one send, and one wait per turn.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};

use crate::response::{CARRIED_BYTES, ConstantResponse};

/// Events per wait.
const EVENTS_MAX: usize = 512;
/// Bytes per receive: more than sixteen pipelined heads.
pub(crate) const RECEIVE_BYTES: usize = 16 * 1024;
/// Accepts per turn; level-triggered, so the rest comes with the next one.
const ACCEPTS_MAX: usize = 128;

/// Event data of the listener; connections have their descriptor's number.
const LISTENER: u64 = u64::MAX;

/// One client's connection, and what all of them share.
pub(crate) trait EpollPeer: Sized {
    type Shared;

    /// Takes over an accepted socket; nothing if that fails.
    fn accepted(socket: OwnedFd, shared: &mut Self::Shared) -> Option<Self>;

    /// Receives until the socket is empty. Returns false at the connection's end.
    fn receive(&mut self, shared: &mut Self::Shared, to_the_end: bool) -> bool;

    /// Sends owed bytes until the socket's buffer is full. Returns false at the connection's end.
    fn send(&mut self, shared: &mut Self::Shared) -> bool;
}

/// The response, and room for one receive after the carried bytes.
struct PlainShared {
    response: &'static ConstantResponse,
    buffer: Box<[u8; CARRIED_BYTES + RECEIVE_BYTES]>,
}

struct PlainConnection {
    socket: OwnedFd,
    /// Bytes still to send: not zero only while the socket's buffer is full.
    owed_bytes: usize,
    /// Last bytes of the previous receive: a blank line may begin there.
    carried: [u8; CARRIED_BYTES],
}

struct EpollWorker<P: EpollPeer> {
    epoll: OwnedFd,
    shared: P::Shared,
    /// By descriptor number: the cheapest table there is. Bounded by the process's limit of descriptors.
    connections: Vec<Option<P>>,
}

/// Serves until the kernel fails.
pub(crate) fn serve(listener: &OwnedFd, response: &'static ConstantResponse) -> io::Result<Infallible> {
    let shared = PlainShared { response, buffer: Box::new([0; CARRIED_BYTES + RECEIVE_BYTES]) };
    serve_peers::<PlainConnection>(listener, shared)
}

/// Serves connections of one kind until the kernel fails.
pub(crate) fn serve_peers<P: EpollPeer>(listener: &OwnedFd, shared: P::Shared) -> io::Result<Infallible> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut worker = EpollWorker::<P> { epoll, shared, connections: Vec::new() };
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(&worker.epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                LISTENER => worker.accept(listener)?,
                number => worker.ready(number as usize, event.flags),
            }
        }
    }
}

impl<P: EpollPeer> EpollWorker<P> {
    fn accept(&mut self, listener: &OwnedFd) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            // Non-blocking from the start: no fcntl per connection.
            let socket =
                match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                    Ok(socket) => socket,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::CONNABORTED | Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
            let number = socket.as_raw_fd() as usize;
            // Once for the connection's life, edge-triggered: no epoll_ctl when a send has to wait.
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &socket, EventData::new_u64(number as u64), flags)?;
            if self.connections.len() <= number {
                self.connections.resize_with(number + 1, || None);
            }
            self.connections[number] = P::accepted(socket, &mut self.shared);
        }
        Ok(())
    }

    fn ready(&mut self, number: usize, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else { return };
        let readable =
            flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        // With the peer's FIN in the event, read to the end: edge-triggered epoll reports it once.
        let to_the_end = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let received = !readable || connection.receive(&mut self.shared, to_the_end);
        if !(received && connection.send(&mut self.shared)) {
            // Closing also takes it out of the epoll set.
            self.connections[number] = None;
        }
    }
}

impl EpollPeer for PlainConnection {
    type Shared = PlainShared;

    fn accepted(socket: OwnedFd, _: &mut PlainShared) -> Option<Self> {
        Some(Self { socket, owed_bytes: 0, carried: [0; CARRIED_BYTES] })
    }

    /// A short read means that the socket is empty.
    fn receive(&mut self, shared: &mut PlainShared, to_the_end: bool) -> bool {
        let PlainShared { response, buffer } = shared;
        loop {
            let room = &mut buffer[CARRIED_BYTES..];
            let length = match rustix::net::recv(&self.socket, room, RecvFlags::empty()) {
                Ok((0, _)) => return false,
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            };
            if response.counts_blank_lines() {
                buffer[..CARRIED_BYTES].copy_from_slice(&self.carried);
                self.carried.copy_from_slice(&buffer[length..length + CARRIED_BYTES]);
            }
            self.owed_bytes += response.due_bytes(&buffer[..CARRIED_BYTES + length]);
            if length < RECEIVE_BYTES && !to_the_end {
                return true;
            }
        }
    }

    fn send(&mut self, shared: &mut PlainShared) -> bool {
        while self.owed_bytes > 0 {
            match shared.response.send(&self.socket, self.owed_bytes) {
                Ok(length) => self.owed_bytes -= length,
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}
