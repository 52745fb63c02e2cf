//! `shearwater certificates`: lists what a running server gets by itself, or has one of them ordered.

use std::time::Duration;

use shearwater_acme::{State, Status};

use crate::args::Certificates;
use crate::control::{Outcome, Reply, Request};
use crate::failure::Failure;
use crate::report;
use crate::running_server::RunningServer;
use crate::tls::{RunningTls, date};

/// Argument of the command that orders a certificate.
const RENEW: &str = "--renew";

/// Lists certificates of a server, or orders one.
pub(crate) fn list(arguments: &Certificates) -> Result<(), Failure> {
    let Certificates { running, renew } = arguments;
    let server = RunningServer::find(running)?;
    let words = renew.iter().flat_map(|name| [RENEW.to_owned(), name.clone()]).collect();
    let Some(reply) = server.ask("certificates", words, running.timeout) else {
        let help = "start it with `--pid-file`: the socket is beside that file";
        return Err(Failure::system("the server has no control socket", Some(help.to_owned())));
    };
    match reply.outcome {
        Outcome::Done => report::print(&reply.text),
        _ => Err(server.failure(reply, "certificates", running.timeout)),
    }
}

/// Responds to the command. An order is waited for.
pub(crate) fn reply(tls: Option<&RunningTls>, request: &Request) -> Reply {
    let Some(tls) = tls else { return Reply::new(Outcome::Done, "this server has no TLS\n") };
    match &request.arguments[..] {
        [] => Reply::new(Outcome::Done, table(&tls.status())),
        [flag, name] if flag == RENEW => renew(tls, name, request.timeout),
        _ => Reply::new(Outcome::Refused, "expected no arguments, or `--renew NAME`"),
    }
}

fn renew(tls: &RunningTls, name: &str, timeout: Duration) -> Reply {
    let refused = |why: String| Reply::new(Outcome::Refused, why);
    let number = match tls.renew(name) {
        Ok(number) => number,
        Err(why) => return refused(why),
    };
    let ended = tls.wait_for(name, timeout, |status| match status {
        None => Some(refused("a reload has removed the certificate".to_owned())),
        Some(status) if status.renewals < number => None,
        Some(Status { failure: Some(failure), .. }) => {
            Some(refused(format!("{failure}; help: {}", failure.help)))
        }
        Some(status) => Some(Reply::new(Outcome::Done, table(std::slice::from_ref(status)))),
    });
    ended.unwrap_or_else(|| Reply::new(Outcome::Unfinished, "the order is still in progress"))
}

/// Formats a line for each certificate.
fn table(certificates: &[Status]) -> String {
    if certificates.is_empty() {
        return "no site has `tls = \"auto\"`\n".to_owned();
    }
    let line = |status: &Status| {
        let state = match (status.state, status.not_after) {
            (State::Valid, Some(end)) => format!("valid until {}", date(end)),
            (State::Expired, Some(end)) => format!("expired on {}", date(end)),
            (State::Ordering, _) => "being ordered".to_owned(),
            _ => "none yet".to_owned(),
        };
        let next = format!("next order on {}", date(status.next_attempt));
        let failure = status.failure.as_ref().map(|failure| format!("; last: {failure}")).unwrap_or_default();
        format!("{}: {state}; {next}{failure}\n", status.names.join(", "))
    };
    certificates.iter().map(line).collect()
}
