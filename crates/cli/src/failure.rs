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
                let help = needs_privilege(&error).then(|| PRIVILEGE.to_owned());
                Self::system(error.to_string(), help)
            }
        }
    }
}

/// Ways to listen on a port below 1024.
const PRIVILEGE: &str = "`sudo setcap cap_net_bind_service=+ep $(command -v shearwater)`; in a systemd unit \
    AmbientCapabilities=CAP_NET_BIND_SERVICE; or ports from 1024 on: `--https-port 8443 --http-port 8080`";

/// Returns whether the server lacks the privilege for a port below 1024.
fn needs_privilege(error: &Error) -> bool {
    let Error::Start(StartError::Bind { address: ListenAddress::Tcp(address), error }) = error else {
        return false;
    };
    error.kind() == io::ErrorKind::PermissionDenied && address.port() < 1024
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

    #[test]
    fn a_low_port_without_privilege_names_remedies() {
        for (port, kind, is_helped) in [
            (443, io::ErrorKind::PermissionDenied, true),
            (8443, io::ErrorKind::PermissionDenied, false),
            (443, io::ErrorKind::AddrInUse, false),
        ] {
            let address = SocketAddr::from(([0, 0, 0, 0], port)).into();
            let failure = Failure::from(Error::Start(StartError::Bind { address, error: kind.into() }));
            let text = failure.to_string();
            for remedy in ["setcap cap_net_bind_service", "AmbientCapabilities=", "--https-port 8443"] {
                assert_eq!(text.contains(remedy), is_helped, "{text}");
            }
        }
    }
}
