//! The table of all cases.

use anyhow::Result;

use crate::context::CaseContext;
use crate::report::CaseReport;
use crate::{compare, drain, files, handlers, hostile, memory, replaced, soak, stress, traversal};

/// Runs a case. An error means that it could not run.
pub(crate) type Run = dyn Fn(&CaseContext<'_>, &mut CaseReport) -> Result<()>;

/// A test of the built server.
pub(crate) struct TestCase {
    /// Group that the case is run with.
    pub(crate) group: &'static str,
    /// Name inside the group.
    pub(crate) name: String,
    /// Line in `--list`.
    pub(crate) about: String,
    pub(crate) run: Box<Run>,
}

/// A group and its line in `--list`.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Runs when no group is named.
    pub(crate) quick: bool,
}

const fn group(name: &'static str, quick: bool, about: &'static str) -> Group {
    Group { name, about, quick }
}

/// All groups, in the order in which they run.
pub(crate) const GROUPS: &[Group] = &[
    group("protocol", true, "responses that clients can read, whatever they send"),
    group("drain", true, "SIGTERM costs no request that was sent before it"),
    group("handlers", true, "panics, errors and stack overflows in every kind of handler"),
    group("files", true, "every byte of a served folder, and nothing outside of it"),
    group("memory", true, "idle connections, waiting requests and panics cost little"),
    group("compare", true, "our responses are those of docs/compare.md"),
    group("peers", false, "the same requests to nginx and static-web-server; --write writes docs/compare.md"),
    group("replaced", true, "files that change while they are served"),
    group("hostile", false, "attackers in waves beside normal clients"),
    group("stress", false, "four phases of load by wrk against the smallest program"),
    group("soak", false, "connections of every kind, and nothing of them is left"),
];

type Function = fn(&CaseContext<'_>, &mut CaseReport) -> Result<()>;

/// Cases that are one function each.
const FUNCTIONS: &[(&str, &str, &str, Function)] = &[
    (
        "protocol",
        "early-errors",
        "refused clients that send on read the whole response",
        hostile::early_errors,
    ),
    ("drain", "under-load", "requests in flight, queued and slow are answered", drain::under_load),
    ("files", "many-files", "files of random sizes and odd names", files::many_files),
    ("files", "large-file", "a sparse file beyond 2 GiB, whole", files::large_file),
    ("files", "traversal", "hostile targets and links", traversal::traversal),
    ("soak", "soak", "10 million responses with --full, or for a time with --for", soak::soak),
    ("compare", "ours", "requests of every kind for sites of every kind", compare::ours),
    ("peers", "peers", "every difference has a cause, and is in docs/compare.md", compare::peers),
    ("stress", "stress", "10,000 connections, large headers, heavy payloads", stress::stress),
    ("memory", "idle-connections", "thousands of idle keep-alive connections", memory::idle_connections),
    ("memory", "panics", "thousands of panicking handlers beside good requests", memory::panics),
    ("memory", "waiting-requests", "thousands of requests whose handlers wait", memory::waiting_requests),
];

/// Returns every case, in the order in which they run.
pub(crate) fn all() -> Vec<TestCase> {
    let functions = FUNCTIONS.iter().map(|&(group, name, about, run)| TestCase {
        group,
        name: name.to_owned(),
        about: about.to_owned(),
        run: Box::new(run),
    });
    let mut cases: Vec<TestCase> =
        functions.chain(handlers::cases()).chain(replaced::cases()).chain(hostile::cases()).collect();
    cases.sort_by_key(|case| GROUPS.iter().position(|group| group.name == case.group));
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{GROUPS, all};

    #[test]
    fn every_case_has_a_group_and_a_name_of_its_own() {
        let cases = all();
        let names: BTreeSet<_> = cases.iter().map(|case| (case.group, &case.name)).collect();
        assert_eq!(names.len(), cases.len());
        let groups: BTreeSet<_> = cases.iter().map(|case| case.group).collect();
        assert_eq!(groups, GROUPS.iter().map(|group| group.name).collect());
    }
}
