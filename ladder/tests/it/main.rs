//! One set of checks for all rungs, on the wire, and the command line's messages.

mod bounds;
mod conformance;
mod corpus;

use std::net::SocketAddr;
use std::process::{Command, Output};

use testkit::{Program, TestFolder, free_address};

/// Number of rungs that are programs of their own: rung 11 is another build of the last.
const RUNGS: usize = 10;
/// Rungs from here on serve many requests on a connection.
const KEEP_ALIVE: usize = 4;

/// Starts each rung from `first` on and runs a check against it.
fn on_rungs(first: usize, check: impl Fn(usize, SocketAddr)) {
    let folder = TestFolder::new();
    for rung in first..=RUNGS {
        let mut program = start(rung, &folder);
        println!("rung {rung}");
        check(rung, program.address());
        assert!(program.is_alive(), "rung {rung} has ended: {}", program.log());
    }
}

fn start(rung: usize, folder: &TestFolder) -> Program {
    let address = free_address().expect("a free port");
    let mut command = ladder();
    command.args(["run", &rung.to_string(), "--listen", &address.to_string()]);
    let log = folder.path().join(format!("{rung}.log"));
    Program::start(command, address, &log).expect("the rung starts")
}

fn ladder() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ladder"))
}

fn output(arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } = ladder().args(arguments).output().expect("the program runs");
    (status.success(), String::from_utf8([stdout, stderr].concat()).expect("UTF-8"))
}

#[test]
fn lists_the_rungs_in_order() {
    let (success, text) = output(&["list"]);
    let numbers: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let expected: Vec<_> = (1..=RUNGS + 1).map(|number| number.to_string()).collect();
    assert!(success);
    assert_eq!(numbers, expected);
}

#[test]
fn wrong_arguments_say_what_is_expected() {
    for (arguments, expected) in [
        (&["run", "12"][..], "expected a number from 1 to 11 or a name"),
        (&["run", "0"], "help: `cargo ladder list` shows them"),
        (&["run", "nave"], "invalid value 'nave' for '<RUNG>'"),
        (&["run", "1", "--listen", "8080"], "help: for instance 127.0.0.1:8080"),
        (&["run", "1", "--listen", "127.0.0.1:0"], "expected a port from 1 to 65535"),
    ] {
        let (success, text) = output(arguments);
        assert!(!success && text.starts_with("error: ") && text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn a_used_port_is_reported_with_help() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    for rung in 1..=RUNGS {
        let (success, text) = output(&["run", &rung.to_string(), "--listen", &address]);
        assert!(!success && text.contains("error: rung ") && text.contains("help: "), "{text}");
    }
}
