//! Group `http2`: clients of other people, and connections of HTTP/2 over an upgrade and a drain.

pub(crate) mod attacks;
pub(crate) mod clients;
pub(crate) mod hostile;
pub(crate) mod idle;
pub(crate) mod successor;

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use testkit::http2::Http2Client;
use testkit::tls::{ClientTls, ClientTlsOptions};
use testkit::{Error, Program, Stream, TIMEOUT, free_address};

use crate::context::CaseContext;

/// The two addresses of a site.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origins {
    /// In clear, with HTTP/2 by prior knowledge.
    pub(crate) clear: SocketAddr,
    pub(crate) tls: SocketAddr,
}

impl Origins {
    /// Chooses free ports.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { clear: free_address()?, tls: free_address()? })
    }

    /// Writes the configuration of a server of the folder `public`; `settings` are further lines.
    pub(crate) fn configure(self, context: &CaseContext<'_>, settings: &str) -> Result<PathBuf> {
        let text = format!(
            "[server]\nhttp2_prior_knowledge = true\n{settings}\n[[listen]]\naddress = \"{}\"\n\
             [[listen]]\naddress = \"{}\"\ntls = true\n\
             [[site]]\nroot = \"public\"\ntls = \"self-signed\"\nhttp = \"serve\"\n",
            self.clear, self.tls
        );
        context.write_file("site.toml", text.as_bytes())
    }

    /// Starts a server of the folder `public`.
    pub(crate) fn serve(self, context: &CaseContext<'_>, settings: &str) -> Result<Program> {
        let mut command = Command::new(&context.programs.server);
        command.arg("--config").arg(self.configure(context, settings)?);
        context.start_configured(command, self.clear)
    }

    /// Connects in clear.
    pub(crate) fn connect_in_clear(self) -> Result<Http2Client<Stream>, Error> {
        Http2Client::in_clear(Stream::from(connect(self.clear)?))
    }

    /// Connects by TLS. Clients with the same `tls` resume sessions.
    pub(crate) fn connect_by_tls(self, tls: &ClientTls) -> Result<Http2Client<Stream>, Error> {
        let stream = Stream::from(connect(self.tls)?).secured(tls)?;
        let (protocol, version, address) = (stream.protocol(), stream.version(), stream.local_addr()?);
        // The first use of the stream returns the failure of a handshake.
        let client = Http2Client::new(stream)?;
        match protocol.as_deref() {
            Some("h2") => Ok(client),
            other => {
                let message = format!("ALPN has chosen {other:?} (TLS {version:?}, client {address})");
                Err(Error::Malformed(message))
            }
        }
    }
}

/// Settings of clients that offer HTTP/2 alone.
pub(crate) fn client_tls() -> Result<ClientTls, Error> {
    ClientTls::with("localhost", &ClientTlsOptions { protocols: &["h2"], ..ClientTlsOptions::default() })
}

fn connect(address: SocketAddr) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}
