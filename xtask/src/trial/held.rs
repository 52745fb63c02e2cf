//! A client process that holds connections, as its parent sees it.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::harness::trouble::{During, Outcome};

/// What is asked for on each connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) target: &'a str,
    /// How many body bytes the answer has.
    pub(super) length: usize,
}

/// A client process that holds connections.
#[derive(Debug)]
pub(super) struct Holder {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Holder {
    /// Starts one; it connects from `source`, if any is given, and asks for what is `wanted`.
    pub(super) fn start(
        address: SocketAddr,
        count: usize,
        source: Option<String>,
        wanted: Wanted<'_>,
    ) -> Outcome<Self> {
        let program = std::env::current_exe().during("looking for this program")?;
        let mut command = Command::new(program);
        command.args(["trial", "hold", "--address", &address.to_string(), "--count", &count.to_string()]);
        command.args(["--target", wanted.target, "--length", &wanted.length.to_string()]);
        if let Some(source) = source {
            command.args(["--source", &source]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().during("starting the client process")?;
        let orders = child.stdin.take().ok_or("the client process has no input")?;
        let answers = child.stdout.take().ok_or("the client process has no output")?;
        Ok(Self { child, orders, answers: BufReader::new(answers) })
    }

    /// Has it do something, and gives on how many connections that went well.
    pub(super) fn order(&mut self, what: &str) -> Outcome<u64> {
        writeln!(self.orders, "{what}").during("writing to the client process")?;
        let mut line = String::new();
        self.answers.read_line(&mut line).during("reading from the client process")?;
        let good = line.strip_prefix("done ").and_then(|rest| rest.split(' ').next());
        let good = good.and_then(|good| good.parse().ok());
        good.ok_or_else(|| format!("the client process said {line:?}").into())
    }

    /// Lets go of all its connections.
    pub(super) fn end(self) {
        let Self { mut child, orders, answers } = self;
        drop((orders, answers));
        // It ends at the end of its input; its exit code says nothing more.
        let _ = child.wait();
    }
}
