//! The control of `slow-heads`: a listener in this process that takes the slow clients in and never reads.
//!
//! What the normal client loses while the slow ones send to it is the price of the sending itself, on this machine; the server
//! has no part in it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::harness::trouble::{During, Outcome};

/// A listener that accepts and keeps.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<TcpStream>>,
}

impl Sink {
    /// Listens on a free loopback port.
    pub(super) fn start() -> Outcome<Self> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during("opening the control's listener")?;
        let address = listener.local_addr().during("opening the control's listener")?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || accept_until(&listener, &seen));
        Ok(Self { address, stop, thread })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets go of all connections.
    pub(super) fn finish(self) -> Outcome<()> {
        self.stop.store(true, Ordering::Relaxed);
        // One last connection wakes the thread up.
        let last = TcpStream::connect(self.address).during("ending the control's listener")?;
        self.thread.join().map_err(|_| "the control's listener panicked")?;
        drop(last);
        Ok(())
    }
}

/// Bounded by the number of connects made to it, and by the descriptor limit: an accept that fails ends it.
fn accept_until(listener: &TcpListener, stop: &AtomicBool) -> Vec<TcpStream> {
    let mut kept = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        kept.push(stream);
    }
    kept
}
