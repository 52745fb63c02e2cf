//! The null server: sends constant bytes or a file for every request, with as few system calls as the kernel allows. It parses
//! nothing and enforces no limits: it is the floor that real servers are compared with.
//!
//! One worker, the main thread. Without `--pipeline` every receive gets one response, which is right for clients that wait
//! for each; with it, every blank line (CRLFCRLF) does.

// Only `uring.rs` and `buffers.rs` hold unsafe code: the ring's interface is memory shared with the kernel.
#![deny(unsafe_code)]

mod buffers;
mod epoll;
mod file;
mod response;
mod secure;
mod uring;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use response::{ConstantResponse, RESPONSE_BYTES_MAX, RESPONSE_BYTES_MIN};

/// Room for a burst of ten thousand connections; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 16_384;

/// The smallest possible server, one worker
#[derive(Debug, Parser)]
#[command(name = "null-server", version)]
struct NullArgs {
    /// How to wait for the kernel
    #[arg(long, value_enum)]
    driver: NullDriver,

    /// Address and port to listen on
    #[arg(long)]
    listen: SocketAddr,

    /// Length of one whole response, head included
    #[arg(long, value_parser = clap::value_parser!(u32).range(RESPONSE_BYTES_MIN..=RESPONSE_BYTES_MAX))]
    bytes: u32,

    /// File to send as the body, by sendfile (epoll only: a ring would leave it to threads)
    #[arg(long)]
    file: Option<PathBuf>,

    /// Encrypts by TLS 1.3 with this certificate, in PEM (epoll only)
    #[arg(long, requires = "key", conflicts_with_all = ["file", "pipeline"])]
    certificate: Option<PathBuf>,

    /// Its key
    #[arg(long, requires = "certificate")]
    key: Option<PathBuf>,

    /// One response per blank line instead of one per receive
    #[arg(long)]
    pipeline: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum NullDriver {
    Epoll,
    Uring,
}

fn main() -> ExitCode {
    let args = NullArgs::parse();
    let Err(error) = serve(&args);
    eprintln!("null-server: {error}");
    ExitCode::FAILURE
}

fn serve(args: &NullArgs) -> io::Result<Infallible> {
    let bytes = args.bytes as usize;
    let response = match (&args.file, args.driver) {
        (None, _) => ConstantResponse::new(bytes, args.pipeline),
        (Some(path), NullDriver::Epoll) => ConstantResponse::with_file(bytes, args.pipeline, path)?,
        (Some(_), NullDriver::Uring) => return Err(io::Error::other("--file needs --driver epoll")),
    };
    // As long as the process.
    let response: &'static ConstantResponse = Box::leak(Box::new(response));
    let listener = listen(args.listen)?;
    match (args.driver, args.certificate.as_deref().zip(args.key.as_deref())) {
        (NullDriver::Epoll, None) => epoll::serve(&listener, response),
        (NullDriver::Uring, None) => uring::serve(&listener, response),
        (NullDriver::Epoll, Some(pair)) => secure::serve(&listener, response, pair),
        (NullDriver::Uring, Some(_)) => Err(io::Error::other("--certificate needs --driver epoll")),
    }
}

/// Binds and listens, non-blocking.
fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let listener = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&listener, true)?;
    // Accepted connections inherit it: no setsockopt per connection.
    sockopt::set_tcp_nodelay(&listener, true)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}
