//! Errors that end the program.

use std::fmt;
use std::io;

use shearwater::{Error, ListenAddress, StartError};
use shearwater_config::Diagnostics;

/// An error with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    pub(crate) code: u8,
}

#[derive(Debug)]
pub(crate) enum Reason {
    /// An error, perhaps with a way to fix it.
    Error { message: String, help: Option<String> },
    /// Errors in a configuration file.
    Config(Diagnostics),
    /// Already reported.
    Reported,
}

impl Failure {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::usage_with_help(message.into(), None)
    }

    /// As [`usage`](Self::usage); `help` is a way to fix it.
    pub(crate) fn usage_helped(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::usage_with_help(message.into(), Some(help.into()))
    }

    /// As [`usage`](Self::usage); there may be a way to fix it.
    pub(crate) fn usage_with_help(message: String, help: Option<String>) -> Self {
        Self { reason: Reason::Error { message, help }, code: 2 }
    }

    /// The system prevents it, perhaps only now: another try may succeed.
    pub(crate) fn system(message: impl Into<String>, help: Option<String>) -> Self {
        Self { code: 1, ..Self::usage_with_help(message.into(), help) }
    }

    /// Writing to standard output failed.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self::system(format!("can't write to standard output: {error}"), None)
    }

    /// An error that was already reported.
    pub(crate) fn reported(code: u8) -> Self {
        Self { reason: Reason::Reported, code }
    }
}

/// Formats the error with its line end; empty if it was already reported.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Error { message, help } => {
                writeln!(f, "error: {message}")?;
                help.iter().try_for_each(|help| writeln!(f, "help: {help}"))
            }
            Reason::Config(errors) => {
                let (file, count) = (errors.file.display(), errors.count());
                let plural = if count == 1 { "" } else { "s" };
                writeln!(f, "{errors}\nerror: invalid configuration {file}: {count} error{plural}")
            }
            Reason::Reported => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Address { .. } | Error::Start(StartError::Driver { .. } | StartError::NoTrustedProxy) => {
                Self::usage(error.to_string())
            }
            _ => {
                let help = privilege_help(&error);
                Self::system(error.to_string(), help)
            }
        }
    }
}

/// Ways to listen on a port below 1024.
const PRIVILEGE: &str = "`sudo setcap cap_net_bind_service=+ep $(command -v shearwater)`; in a systemd unit \
    AmbientCapabilities=CAP_NET_BIND_SERVICE";

/// Returns the ways to listen on a port, if the server lacks the privilege for it.
fn privilege_help(error: &Error) -> Option<String> {
    let Error::Start(StartError::Bind { address: ListenAddress::Tcp(address), error }) = error else {
        return None;
    };
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied && address.port() < 1024;
    is_denied.then(|| {
        let others = match (address.port(), address.ip().is_loopback()) {
            // A server with certificates listens on both.
            (443, _) | (80, false) => {
                "`--https-port 8443 --http-port 8080`, or without HTTPS `--listen 0.0.0.0:8080`"
            }
            (_, true) => "`--port 8080`",
            (_, false) => "`--listen 0.0.0.0:8080`",
        };
        format!("{PRIVILEGE}; or a port from 1024 on: {others}, in a configuration its `address`")
    })
}

impl From<Diagnostics> for Failure {
    fn from(errors: Diagnostics) -> Self {
        Self { reason: Reason::Config(errors), code: 2 }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;

    use shearwater::{Error, StartError};

    use super::Failure;

    fn of_bind(address: impl Into<SocketAddr>, kind: io::ErrorKind) -> String {
        let address = address.into().into();
        Failure::from(Error::Start(StartError::Bind { address, error: kind.into() })).to_string()
    }

    #[test]
    fn a_low_port_without_privilege_names_remedies() {
        for (port, kind, is_helped) in [
            (443, io::ErrorKind::PermissionDenied, true),
            (80, io::ErrorKind::PermissionDenied, true),
            (8443, io::ErrorKind::PermissionDenied, false),
            (443, io::ErrorKind::AddrInUse, false),
        ] {
            let text = of_bind(([0, 0, 0, 0], port), kind);
            for remedy in ["setcap cap_net_bind_service", "AmbientCapabilities=", "--https-port 8443"] {
                assert_eq!(text.contains(remedy), is_helped, "{text}");
            }
        }
    }

    #[test]
    fn the_remedy_fits_the_address() {
        let denied = io::ErrorKind::PermissionDenied;
        for (address, remedy) in [
            (SocketAddr::from(([127, 0, 0, 1], 80)), ": `--port 8080`,"),
            (SocketAddr::from(([0, 0, 0, 0], 81)), ": `--listen 0.0.0.0:8080`,"),
            (SocketAddr::from(([0, 0, 0, 0], 80)), "or without HTTPS `--listen 0.0.0.0:8080`,"),
        ] {
            let text = of_bind(address, denied);
            assert!(text.contains(remedy), "{text}");
        }
    }
}
