//! A server as a systemd service: its settings, and the sockets that it inherits.

use std::fmt;
use std::io;
use std::sync::Arc;

use shearwater_engine::{ListenAddress, ListeningSocket, Options};
use shearwater_io::service_manager::inherited_sockets;

use crate::error::Error;
use crate::predecessor;
use crate::server::Server;

/// Takes ownership of the descriptors that a service manager has passed (`LISTEN_FDS`), or the process that this one
/// [succeeds](crate::Successor). Repeated calls do nothing.
///
/// Call it at the start of a program that opens files or reads its standard input before it configures its server. A server
/// reports errors when it starts.
pub fn claim_inherited_sockets() {
    drop(inherited_sockets());
    predecessor::claim();
}

/// How a server uses the sockets that a service manager has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Inherit {
    /// Ignores them.
    #[default]
    Nothing,
    /// Accepts on them instead of binding their addresses, which must be among the server's.
    Matching,
    /// Accepts on them instead of all addresses, if there are any.
    All,
}

impl Server {
    /// Creates a server that accepts on the sockets that a service manager has passed, or listens on `address` if there
    /// are none.
    ///
    /// See [`inherited_listeners`](Self::inherited_listeners).
    #[must_use]
    pub fn inherited_or(address: impl Into<String>) -> Self {
        claim_inherited_sockets();
        let mut server = Self::bind(address);
        server.inherit = Inherit::All;
        server
    }

    /// Accepts on the sockets that a service manager has passed (systemd's socket activation) instead of binding their
    /// addresses.
    ///
    /// A passed socket takes the place of the address that it is bound to. Other addresses are bound as usual. A passed
    /// socket at none of the server's addresses is an error, because its connections would wait forever. This call
    /// takes ownership of the descriptors in `LISTEN_FDS`: a program that opens files before it calls
    /// [`claim_inherited_sockets`](crate::engine::claim_inherited_sockets) first.
    #[must_use]
    pub fn inherited_listeners(mut self) -> Self {
        claim_inherited_sockets();
        self.inherit = Inherit::Matching;
        self
    }

    /// Reports to the service manager in `NOTIFY_SOCKET`, if there is one (systemd's `Type=notify`).
    ///
    /// Reports that the server is ready once all addresses are bound and the workers have started, a status line, the
    /// beginning and the end of a reload by [`on_reload`](Self::on_reload), and the beginning of a drain or stop. If the manager has a watchdog (`WatchdogSec=`), it hears every half of that
    /// time that the workers make progress; while a handler blocks a worker it hears nothing. That needs
    /// [`watchdog_ms`](Self::watchdog_ms).
    #[must_use]
    pub fn notify_manager(mut self) -> Self {
        self.notify_manager = true;
        self
    }

    /// Describes what is served, such as `3 sites`, for the status line of the [service manager](Self::notify_manager).
    ///
    /// A reload may change it: see [`Changed::serves`](crate::Changed::serves).
    #[must_use]
    pub fn serves(mut self, description: impl Into<String>) -> Self {
        self.serves = description.into();
        self
    }
}

/// A socket that a service manager has passed and that the server can't use. Displays as one sentence.
#[derive(Debug)]
#[non_exhaustive]
pub enum InheritError {
    /// The variables that announce the sockets are malformed.
    Announced(io::Error),
    /// The socket's address isn't among those of the server.
    Unmatched {
        /// Name of the socket in the service manager.
        name: Option<String>,
        /// Its address.
        bound: String,
        /// The server's addresses.
        configured: Vec<String>,
    },
}

impl fmt::Display for InheritError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announced(error) => write!(f, "can't take the service manager's sockets: {error}"),
            Self::Unmatched { name, bound, configured } => {
                let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
                let configured = configured.join(" and ");
                write!(
                    f,
                    "the service manager passed a socket at {bound}{name}, but the server is configured to listen at {configured}; help: configure the same address in both"
                )
            }
        }
    }
}

impl std::error::Error for InheritError {}

/// Replaces addresses of `options` by the sockets that are passed for them: by the service manager, or by the process that this
/// one succeeds, which got them from there.
///
/// Several sockets may have the same address (`SO_REUSEPORT`).
pub(crate) fn inherit(how: Inherit, takes_over: bool, options: &mut Options) -> Result<(), Error> {
    if how == Inherit::Nothing {
        return Ok(());
    }
    let failed = |error| Error::Inherit(InheritError::Announced(error));
    let of_manager = inherited_sockets().map_err(failed)?;
    let of_predecessor = if takes_over { predecessor::given()? } else { Vec::new() };
    let named =
        of_manager.iter().map(|given| (ListeningSocket::from(Arc::clone(&given.socket)), &given.name));
    let mut sockets: Vec<_> = named.collect();
    let unnamed = of_predecessor.iter().flat_map(|given| &given.sockets);
    sockets.extend(unnamed.map(|socket| (socket.clone(), &None)));
    let mut inherited = vec![false; options.listen.len()];
    for (socket, name) in &mut sockets {
        let mut is_wanted = how == Inherit::All;
        for (address, inherited) in options.listen.iter().zip(&mut inherited) {
            if socket.is_at(address).map_err(failed)? {
                (is_wanted, *inherited) = (true, true);
                if address.is_secure() {
                    *socket = socket.clone().with_tls();
                }
            }
        }
        if !is_wanted {
            let configured = options.listen.iter().map(ListenAddress::to_string).collect();
            let (name, bound) = ((*name).clone(), socket.to_string());
            return Err(Error::Inherit(InheritError::Unmatched { name, bound, configured }));
        }
    }
    let replaces_all = how == Inherit::All && !sockets.is_empty();
    let mut inherited = inherited.into_iter();
    options.listen.retain(|_| !(replaces_all || inherited.next() == Some(true)));
    options.sockets.extend(sockets.into_iter().take(of_manager.len()).map(|(socket, _)| socket));
    options.passed.extend(of_predecessor);
    Ok(())
}
