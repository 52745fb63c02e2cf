//! What each kind of handler costs: user instructions of a request, one kind beside the other in one program, against the plain text
//! of the example that everything else is measured with. Beside them axum on our engine, and what it stands on elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::binaries::Binaries;
use crate::instructions::{self, Subject, heap, rounds};
use crate::peers;
use crate::process::Launch;
use crate::scenario::{JSON, PLAINTEXT};
use crate::site::Site;
use crate::verdicts::Verdicts;

/// A fast route may cost so many times the plain text.
const FAST_FACTOR_MAX: f64 = 1.03;
/// JSON made anew for each answer may cost so many instructions more.
const JSON_MORE_MAX: f64 = 600.0;

const NOTE: &str = "User instructions of one request by callgrind (epoll, one worker, 32 connections): the difference of two runs over their \
                    difference in requests; allocations\nlikewise by memcheck, where the system's allocator is used. A turn that a handler lets others have is one of the worker's, with all that waits.";

/// Programs of the peers' workspace with the same text, and what each is.
const PEERS: [(&str, &str); 3] = [
    ("peer-ours-axum", "axum's router on our engine"),
    ("peer-axum", "axum::serve"),
    ("peer-hyper", "hyper by itself"),
];

/// What a kind may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    None,
    /// So many times the plain text.
    Factor(f64),
    /// So many instructions more than it.
    More(f64),
}

/// A kind of handler and how it is asked: all targets have the same length.
#[derive(Debug, Clone, Copy)]
struct Kind {
    about: &'static str,
    target: &'static str,
    /// Sent by `POST`, and wanted back; none: a `GET`.
    body: Option<&'static str>,
    wanted: &'static str,
    bound: Bound,
}

/// What a request costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    instructions: f64,
    /// None where they can't be counted: in programs with an allocator of their own.
    allocations: Option<f64>,
}

const fn get(about: &'static str, target: &'static str, bound: Bound) -> Kind {
    Kind { about, target, body: None, wanted: PLAINTEXT, bound }
}

const fn post(about: &'static str, target: &'static str) -> Kind {
    Kind { about, target, body: Some(PLAINTEXT), wanted: PLAINTEXT, bound: Bound::None }
}

const PLAIN: Kind = get("a handler", "/plaintext", Bound::None);
const KINDS: &[Kind] = &[
    PLAIN,
    get("a fast route", "/fast-text", Bound::Factor(FAST_FACTOR_MAX)),
    Kind { wanted: JSON, ..get("JSON by serde", "/json-text", Bound::More(JSON_MORE_MAX)) },
    get("an async handler", "/asynctext", Bound::None),
    get("an async handler that lets others have a turn", "/asyncturn", Bound::None),
    get("a coroutine", "/coroutine", Bound::None),
    get("a coroutine that lets others have a turn", "/corouturn", Bound::None),
    post("a body, kept for the handler", "/post-body"),
    post("a body, read by an async handler", "/take-body"),
];

impl Kind {
    fn request(&self) -> Vec<u8> {
        let target = self.target;
        let head = |method, more| {
            format!("{method} {target} HTTP/1.1\r\nHost: lab\r\nUser-Agent: lab\r\nAccept: */*\r\n{more}\r\n")
        };
        match self.body {
            None => head("GET", String::new()),
            Some(body) => head("POST", format!("Content-Length: {}\r\n", body.len())) + body,
        }
        .into_bytes()
    }

    fn send(&self, address: SocketAddr, requests: u32) -> Result<(), String> {
        let request = self.request();
        let sent = rounds::exchange(address, requests, &|_| request.clone(), self.wanted.as_bytes());
        sent.map_err(|error| format!("{}: {error}", self.target))
    }

    fn judge(&self, verdicts: &mut Verdicts, cost: Cost, plain: f64) {
        let Cost { instructions: measured, allocations } = cost;
        let more = measured - plain;
        // A few more or less at the start may leave a trace below nothing.
        let allocated = allocations.map(|count| format!("; {:.2} allocations", count.abs()));
        let allocated = allocated.unwrap_or_default();
        let figure = format!("{measured:.1} ({more:+.1}, x {:.3}){allocated}", measured / plain);
        match self.bound {
            Bound::None => verdicts.shown(self.about, figure),
            Bound::Factor(factor) => {
                let bound = format!("the plain text's x {factor}");
                verdicts.judged(self.about, figure, &bound, measured <= plain * factor);
            }
            Bound::More(most) => {
                let bound = format!("the plain text's + {most}");
                verdicts.judged(self.about, figure, &bound, more <= most);
            }
        }
    }
}

/// A program of the peers' workspace: it has one worker.
fn launch_peer(program: PathBuf, address: SocketAddr) -> Launch {
    Launch { program, arguments: vec![address.to_string()], environment: Vec::new() }
}

/// One of the examples, with one worker on epoll.
fn launch(program: PathBuf, address: SocketAddr) -> Launch {
    let environment = vec![
        ("SHEARWATER_LISTEN", address.to_string()),
        ("SHEARWATER_DRIVER", "epoll".to_owned()),
        ("SHEARWATER_WORKERS", "1".to_owned()),
    ];
    Launch { program, arguments: Vec::new(), environment }
}

/// A program to be counted.
#[derive(Clone)]
enum Program {
    /// One of the examples.
    Ours(PathBuf),
    /// One of the peers' workspace.
    Peer(PathBuf),
}

impl Program {
    /// With one worker on epoll.
    fn launch(&self, address: SocketAddr) -> Launch {
        match self.clone() {
            Self::Ours(program) => launch(program, address),
            Self::Peer(program) => launch_peer(program, address),
        }
    }

    /// What a request costs it.
    fn cost(&self, kind: &Kind, site: &Site) -> Result<Cost, String> {
        let subject = Subject {
            launch: &|address| Ok(self.launch(address)),
            send: &|address, requests| kind.send(address, requests),
            site,
        };
        let instructions = instructions::per_request(&subject)?;
        let allocations = match self {
            Self::Ours(_) => Some(heap::allocations_per_request(&subject)?),
            Self::Peer(_) => None,
        };
        Ok(Cost { instructions, allocations })
    }
}

/// Counts all of them, which takes some minutes.
///
/// # Errors
/// valgrind is missing, a server doesn't start, or an answer isn't what was asked for.
pub fn run(binaries: &Binaries, say: &dyn Fn(&str)) -> Result<Verdicts, String> {
    let site = Site::create().map_err(|error| format!("creating the site: {error}"))?;
    let mut verdicts = Verdicts::new(NOTE);
    let about = "the plain text of `examples/plaintext`";
    say(about);
    let plain = Program::Ours(binaries.example()).cost(&PLAIN, &site)?.instructions;
    verdicts.shown(about, format!("{plain:.1}"));
    let kinds = Program::Ours(binaries.kinds());
    for kind in KINDS {
        say(kind.about);
        kind.judge(&mut verdicts, kinds.cost(kind, &site)?, plain);
    }
    for (name, about) in PEERS {
        say(about);
        // They are nobody's bound: one that isn't built is left out.
        let program = peers::built(name);
        match program.exists() {
            true => {
                let cost = Program::Peer(program).cost(&PLAIN, &site)?;
                Kind { about, ..PLAIN }.judge(&mut verdicts, cost, plain);
            }
            false => verdicts.shown(about, "not built: `cargo lab setup --build-peers`".to_owned()),
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::{Bound, Cost, KINDS, PLAIN};
    use crate::verdicts::Verdicts;

    #[test]
    fn requests_differ_in_what_they_ask_alone() {
        for kind in KINDS {
            assert_eq!(kind.target.len(), PLAIN.target.len(), "{}", kind.about);
            let request = String::from_utf8(kind.request()).expect("text");
            let (head, body) = request.split_once("\r\n\r\n").expect("a head");
            assert_eq!(body, kind.body.unwrap_or_default());
            assert_eq!(head.contains("Content-Length: 13"), kind.body.is_some());
        }
    }

    #[test]
    fn a_bound_holds_up_to_itself() {
        let held = |bound, measured| {
            let mut verdicts = Verdicts::new("");
            super::Kind { bound, ..PLAIN }.judge(
                &mut verdicts,
                Cost { instructions: measured, allocations: None },
                1000.0,
            );
            verdicts.is_met()
        };
        assert!(held(Bound::None, 9e9));
        assert!(held(Bound::Factor(1.5), 1500.0) && !held(Bound::Factor(1.5), 1501.0));
        assert!(held(Bound::More(600.0), 1600.0) && !held(Bound::More(600.0), 1601.0));
    }
}
