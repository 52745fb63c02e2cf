//! One fault: what is promised of it, and whether a server keeps that.

use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use crate::harness::client::request;
use crate::harness::common::Common;
use crate::harness::counters;
use crate::harness::folder::Folder;
use crate::harness::server::{Server, Signal};
use crate::harness::trouble::Outcome;

use super::client::{Said, ask, expect};

/// What a server doesn't keep of a promise, in words.
pub(super) type Kept = Result<(), String>;

/// How long what has to come may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked for meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The signal of a process that has given itself up.
const SIGABRT: i32 = 6;
/// How often the server looks for handlers that block it.
const WATCHDOG_MS: u64 = 50;

/// The kinds of handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sync,
    Async,
    Coroutine,
}

impl Kind {
    /// Its name, and that of its routes.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Coroutine => "coroutine",
        }
    }
}

/// What becomes of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It goes on, and ends in order.
    GoesOn,
    /// The process is aborted.
    Aborted,
}

/// A fault, and what is promised of it.
pub(super) struct Case {
    /// Which one it is.
    pub(super) fault: &'static str,
    /// Where its routes lie beneath those of its kind.
    pub(super) route: &'static str,
    pub(super) kinds: &'static [Kind],
    /// What is promised, in words.
    pub(super) promise: &'static str,
    /// Sends the request, and holds what comes against the promise.
    pub(super) visit: fn(SocketAddr, &str) -> Said,
    /// What the operator reads.
    pub(super) told: Option<&'static str>,
    /// What is counted among the faults, at the end.
    pub(super) counted: &'static str,
    pub(super) end: End,
}

impl Case {
    /// Whether a server of its own keeps the promise; what it doesn't keep, if so.
    pub(super) fn hold(&self, common: &Common, folder: &Folder, kind: Kind) -> Outcome<Kept> {
        // Where no handler blocks nobody looks: on a busy machine a worker may stand still by itself.
        let watchdog_ms = if self.route.starts_with("blocks") { WATCHDOG_MS } else { 0 };
        let settings = [("SHEARWATER_WATCHDOG_MS", watchdog_ms.to_string())];
        let mut server = Server::example(common, &settings, folder)?;
        let target = format!("/{}/{}", kind.word(), self.route);
        Ok(match self.end {
            End::GoesOn => self.hold_to_the_end(&mut server, &target),
            End::Aborted => self.see_it_aborted(&mut server, &target),
        })
    }

    fn hold_to_the_end(&self, server: &mut Server, target: &str) -> Kept {
        let address = server.address();
        let mut other = ask(address, &request("GET", "/")).map_err(in_words)?;
        (self.visit)(address, target).map_err(in_words)?;
        expect(&mut other, &request("GET", "/"), b"Hello, world\n")
            .map_err(|why| format!("another: {why}"))?;
        until("guards are left", || nobody_is_alive(address))?;
        if let Some(words) = self.told {
            until(&format!("not told: {words:?}"), || log(server).contains(words))?;
        }
        // A drain gives an idle client a moment.
        drop(other);
        server.signal(Signal::TERM).map_err(in_words)?;
        match server.wait_for_end(PATIENCE) {
            Some(status) if status.success() => {}
            other => return Err(format!("the server's end: {other:?}")),
        }
        if self.told.is_none() && log(server).contains("a handler") {
            return Err(format!("told: {}", log(server)));
        }
        let counted = counters::in_all(server.log()).ok_or("no counters at the end")?;
        match counted.faults == self.counted && counted.open == 0 {
            true => Ok(()),
            false => Err(format!("counted {:?}, {} open", counted.faults, counted.open)),
        }
    }

    fn see_it_aborted(&self, server: &mut Server, target: &str) -> Kept {
        (self.visit)(server.address(), target).map_err(in_words)?;
        match server.wait_for_end(PATIENCE) {
            Some(status) if status.signal() == Some(SIGABRT) => {}
            other => return Err(format!("the process's end: {other:?}")),
        }
        match self.told {
            Some(words) if !log(server).contains(words) => Err(format!("told: {}", server.last_log_line())),
            _ => Ok(()),
        }
    }
}

fn nobody_is_alive(address: SocketAddr) -> bool {
    ask(address, b"").is_ok_and(|mut client| expect(&mut client, &request("GET", "/alive"), b"0").is_ok())
}

fn in_words(why: impl Display) -> String {
    why.to_string()
}

fn log(server: &Server) -> String {
    fs::read_to_string(server.log()).unwrap_or_default()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Kept {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() >= deadline {
            return Err(what.to_owned());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}
