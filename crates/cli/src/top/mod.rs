//! `shearwater top`: the status of a running server in a terminal, from its admin listener.

mod document;
pub(crate) mod screen;
mod style;
mod terminal;

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use shearwater::engine::visible::Json;
use shearwater_metrics::document::Status;

use crate::args::Top;
use crate::failure::Failure;
use crate::http_client::Url;
use crate::report;
use crate::top::screen::Screen;
use crate::top::style::Style;
use crate::top::terminal::Terminal;

/// Time between two requests.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait for a status document.
const STATUS_WAIT_MAX: Duration = Duration::from_secs(3);

/// Maximum size of a status document, in bytes.
const STATUS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Time between two looks at keys, the size and new documents.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// Columns of a snapshot that isn't for a terminal.
const SNAPSHOT_COLUMNS: usize = 100;

/// Shows the status of the server at an address until `q` is pressed, or once.
pub(crate) fn run(arguments: &Top) -> Result<(), Failure> {
    let source = Source::new(&arguments.address);
    let bytes = source.load().map_err(|error| source.failure(&error))?;
    let status = document::parse(&bytes).map_err(|error| source.wrong(error))?;
    if arguments.json {
        let text = String::from_utf8_lossy(&bytes);
        return report::print(&format!("{}\n", Json(text.trim_end())));
    }
    if !arguments.once && Terminal::is_available() {
        return live(source, status)
            .map_err(|error| Failure::system(format!("can't use the terminal: {error}"), None));
    }
    let screen = Screen { status: &status, lost: None, width: SNAPSHOT_COLUMNS, style: Style::of_stdout() };
    report::print(&format!("{}\n", screen.lines(None).join("\n").trim_end()))
}

/// Draws the screen each second and whenever the terminal's size changes.
fn live(source: Source, mut status: Status) -> io::Result<()> {
    let style = Style::of_stdout();
    let terminal = Terminal::enter()?;
    let (sender, documents) = sync_channel(1);
    thread::Builder::new().name("status".to_owned()).spawn(move || source.poll(&sender))?;
    let mut lost: Option<(Instant, String)> = None;
    let mut drawn = None;
    loop {
        while let Ok(loaded) = documents.try_recv() {
            match loaded {
                Ok(loaded) => {
                    status = loaded;
                    lost = None;
                }
                Err(error) => {
                    let since = lost.map_or_else(Instant::now, |(since, _)| since);
                    lost = Some((since, error));
                }
            }
            drawn = None;
        }
        let size = Terminal::size();
        if drawn != Some(size) {
            let lost = lost.as_ref().map(|(since, error)| (since.elapsed(), error.as_str()));
            let screen = Screen { status: &status, lost, width: size.0, style };
            terminal.draw(&screen.lines(Some(size.1)))?;
            drawn = Some(size);
        }
        if terminal.is_left(KEY_WAIT)? {
            return Ok(());
        }
    }
}

/// A source of status documents.
struct Source {
    address: String,
    url: Url,
}

impl Source {
    fn new(address: &str) -> Self {
        let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
        Self { address: address.to_owned(), url: Url::parse(address).with_path("/status.json") }
    }

    /// Requests a document.
    fn load(&self) -> io::Result<Vec<u8>> {
        match self.url.fetch(STATUS_BYTES_MAX, Instant::now() + STATUS_WAIT_MAX)? {
            (200, body) => Ok(body),
            (status, _) => Err(io::Error::new(ErrorKind::InvalidData, format!("status {status}"))),
        }
    }

    /// Requests documents until nobody receives them any more.
    fn poll(&self, sender: &SyncSender<Result<Status, String>>) {
        loop {
            let begun = Instant::now();
            let loaded = self.load().map_err(|error| describe(&error));
            if sender.send(loaded.and_then(|bytes| document::parse(&bytes))).is_err() {
                return;
            }
            thread::sleep(STATUS_INTERVAL.saturating_sub(begun.elapsed()));
        }
    }

    /// Returns the error for a server without a response.
    fn failure(&self, error: &io::Error) -> Failure {
        let (address, why) = (&self.address, describe(error));
        let help = match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
                format!(
                    "start the server with `--admin {address}`, or name the address of its `[admin]` section"
                )
            }
            ErrorKind::InvalidData => "name the address of the server's `[admin]` section".to_owned(),
            _ => return Failure::system(format!("no status from {address}: {why}"), None),
        };
        Failure::system(format!("no status from {address}: {why}"), Some(help))
    }

    /// Returns the error for a response that isn't a status document.
    fn wrong(&self, why: String) -> Failure {
        self.failure(&io::Error::new(ErrorKind::InvalidData, why))
    }
}

/// Describes an error without its number.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::NotFound => "no such socket".to_owned(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no response within {STATUS_WAIT_MAX:?}"),
        _ => error.to_string(),
    }
}
