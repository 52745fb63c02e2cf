//! Listeners on their way from one process of a server to the next, which takes its place.
//!
//! Both processes have the sockets for a while, so that no connection is lost, whichever of them ends: the kernel closes a
//! socket's queue with its last descriptor.

use std::fmt;
use std::io;
use std::sync::{MutexGuard, PoisonError};

use shearwater_io::{ListenerHandle, listen};

use crate::server::addresses::{ListenAddress, ListeningSocket};
use crate::server::binding::Entry;
use crate::server::control::Control;
use crate::server::start::StartError;

/// The listening sockets of one address, which one process of a server passes to the next.
#[derive(Debug, Clone)]
pub struct PassedListener {
    /// The address that the server was asked to listen on; `None` for a socket that it was given.
    pub address: Option<ListenAddress>,
    /// The sockets, one for each worker that accepts from its own.
    pub sockets: Vec<ListeningSocket>,
}

impl PassedListener {
    /// Takes the first of `passed` that was asked for as `wanted` is.
    pub fn take(passed: &mut Vec<Self>, wanted: &ListenAddress) -> Option<Self> {
        let is_it =
            |passed: &Self| passed.address.as_ref().is_some_and(|address| address.is_same_socket(wanted));
        passed.iter().position(is_it).map(|index| passed.remove(index))
    }
}

/// The listeners of a running server, to be passed to another process. Dropping it changes nothing.
///
/// No address of the server changes meanwhile.
#[must_use = "dropping it changes nothing"]
pub struct PassingListeners<'a> {
    control: &'a Control,
    listeners: Vec<PassedListener>,
    _changing: MutexGuard<'a, ()>,
}

impl fmt::Debug for PassingListeners<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassingListeners").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}

impl PassingListeners<'_> {
    /// Returns descriptors of all sockets, by their addresses.
    #[must_use]
    pub fn listeners(&self) -> &[PassedListener] {
        &self.listeners
    }

    /// Notes that the other process serves: it removes the files of Unix-domain sockets from now on. This one accepts until
    /// it is [drained](Control::drain).
    pub fn finish(self) {
        self.control.listening.set_passed();
        self.control.each_socket(|_, socket| socket.own_file(false));
    }
}

impl Control {
    /// Returns the listeners of a running server, for a process that takes its place.
    ///
    /// Waits for the end of an address change that is being prepared.
    ///
    /// # Errors
    /// [`StartError::Ending`] after a drain or stop has been ordered, and [`StartError::System`] without a free descriptor.
    pub fn pass_listeners(&self) -> Result<PassingListeners<'_>, StartError> {
        let changing = self.listening.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_ending() {
            return Err(StartError::Ending);
        }
        let entries = self.listening.entries();
        let listeners: io::Result<_> = entries.iter().map(Entry::passed).collect();
        let listeners = listeners.map_err(StartError::System)?;
        Ok(PassingListeners { control: self, listeners, _changing: changing })
    }

    /// Removes the files of Unix-domain sockets from now on: those that were passed to this process still belong to the other
    /// one. Sets their configured modes.
    ///
    /// # Errors
    /// A mode can't be set: the file is gone, for example.
    pub fn own_socket_files(&self) -> io::Result<()> {
        let mut result = Ok(());
        self.each_socket(|address, socket| {
            socket.own_file(true);
            if let Some(ListenAddress::Unix { path, mode }) = address
                && let Err(error) = listen::set_mode(path, *mode)
            {
                result = Err(error);
            }
        });
        result
    }

    /// Returns true if another process serves at the addresses of this server.
    #[must_use]
    pub fn has_passed_listeners(&self) -> bool {
        self.listening.has_passed()
    }

    /// Calls a function with each socket and the address that was asked for.
    fn each_socket(&self, mut call: impl FnMut(Option<&ListenAddress>, &ListenerHandle)) {
        for entry in &self.listening.entries() {
            entry.sockets.iter().for_each(|socket| call(entry.wanted.as_ref(), socket));
        }
    }
}

impl Entry {
    /// Returns descriptors of its sockets. A socket that was shut down from outside isn't open any more.
    fn passed(&self) -> io::Result<PassedListener> {
        let open = self.sockets.iter().filter_map(|socket| socket.duplicate().transpose());
        let sockets: io::Result<_> = open.map(|socket| socket.map(ListeningSocket::from)).collect();
        Ok(PassedListener { address: self.wanted.clone(), sockets: sockets? })
    }
}

#[cfg(test)]
mod tests {
    use super::PassedListener;
    use crate::server::addresses::ListenAddress;

    #[test]
    fn each_address_takes_its_own_sockets() {
        let any: ListenAddress = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let path = ListenAddress::unix("/run/x.sock");
        let of =
            |address: Option<&ListenAddress>| PassedListener { address: address.cloned(), sockets: vec![] };
        let mut passed = vec![of(None), of(Some(&any)), of(Some(&path)), of(Some(&any))];
        let other_mode = ListenAddress::Unix { path: "/run/x.sock".into(), mode: 0o600 };
        for (wanted, is_there) in
            [(&any, true), (&other_mode, true), (&other_mode, false), (&any, true), (&any, false)]
        {
            let taken = PassedListener::take(&mut passed, wanted).map(|taken| taken.address.is_some());
            assert_eq!(taken, is_there.then_some(true), "{wanted}");
        }
        assert_eq!(passed.len(), 1, "a socket that was given has no address");
    }
}
