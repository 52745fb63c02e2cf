//! Binds every address, for each worker or for the acceptor.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use shearwater_io::listen::{self, ListenOptions};
use shearwater_io::{Listener, ListenerId};

use crate::server::addresses::{BoundAddress, ListenAddress, ListeningSocket};
use crate::server::options::{AcceptMode, Options, TcpOptions};
use crate::server::start::StartError;

/// The listeners of a server.
#[derive(Debug)]
pub(crate) struct Bound {
    /// With the ports that were assigned.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) unix_sockets: Vec<PathBuf>,
    /// Addresses of all listeners, indexed by `ListenerId`, for reports.
    pub(crate) listening_at: Vec<String>,
    /// Listeners of each worker.
    pub(crate) of_workers: Vec<Vec<Listener>>,
    /// Listeners of the acceptor, which dispatches their connections to the workers.
    pub(crate) of_acceptor: Vec<Listener>,
}

impl Bound {
    /// Binds the addresses of `options`, or none of them.
    ///
    /// # Errors
    /// [`StartError::NoAddress`], [`StartError::TooManyAddresses`], [`StartError::Bind`], [`StartError::Socket`].
    pub(crate) fn all(options: &Options, workers: usize) -> Result<Self, StartError> {
        if options.listen.is_empty() && options.sockets.is_empty() {
            return Err(StartError::NoAddress);
        }
        let mut bound = Self {
            addresses: Vec::new(),
            unix_sockets: Vec::new(),
            listening_at: Vec::new(),
            of_workers: (0..workers).map(|_| Vec::new()).collect(),
            of_acceptor: Vec::new(),
        };
        for (index, wanted) in options.listen.iter().enumerate() {
            let id = ListenerId::try_from(index).map_err(|_| StartError::TooManyAddresses)?;
            let bind = match wanted {
                ListenAddress::Tcp(address) => bound.tcp(*address, id, options),
                ListenAddress::Unix { path, mode } => bound.unix(path, *mode, id, options),
            };
            bind.map_err(|error| StartError::Bind { address: wanted.clone(), error })?;
        }
        for (index, socket) in (options.listen.len()..).zip(&options.sockets) {
            let id = ListenerId::try_from(index).map_err(|_| StartError::TooManyAddresses)?;
            bound.adopt(socket, id, options).map_err(StartError::Socket)?;
        }
        Ok(bound)
    }

    /// Returns any one of the listeners.
    pub(crate) fn any_listener(&self) -> Option<&Listener> {
        self.of_workers.iter().flatten().chain(&self.of_acceptor).next()
    }

    /// Binds a TCP address; with `reuseport` one listener per worker, among which the kernel distributes
    /// connections.
    fn tcp(&mut self, wanted: SocketAddr, id: ListenerId, options: &Options) -> std::io::Result<()> {
        let only_v6 = wanted.is_ipv6()
            && wanted.ip().is_unspecified()
            && options.listen.iter().any(|other| other.is_v4_port(wanted.port()));
        let of_workers = &mut self.of_workers;
        let shared = options.accept == AcceptMode::Reuseport && of_workers.len() > 1;
        let how = ListenOptions {
            backlog: options.backlog,
            reuse_port: shared,
            nodelay: options.tcp.nodelay,
            keepalive: options.tcp.keepalive,
            only_v6,
        };
        let address = listen::probe(wanted, only_v6)?;
        let listener = || listen::bind(address, how).map(|socket| Listener::new(socket.into(), id));
        match options.accept {
            AcceptMode::Dispatch => self.of_acceptor.push(listener()?),
            AcceptMode::Reuseport => {
                for of_worker in of_workers {
                    of_worker.push(listener()?);
                }
            }
        }
        self.listening_at.push(address.to_string());
        self.addresses.push(address);
        Ok(())
    }

    fn unix(&mut self, path: &Path, mode: u32, id: ListenerId, options: &Options) -> std::io::Result<()> {
        self.only_one(listen::bind_unix(path, mode, options.backlog, id)?, options.accept);
        self.listening_at.push(format!("unix:{}", path.display()));
        self.unix_sockets.push(path.to_owned());
        Ok(())
    }

    /// Takes over a socket that is already listening.
    fn adopt(&mut self, given: &ListeningSocket, id: ListenerId, options: &Options) -> std::io::Result<()> {
        let TcpOptions { nodelay, keepalive } = options.tcp;
        let how = ListenOptions { nodelay, keepalive, ..ListenOptions::default() };
        let socket = listen::adopt(given.duplicate()?, how)?;
        let address = given.bound_address()?;
        self.listening_at.push(address.to_string());
        match address {
            BoundAddress::Tcp(address) => self.addresses.push(address),
            BoundAddress::Unix(path) => self.unix_sockets.extend(path),
        }
        self.only_one(Listener::new(socket, id), options.accept);
        Ok(())
    }

    /// Assigns a listener that can't be duplicated. Workers that wait on one socket would all wake for each
    /// connection, so with several workers the acceptor dispatches its connections, in either mode.
    fn only_one(&mut self, listener: Listener, accept: AcceptMode) {
        match (accept, self.of_workers.as_mut_slice()) {
            (AcceptMode::Reuseport, [only]) => only.push(listener),
            _ => self.of_acceptor.push(listener),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    use socket2::SockRef;

    use super::{AcceptMode, Bound, Options, TcpOptions};
    use crate::server::start::StartError;

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
            assert_eq!(apart.addresses, [v6(port), v4(port)]);
            return;
        }
        panic!("no port stays free");
    }
}
