//! Responses without a file to send: errors, and redirects to canonical paths.

use std::io::ErrorKind;
use std::path::PathBuf;

use shearwater::Response;
use shearwater::engine::Request;
use shearwater_io::fs::OpenError;

use crate::disk::worker::DiskFailure;
use crate::leaving_links::LeavingLink;
use crate::resolve::search::is_missing;

/// Responds to a missing file, or a path that names none.
pub(crate) fn not_found(response: &mut Response<'_>) {
    response.status(404).text("Not Found\n");
}

/// Responds to a file that can't be opened, and reports it unless it is missing.
///
/// `link` is the one that leads out: the report names it, and the response doesn't.
pub(crate) fn cant_open(
    path: PathBuf,
    error: &OpenError,
    link: Option<&LeavingLink>,
    response: &mut Response<'_>,
) {
    match error {
        _ if is_missing(error) => return not_found(response),
        OpenError::Forbidden | OpenError::Escapes | OpenError::NotPlain => {
            response.status(403).text("Forbidden\n")
        }
        OpenError::Descriptors => {
            response.status(503).field("Retry-After", "1").text("Too many files are open. Try again.\n")
        }
        error if may_succeed_later(error) => {
            response.status(503).field("Retry-After", "1").text("The file can't be read now. Try again.\n")
        }
        _ => response.status(500).text("The file can't be read.\n"),
    };
    match link {
        Some(LeavingLink { link, target }) => {
            let (link, target) = (link.display(), target.display());
            response.report_file(
                path,
                format_args!(
                    "the link \"{link}\" leads out of the root, to \"{target}\" (`symlinks = \"follow\"` would serve it)"
                ),
            )
        }
        None => response.report_file(path, error),
    };
}

/// Returns whether a later request may get the file. A file server that is gone or slow, and a file in exclusive use,
/// aren't worth a thread that waits.
fn may_succeed_later(error: &OpenError) -> bool {
    use ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, ExecutableFileBusy, HostUnreachable,
        NetworkDown, NetworkUnreachable, NotConnected, ResourceBusy, StaleNetworkFileHandle, TimedOut,
    };
    let is_busy = |kind| match kind {
        ExecutableFileBusy | ResourceBusy => true,
        // A file server, or a program that serves one, is gone.
        StaleNetworkFileHandle
        | TimedOut
        | NotConnected
        | ConnectionAborted
        | ConnectionRefused
        | ConnectionReset
        | HostUnreachable
        | NetworkDown
        | NetworkUnreachable => true,
        _ => false,
    };
    error.is_passing() || matches!(error, OpenError::Other(error) if is_busy(error.kind()))
}

/// Responds to disk work that came to nothing.
pub(crate) fn disk_failed(path: PathBuf, failure: DiskFailure, response: &mut Response<'_>) {
    let (status, error) = match failure {
        DiskFailure::Busy => (503, "too many files wait for the disk"),
        DiskFailure::Late => (503, "the disk doesn't respond"),
        DiskFailure::Panicked => (500, "reading it has panicked"),
    };
    response.status(status);
    match status {
        503 => response.field("Retry-After", "1").text("The disk is busy. Try again.\n"),
        _ => response.text("The file can't be read.\n"),
    };
    response.report_file(path, error);
}

/// Responds with the status at the end of the candidates.
pub(crate) fn status(status: u16, response: &mut Response<'_>) {
    let text = match status {
        403 => "Forbidden\n",
        404 => "Not Found\n",
        410 => "Gone\n",
        _ => "Nothing is served here.\n",
    };
    response.status(status).text(text);
}

/// Responds with `301` to the same target with a trailing slash (RFC 9110 section 15.4.2). Relative links in a folder's
/// index need that slash.
pub(crate) fn redirect_to_folder(request: &Request<'_>, response: &mut Response<'_>) {
    // A leading `//` or `/\`, as browsers read it, would name another host, so neither is left.
    let mut location = "/".to_owned();
    push_encoded(&mut location, request.head().path().trim_start_matches('/'));
    location.push('/');
    push_query(&mut location, request);
    response.status(301).field("Location", &location).text("The folder's name ends with a slash.\n");
}

/// Responds with `308` to the path of this name (RFC 9110 section 15.4.9).
pub(crate) fn redirect_to_name(name: &[u8], request: &Request<'_>, response: &mut Response<'_>) {
    let mut location = format!("{}{}", request.mount(), encoded(name));
    push_query(&mut location, request);
    response.status(308).field("Location", &location).text("This page has another path.\n");
}

fn push_query(location: &mut String, request: &Request<'_>) {
    if let Some(query) = request.query() {
        location.push('?');
        push_encoded(location, query);
    }
}

/// Appends text of a client, percent-encoding what is invalid in a URL. Browsers treat a backslash as a slash.
pub fn push_encoded(location: &mut String, text: &str) {
    for letter in text.chars() {
        if is_no_uri(letter) {
            letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escape(location, byte));
        } else {
            location.push(letter);
        }
    }
}

/// Returns whether a character is invalid in a URI (RFC 3986 section 2).
#[must_use]
pub fn is_no_uri(letter: char) -> bool {
    !letter.is_ascii_graphic() || matches!(letter, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

fn push_escape(path: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    path.push('%');
    path.push(char::from(DIGITS[usize::from(byte >> 4)]));
    path.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Percent-encodes a name as a path. Leaves only letters, digits and a few marks, so that it can only be read as a path
/// on this host.
pub(crate) fn encoded(name: &[u8]) -> String {
    let mut path = String::with_capacity(name.len() + 1);
    path.push('/');
    encode(&mut path, name, b"/-._~!$&()*+,;=:@");
    path
}

/// Appends a name, percent-encoding all but letters, digits and the given marks.
pub(crate) fn encode(path: &mut String, name: &[u8], marks: &[u8]) {
    for &byte in name {
        match byte.is_ascii_alphanumeric() || marks.contains(&byte) {
            true => path.push(char::from(byte)),
            false => push_escape(path, byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use shearwater_io::fs::OpenError;

    use super::{encoded, may_succeed_later};

    #[test]
    fn a_gone_file_server_may_come_back_and_a_failed_disk_not() {
        use io::ErrorKind::{
            ConnectionAborted, HostUnreachable, NotConnected, Other, ReadOnlyFilesystem,
            StaleNetworkFileHandle,
        };
        let may = |kind: io::ErrorKind| may_succeed_later(&OpenError::Other(kind.into()));
        for kind in [NotConnected, ConnectionAborted, HostUnreachable, StaleNetworkFileHandle] {
            assert!(may(kind), "{kind:?}");
        }
        assert!(!may(Other) && !may(ReadOnlyFilesystem));
    }

    #[test]
    fn encodes_names_once() {
        for (name, path) in [
            (&b""[..], "/"),
            (b"a/b c.d", "/a/b%20c.d"),
            (b"%41?#[]\\\"<>'", "/%2541%3F%23%5B%5D%5C%22%3C%3E%27"),
            ("ü".as_bytes(), "/%C3%BC"),
            (b"\xff\0\r\n", "/%FF%00%0D%0A"),
            (b"a:b@c;d=e", "/a:b@c;d=e"),
        ] {
            assert_eq!(encoded(name), path);
        }
    }
}
