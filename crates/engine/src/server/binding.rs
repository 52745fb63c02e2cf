//! Binds every address, for each worker or for the acceptor.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use shearwater_io::listen::{self, ListenOptions};
use shearwater_io::{FileIdentity, Listener, ListenerHandle, ListenerId};

use crate::server::addresses::PassedListener;
use crate::server::addresses::{BoundAddress, ListenAddress, ListeningSocket};
use crate::server::options::{AcceptMode, Options, TcpOptions};
use crate::server::start_error::StartError;

/// How addresses are bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) accept: AcceptMode,
    pub(crate) backlog: u32,
    pub(crate) tcp: TcpOptions,
    pub(crate) workers: usize,
    /// False if the workers run and there is no acceptor.
    pub(crate) has_acceptor: bool,
    /// Connections can begin with TLS.
    pub(crate) secures: bool,
}

impl Binding {
    /// Returns that of a server that is about to start.
    pub(crate) fn new(options: &Options, workers: usize) -> Self {
        let Options { accept, backlog, tcp, .. } = *options;
        Self { accept, backlog, tcp, workers, has_acceptor: true, secures: false }
    }
}

impl Binding {
    /// Returns the options of sockets that others have bound.
    pub(crate) fn listen_options(&self) -> ListenOptions {
        let TcpOptions { nodelay, keepalive } = self.tcp;
        ListenOptions { backlog: self.backlog, nodelay, keepalive, ..ListenOptions::default() }
    }
}

/// Thread that accepts from a listener: a worker, or the acceptor.
pub(crate) type Holder = Option<usize>;

/// An address that a server listens on.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: ListenerId,
    /// The address asked for; `None` for a socket that was listening already.
    pub(crate) wanted: Option<ListenAddress>,
    pub(crate) bound: BoundAddress,
    /// True for `[::]` without IPv4.
    pub(crate) only_v6: bool,
    /// Its connections begin with TLS.
    pub(crate) is_secure: bool,
    /// Threads that accept from its sockets, one for each socket.
    pub(crate) holders: Vec<Holder>,
    /// Its sockets, each once.
    pub(crate) sockets: Vec<ListenerHandle>,
}

impl Entry {
    /// Returns one without sockets.
    fn at(bound: BoundAddress) -> Self {
        Self {
            id: 0,
            wanted: None,
            bound,
            only_v6: false,
            is_secure: false,
            holders: Vec::new(),
            sockets: Vec::new(),
        }
    }

    /// Returns the file of a Unix-domain socket.
    pub(crate) fn file(&self) -> Option<FileIdentity> {
        self.sockets.iter().find_map(ListenerHandle::file)
    }
}

/// Listeners by the threads that accept from them.
#[derive(Debug)]
pub(crate) struct Bound {
    binding: Binding,
    pub(crate) entries: Vec<Entry>,
    /// Listeners of each worker.
    pub(crate) of_workers: Vec<Vec<Listener>>,
    /// Listeners of the acceptor, which dispatches their connections to the workers.
    pub(crate) of_acceptor: Vec<Listener>,
    /// Listeners of another process, unused until [`Control::accept_passed`](crate::Control::accept_passed).
    pub(crate) held: Vec<(Holder, Listener)>,
}

impl Bound {
    /// Binds the addresses of `options`, or none of them.
    ///
    /// # Errors
    /// [`StartError::NoAddress`], [`StartError::TooManyAddresses`], [`StartError::Bind`], [`StartError::Socket`].
    pub(crate) fn all(options: &Options, workers: usize) -> Result<Self, StartError> {
        if options.listen.is_empty() && options.sockets.is_empty() && options.passed.is_empty() {
            return Err(StartError::NoAddress);
        }
        let mut bound = Self::new(Binding::new(options, workers));
        let mut passed = options.passed.clone();
        for (index, wanted) in options.listen.iter().enumerate() {
            let (id, only_v6) = (number(index)?, is_only_v6(wanted, &options.listen));
            match PassedListener::take(&mut passed, wanted) {
                Some(taken) => bound.take_over(&taken, id, only_v6, wanted)?,
                None => bound.bind(wanted, id, only_v6)?,
            }
        }
        let mut index = options.listen.len()..;
        for (socket, index) in options.sockets.iter().zip(&mut index) {
            bound.adopt(socket, number(index)?).map_err(StartError::Socket)?;
        }
        for (given, index) in passed.iter().filter(|passed| passed.address.is_none()).zip(&mut index) {
            bound.take_over_given(given, number(index)?).map_err(StartError::Socket)?;
        }
        Ok(bound)
    }

    /// Returns no listeners.
    pub(crate) fn new(binding: Binding) -> Self {
        let of_workers = (0..binding.workers).map(|_| Vec::new()).collect();
        Self { binding, entries: Vec::new(), of_workers, of_acceptor: Vec::new(), held: Vec::new() }
    }

    /// Binds one more address.
    ///
    /// # Errors
    /// [`StartError::Bind`].
    pub(crate) fn bind(
        &mut self,
        wanted: &ListenAddress,
        id: ListenerId,
        only_v6: bool,
    ) -> Result<(), StartError> {
        let bound = match wanted {
            ListenAddress::Tcp(address) | ListenAddress::Tls(address) => self.tcp(*address, id, only_v6),
            ListenAddress::Unix { path, mode } => self.unix(path, *mode, id),
        };
        let BoundListeners { bound, holders, sockets } =
            bound.map_err(|error| StartError::Bind { address: wanted.clone(), error })?;
        let is_secure = wanted.is_secure();
        let wanted = Some(wanted.clone());
        self.entries.push(Entry { id, wanted, bound, only_v6, is_secure, holders, sockets });
        Ok(())
    }

    /// Returns any one of the listeners.
    pub(crate) fn any_listener(&self) -> Option<&Listener> {
        let held = self.held.iter().map(|(_, listener)| listener);
        self.of_workers.iter().flatten().chain(&self.of_acceptor).chain(held).next()
    }

    /// Binds a TCP address; with `reuseport` one listener per worker, among which the kernel distributes
    /// connections.
    fn tcp(&mut self, wanted: SocketAddr, id: ListenerId, only_v6: bool) -> io::Result<BoundListeners> {
        let Binding { accept, backlog, tcp: TcpOptions { nodelay, keepalive }, .. } = self.binding;
        let reuse_port = accept == AcceptMode::Reuseport && self.of_workers.len() > 1;
        let how = ListenOptions { backlog, reuse_port, nodelay, keepalive, only_v6 };
        let address = listen::probe(wanted, only_v6)?;
        let count = if accept == AcceptMode::Reuseport { self.of_workers.len() } else { 1 };
        let mut listeners = Vec::new();
        for _ in 0..count {
            listeners.push(Listener::exclusive(listen::bind(address, how)?.into(), id));
        }
        let sockets = listeners.iter().map(Listener::handle).collect();
        let holders = self.holders(listeners.len());
        for (holder, listener) in holders.iter().zip(listeners) {
            match holder {
                Some(worker) => self.of_workers[*worker].push(listener),
                None => self.of_acceptor.push(listener),
            }
        }
        Ok(BoundListeners { bound: BoundAddress::Tcp(address), holders, sockets })
    }

    fn unix(&mut self, path: &Path, mode: u32, id: ListenerId) -> io::Result<BoundListeners> {
        let listener = listen::bind_unix(path, mode, self.binding.backlog, id)?;
        let sockets = vec![listener.handle()];
        Ok(BoundListeners {
            bound: BoundAddress::Unix(Some(path.to_owned())),
            holders: self.only_one(listener)?,
            sockets,
        })
    }

    /// Takes over a socket that is already listening.
    fn adopt(&mut self, given: &ListeningSocket, id: ListenerId) -> io::Result<()> {
        let socket = listen::adopt(given.duplicate()?, self.binding.listen_options())?;
        let bound = given.bound_address()?;
        let listener = Listener::new(socket, id);
        let sockets = vec![listener.handle()];
        let holders = self.only_one(listener)?;
        let is_secure = given.is_secure;
        self.entries.push(Entry { id, is_secure, holders, sockets, ..Entry::at(bound) });
        Ok(())
    }

    /// Takes over the sockets that another process of this server has for an address. Binds the address if they don't
    /// listen any more.
    fn take_over(
        &mut self,
        passed: &PassedListener,
        id: ListenerId,
        only_v6: bool,
        wanted: &ListenAddress,
    ) -> Result<(), StartError> {
        let failed = |error| StartError::Bind { address: wanted.clone(), error };
        let Some((bound, sockets)) = passed.listening().map_err(failed)? else {
            return self.bind(wanted, id, only_v6);
        };
        for socket in &sockets {
            if listen::is_only_v6(socket).map_err(failed)? != only_v6 {
                return Err(family_is_fixed(!only_v6, wanted));
            }
        }
        let path = match &bound {
            BoundAddress::Unix(path) => path.clone(),
            BoundAddress::Tcp(_) => None,
        };
        let file = path.as_deref().zip(passed.file);
        let listeners: Vec<_> =
            sockets.into_iter().map(|socket| Listener::taken_over(socket, id, file)).collect();
        let (is_secure, wanted) = (wanted.is_secure(), Some(wanted.clone()));
        self.hold(listeners, Entry { id, wanted, only_v6, is_secure, ..Entry::at(bound) });
        Ok(())
    }

    /// Takes over a socket that another process of this server was given.
    fn take_over_given(&mut self, passed: &PassedListener, id: ListenerId) -> io::Result<()> {
        let Some((bound, sockets)) = passed.listening()? else { return Ok(()) };
        let listeners: Vec<_> = sockets.into_iter().map(|socket| Listener::new(socket, id)).collect();
        let is_secure = passed.sockets.iter().any(|socket| socket.is_secure);
        self.hold(listeners, Entry { id, is_secure, ..Entry::at(bound) });
        Ok(())
    }

    /// Keeps the listeners of an address for later.
    fn hold(&mut self, listeners: Vec<Listener>, entry: Entry) {
        let holders = self.holders(listeners.len());
        let sockets = listeners.iter().map(Listener::handle).collect();
        self.held.extend(holders.iter().copied().zip(listeners));
        self.entries.push(Entry { holders, sockets, ..entry });
    }

    /// Returns the threads for the sockets of one address: one for each worker if there are as many, and otherwise one
    /// thread for all. None may be left out, because the kernel queues connections at each of them.
    fn holders(&self, count: usize) -> Vec<Holder> {
        match (self.binding.accept, self.of_workers.len()) {
            (AcceptMode::Reuseport, workers) if workers == count => self.all_workers(),
            (AcceptMode::Reuseport, 1) => vec![Some(0); count],
            _ => vec![None; count],
        }
    }

    /// Assigns a listener of which there is only one. Workers that wait on one socket all wake for each connection, so
    /// with several workers the acceptor dispatches its connections, in either mode. Workers that already run without
    /// an acceptor do wait on one socket.
    fn only_one(&mut self, listener: Listener) -> io::Result<Vec<Holder>> {
        match (self.binding.accept, self.of_workers.as_mut_slice()) {
            (AcceptMode::Reuseport, [only]) => only.push(listener),
            _ if self.binding.has_acceptor => {
                self.of_acceptor.push(listener);
                return Ok(vec![None]);
            }
            (_, [first, others @ ..]) => {
                for other in others {
                    other.push(listener.share()?);
                }
                first.push(listener);
            }
            (_, []) => {}
        }
        Ok(self.all_workers())
    }

    fn all_workers(&self) -> Vec<Holder> {
        (0..self.of_workers.len()).map(Some).collect()
    }
}

/// Returns whether a thread accepts for all workers.
pub(crate) fn needs_acceptor(of_acceptor: &[Listener], held: &[(Holder, Listener)]) -> bool {
    !of_acceptor.is_empty() || held.iter().any(|(holder, _)| holder.is_none())
}

/// An address that was bound, its sockets, and the threads that accept from them.
struct BoundListeners {
    bound: BoundAddress,
    holders: Vec<Holder>,
    sockets: Vec<ListenerHandle>,
}

/// Returns the listener's number. The last one is left out: see [`Leaving`](crate::leaving::Leaving).
fn number(index: usize) -> Result<ListenerId, StartError> {
    let number = ListenerId::try_from(index).ok().filter(|number| *number < ListenerId::MAX);
    number.ok_or(StartError::TooManyAddresses)
}

/// `[::]` takes IPv4 or doesn't from the time when it is bound.
pub(crate) fn family_is_fixed(only_v6: bool, wanted: &ListenAddress) -> StartError {
    let how = if only_v6 { "takes no IPv4 connections" } else { "takes IPv4 connections, too" };
    let message = format!("it {how}, which can't change while it is open; help: restart the server");
    StartError::Bind { address: wanted.clone(), error: io::Error::other(message) }
}

/// Returns true if `wanted` is `[::]` and IPv4 is listened on separately.
pub(crate) fn is_only_v6(wanted: &ListenAddress, all: &[ListenAddress]) -> bool {
    let Some(address) = wanted.tcp() else { return false };
    address.is_ipv6()
        && address.ip().is_unspecified()
        && all.iter().any(|other| other.is_v4_port(address.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    use socket2::SockRef;

    use super::{AcceptMode, Bound, BoundAddress, Options, TcpOptions};
    use crate::server::start_error::StartError;

    fn options(listen: Vec<SocketAddr>) -> Options {
        Options { listen: listen.into_iter().map(Into::into).collect(), ..Options::default() }
    }

    #[test]
    fn sets_tcp_options_on_every_listener() {
        for (nodelay, keepalive) in [(true, false), (false, true)] {
            for accept in [AcceptMode::Reuseport, AcceptMode::Dispatch] {
                let any = (Ipv4Addr::LOCALHOST, 0).into();
                let tcp = TcpOptions { nodelay, keepalive };
                let bound =
                    Bound::all(&Options { accept, tcp, ..options(vec![any]) }, 2).expect("it is free");
                let listeners: Vec<_> = bound.of_workers.iter().flatten().chain(&bound.of_acceptor).collect();
                assert_eq!(listeners.len(), if accept == AcceptMode::Dispatch { 1 } else { 2 });
                for listener in listeners {
                    let socket = SockRef::from(listener);
                    assert_eq!(socket.tcp_nodelay().expect("TCP_NODELAY"), nodelay);
                    assert_eq!(socket.keepalive().expect("SO_KEEPALIVE"), keepalive);
                    assert_eq!(
                        socket.reuse_port().expect("SO_REUSEPORT"),
                        accept == AcceptMode::Reuseport,
                        "shared among workers only"
                    );
                }
            }
        }
    }

    /// Returns a port that seems to be free in both families.
    fn free_port() -> Option<u16> {
        let socket = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).ok()?;
        Some(socket.local_addr().expect("its address").port())
    }

    #[test]
    fn ipv6_any_includes_ipv4_unless_listened_on_separately() {
        let v4 = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let v6 = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        // Another process may take the port in between.
        for _ in 0..20 {
            let Some(port) = free_port() else { return println!("skipped: this system has no IPv6") };
            let Ok(both) = Bound::all(&options(vec![v6(port)]), 1) else { continue };
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("IPv4 reaches it");
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).expect("IPv6 reaches it");
            let taken = Bound::all(&options(vec![v4(port)]), 1);
            assert!(matches!(taken, Err(StartError::Bind { .. })), "IPv4 has it too");
            drop(both);
            let Ok(apart) = Bound::all(&options(vec![v6(port), v4(port)]), 1) else { continue };
            let bound: Vec<_> = apart.entries.iter().map(|entry| entry.bound.clone()).collect();
            assert_eq!(bound, [v6(port), v4(port)].map(BoundAddress::Tcp));
            return;
        }
        panic!("no port stays free");
    }
}
