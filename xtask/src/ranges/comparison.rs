//! One request after the other to both servers, and what their answers differ in.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::arguments::Argument;
use super::case::{Case, Known};
use super::outcome::{Aspect, Outcome};
use crate::harness::answer::Fault;
use crate::harness::client::{Answer, Client};
use crate::harness::trouble::{self, During};

/// What the comparison has come to so far.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) requests: u64,
    /// Differences that stand, by their argument.
    pub(super) argued: BTreeMap<Argument, Vec<String>>,
    /// Differences that nobody has argued for.
    pub(super) unlisted: Vec<String>,
    /// Listed differences that did not show.
    pub(super) stale: Vec<String>,
}

impl Comparison {
    /// Sends a request to this server and to nginx.
    pub(super) fn ask(&mut self, case: &Case, own: SocketAddr, nginx: SocketAddr) -> trouble::Outcome<()> {
        let (own, nginx) = (ask(case, own)?, ask(case, nginx)?);
        self.requests += 1;
        let differences = own.differences(&nginx);
        for (aspect, own_value, nginx_value) in &differences {
            let shown = format!("{case}: {aspect:?}: own {own_value}, nginx {nginx_value}");
            match argument(case, own.status(), *aspect) {
                Some(argument) => self.argued.entry(argument).or_default().push(shown),
                None => self.unlisted.push(shown),
            }
        }
        let listed = case.arguments.iter().flat_map(|argument| argument.aspects());
        for aspect in listed.filter(|listed| differences.iter().all(|(aspect, ..)| aspect != *listed)) {
            self.stale.push(format!("{case}: {aspect:?}"));
        }
        Ok(())
    }

    /// Prints every difference: those that stand with their arguments.
    pub(super) fn print(&self) {
        for (argument, differences) in &self.argued {
            println!("{}: {}", argument.what(), argument.why());
            for difference in differences {
                println!("  {difference}");
            }
        }
        for difference in &self.unlisted {
            println!("NOT LISTED: {difference}");
        }
        for difference in &self.stale {
            println!("LISTED, BUT DID NOT SHOW: {difference}");
        }
    }
}

/// The argument for a difference, if there is one.
fn argument(case: &Case, status: u16, aspect: Aspect) -> Option<Argument> {
    let own = case.arguments.iter().copied().find(|argument| argument.aspects().contains(&aspect));
    own.or_else(|| Argument::of_all(status, aspect))
}

/// Asks twice: what the server says of the file fills the request's place holders, and the second answer counts.
fn ask(case: &Case, server: SocketAddr) -> trouble::Outcome<Outcome> {
    let during = format!("asking {server} for {case}");
    let known = Known::of(&exchange(&case.plain(), false, server).during(&during)?.head);
    let answer = exchange(&case.request(&known), case.is_head(), server).during(&during)?;
    Outcome::of(answer, case.is_head()).during(&during)
}

fn exchange(request: &[u8], is_head: bool, server: SocketAddr) -> Result<Answer, Fault> {
    Client::open(server)?.exchange(request, is_head)
}
