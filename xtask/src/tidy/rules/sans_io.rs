//! Rule `sans-io`: the protocol crate takes bytes and gives events, and knows nothing else.
//!
//! A parser without sockets, clock and threads can be tested on every split of every input, fuzzed, and used over any
//! transport. Plain types such as `std::net::Ipv6Addr` are no I/O.

use super::Rule;
use crate::tidy::code::{Code, Kind};
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;
use crate::tidy::uses::lines_using;

pub(crate) const RULE: Rule = Rule {
    name: "sans-io",
    reason: "http1 has no sockets, files, clock, threads or environment: bytes in, events out, so every split of an input can be tested",
    check,
};

const BOUND: &str = "http1";

/// Modules of `std` that reach out of the program.
const MODULES: &[&str] = &["env", "fs", "io", "os", "process", "thread", "time"];

/// What reaches out in a module that has plain types too.
const SOCKETS: &[&str] = &["TcpListener", "TcpStream", "ToSocketAddrs", "UdpSocket"];

const INSTEAD: &str = "let the caller do it and pass bytes or numbers in";

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust().filter(|(file, _)| file.is_shipped() && file.room() == Some(BOUND)) {
        for module in MODULES {
            for line in lines_using(code, &["std", module]) {
                report.add(&file.path, line, format!("uses `std::{module}`"), INSTEAD);
            }
        }
        for (line, socket) in sockets(code) {
            report.add(&file.path, line, format!("uses `{socket}`"), INSTEAD);
        }
    }
}

fn sockets(code: &Code) -> impl Iterator<Item = (usize, &str)> {
    let named = code.tokens.iter().filter(|token| token.kind == Kind::Ident && !token.test);
    let sockets = named.filter(|token| SOCKETS.contains(&token.text.as_str()));
    sockets.map(|token| (token.line, token.text.as_str()))
}
