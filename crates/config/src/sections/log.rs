//! Keys of the access log.

use std::path::{Path, absolute};

use crate::rules::collections::{List, Optional};
use crate::rules::strings::{Choice, Text, choices, text};
use crate::section::section;

section! {
    /// The access log: a line for each request.
    Log {
        access: Option<String> = None, Optional(DESTINATION),
            "Destination of the access log: a file, which is appended to; \"-\" or \"/dev/stdout\", standard output (the start report goes to standard error then); \
             \"syslog:/dev/log\" or \"syslog:127.0.0.1:514\", a syslog daemon on this machine (RFC 5424). Default: no access log. SIGUSR1 \
             reopens a file, for logrotate.";
        format: String = "combined".to_owned(), text("\"common\", \"combined\", \"json\", or a text with variables, such as \"$remote_addr $status $request_time\""),
            "Format of a line. docs/tasks/access-log.md lists the variables and the members of the JSON object. `${status}` is written \
             `$${status}` here.";
        exclude_paths: Vec<String> = Vec::new(), List(text("a path, such as \"/health\"")),
            "Requests that aren't logged, by their path as the client sent it: \"/health\" also leaves out \"/health/db\". Malformed ones \
             (`400`) are always logged, and so are paths that may lead elsewhere: with `%`, `\\` or dot segments after it.";
        exclude_statuses: Vec<StatusClass> = Vec::new(), List(Choice(&[])),
            "Requests that aren't logged, by the class of their status.";
    }

    fn example() -> Self {
        Self { access: Some("/var/log/shearwater/access.log".to_owned()), ..Self::default() }
    }
}

choices! {
    /// Classes of statuses.
    StatusClass {
        Success "2xx": "Successful";
        Redirection "3xx": "Redirections and not-modified responses";
        ClientError "4xx": "Client errors";
        ServerError "5xx": "Server errors";
    }
}

/// The first one, which is overwritten where a list is read.
impl Default for StatusClass {
    fn default() -> Self {
        Self::Success
    }
}

/// The scheme of a daemon's address.
const SYSLOG: &str = "syslog:";

/// A path, `-`, or an address after `syslog:`.
const DESTINATION: Text<String> = Text {
    allowed: "a path, \"-\", or \"syslog:\" with a socket's path or a loopback address and port",
    parse: parse_destination,
    format: String::clone,
    help: "",
};

fn parse_destination(given: &str, base: &Path) -> Result<String, String> {
    if given == "-" || given.starts_with(SYSLOG) {
        return Ok(given.to_owned());
    }
    if given.is_empty() || given.contains('\0') {
        return Err("missing path of the log".to_owned());
    }
    let joined = base.join(given);
    let whole = absolute(&joined).unwrap_or(joined);
    whole.into_os_string().into_string().map_err(|_| "path isn't UTF-8".to_owned())
}
