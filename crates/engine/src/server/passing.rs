//! Listeners on their way from one process of a server to the next, which takes its place.
//!
//! Both processes have the sockets for a while, so that no connection is lost, whichever of them ends: the kernel
//! closes a socket's queue with its last descriptor.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, MutexGuard, PoisonError};

use shearwater_io::{ListenerHandle, listen};

use crate::server::addresses::{ListenAddress, ListeningSocket, PassedListener};
use crate::server::binding::Entry;
use crate::server::control::Control;
use crate::server::listening::Listening;
use crate::server::notice::Notice;
use crate::server::start_error::StartError;

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

    /// Leaves the files of Unix-domain sockets to the other process, or takes them back.
    pub fn own_files(&self, are_owned: bool) {
        self.control.each_socket(|socket| socket.own_file(are_owned));
    }

    /// Notes that the other process serves. This one accepts until it is [drained](Control::drain), and its addresses
    /// don't change any more.
    pub fn finish(self, process: u32) {
        self.control.listening.set_passed(process);
    }
}

/// Reports the end of the process that has taken the place of a server.
#[derive(Debug)]
pub struct SuccessorEnd {
    listening: Arc<Listening>,
    notices: SyncSender<Notice>,
}

impl SuccessorEnd {
    /// Notes that a process has ended whose status isn't known here.
    pub fn forget(self) {
        self.listening.forget_successor();
    }

    /// Notes that the process has ended. Reports a failure ([`Notice::SuccessorFailed`]), and waits if many notices
    /// wait.
    pub fn note(self, process: u32, status: ExitStatus) {
        self.listening.forget_successor();
        if !status.success() {
            // The receiver is gone only if the operator's side is.
            drop(self.notices.send(Notice::SuccessorFailed { process, status: status.to_string() }));
        }
    }
}

impl Control {
    /// Returns the listeners of a running server, for a process that takes its place.
    ///
    /// Waits up to 5 s for the end of an earlier address change, and for another process to get the listeners.
    ///
    /// # Errors
    /// [`StartError::Ending`] after a drain or stop has been ordered or another process has the listeners,
    /// [`StartError::Unfinished`] after the wait, and [`StartError::System`] without a free descriptor.
    pub fn pass_listeners(&self) -> Result<PassingListeners<'_>, StartError> {
        let changing = self.listening.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.listening.await_settled()?;
        let entries = self.listening.entries();
        let listeners: io::Result<_> = entries.iter().map(Entry::passed).collect();
        let listeners = listeners.map_err(StartError::System)?;
        Ok(PassingListeners { control: self, listeners, _changing: changing })
    }

    /// Waits for the end of a change of addresses and of [`PassingListeners`].
    pub fn await_passing(&self) {
        drop(self.listening.changing.lock());
    }

    /// Accepts from the listeners that another process has passed ([`Options::passed`](crate::Options::passed)), and
    /// owns the files of Unix-domain sockets. The server doesn't use these listeners before.
    ///
    /// # Errors
    /// An option or a mode can't be set. The listeners are used nevertheless.
    pub fn accept_passed(&self) -> io::Result<()> {
        let released = self.listening.release_held();
        self.wake();
        let mut result = released;
        for entry in &self.listening.entries() {
            entry.sockets.iter().for_each(|socket| socket.own_file(true));
            if let (Some(ListenAddress::Unix { path, mode }), Some(file)) = (&entry.wanted, entry.file()) {
                result = result.and(listen::set_mode(path, file, *mode));
            }
        }
        result
    }

    /// Returns the process that serves at the addresses of this server, unless it has ended.
    #[must_use]
    pub fn successor(&self) -> Option<u32> {
        self.listening.successor()
    }

    /// Returns the means to report the end of that process, for a thread that waits for it.
    #[must_use]
    pub fn successor_end(&self) -> SuccessorEnd {
        SuccessorEnd { listening: Arc::clone(&self.listening), notices: self.notices.clone() }
    }

    /// Returns true if another process serves at the addresses of this server, or did so.
    #[must_use]
    pub fn has_passed_listeners(&self) -> bool {
        self.listening.has_passed()
    }

    /// Calls a function with each socket.
    fn each_socket(&self, mut call: impl FnMut(&ListenerHandle)) {
        self.listening.entries().iter().flat_map(|entry| &entry.sockets).for_each(&mut call);
    }
}

impl Entry {
    /// Returns descriptors of its sockets, as far as they are open.
    fn passed(&self) -> io::Result<PassedListener> {
        let open = self.sockets.iter().filter_map(|socket| socket.duplicate().transpose());
        let sockets: io::Result<_> = open.map(|socket| socket.map(ListeningSocket::from)).collect();
        let file = self.sockets.iter().find_map(ListenerHandle::file);
        Ok(PassedListener { address: self.wanted.clone(), file, sockets: sockets? })
    }
}
