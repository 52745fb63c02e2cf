//! Responses without a file to send.

use std::path::PathBuf;

use shearwater::Response;
use shearwater_io::fs::OpenError;

use crate::resolve::BadPath;

/// Responds to a path that names no file.
pub(crate) fn path(bad: BadPath, response: &mut Response<'_>) {
    match bad {
        BadPath::Escape => {
            response.status(400).text("A percent sign is followed by two hexadecimal digits.\n")
        }
        BadPath::Dots => response.status(400).text("A path with . or .. in it is not resolved here.\n"),
        BadPath::NoName => response.status(404).text("Not Found\n"),
    };
}

/// Responds to a file that can't be opened.
pub(crate) fn open(error: &OpenError, response: &mut Response<'_>) {
    match error {
        OpenError::NotFound | OpenError::NameTooLong | OpenError::TooManyLinks | OpenError::Link => {
            response.status(404).text("Not Found\n")
        }
        OpenError::Forbidden | OpenError::Escapes | OpenError::NotPlain => {
            response.status(403).text("Forbidden\n")
        }
        OpenError::Descriptors => {
            response.status(503).field("Retry-After", "1").text("Too many files are open. Try again.\n")
        }
        OpenError::Other(_) => response.status(500).text("The file can't be read.\n"),
    };
}

/// Responds to a file that can't be opened, and reports it unless it is missing.
pub(crate) fn open_at(path: PathBuf, error: &OpenError, response: &mut Response<'_>) {
    open(error, response);
    report(path, error, response);
}

/// Reports a file that can't be opened, unless it is missing.
pub(crate) fn report(path: PathBuf, error: &OpenError, response: &mut Response<'_>) {
    match error {
        OpenError::NotFound | OpenError::NameTooLong | OpenError::TooManyLinks | OpenError::Link => {}
        OpenError::Forbidden
        | OpenError::Escapes
        | OpenError::NotPlain
        | OpenError::Descriptors
        | OpenError::Other(_) => {
            response.report_file(path, error);
        }
    }
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
