//! Binds every address, for each worker or for the acceptor.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use shearwater_io::listen::{self, ListenOptions};
use shearwater_io::{Listener, ListenerId, unix};

use crate::listen_address::ListenAddress;
use crate::options::{AcceptMode, Options};
use crate::start_error::StartError;

/// The listeners of a server.
#[derive(Debug)]
pub(crate) struct Bound {
    /// With the ports taken.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) unix_sockets: Vec<PathBuf>,
    /// Each worker's own.
    pub(crate) of_workers: Vec<Vec<Listener>>,
    /// Those whose connections are handed out.
    pub(crate) of_acceptor: Vec<Listener>,
}

impl Bound {
    /// Binds what `options` say. What is bound when something fails is let go of.
    ///
    /// # Errors
    /// [`StartError::NoAddress`], [`StartError::TooManyAddresses`], [`StartError::Bind`].
    pub(crate) fn all(options: &Options, workers: usize) -> Result<Self, StartError> {
        if options.listen.is_empty() {
            return Err(StartError::NoAddress);
        }
        let mut bound = Self {
            addresses: Vec::new(),
            unix_sockets: Vec::new(),
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
        Ok(bound)
    }

    /// By `reuseport` a listener for each worker, over which the kernel spreads connections.
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
        self.addresses.push(address);
        Ok(())
    }

    /// There is one socket for all workers: the kernel spreads nothing over several, and workers that wait at the same one are all woken
    /// for each connection. So its connections are handed out whatever the mode, unless there is one worker to have them all.
    fn unix(&mut self, path: &Path, mode: u32, id: ListenerId, options: &Options) -> std::io::Result<()> {
        let listener = unix::bind(path, mode, options.backlog, id)?;
        match (options.accept, self.of_workers.as_mut_slice()) {
            (AcceptMode::Reuseport, [only]) => only.push(listener),
            _ => self.of_acceptor.push(listener),
        }
        self.unix_sockets.push(path.to_owned());
        Ok(())
    }
}
