//! The rules, one file each. A rule has a name, a reason, and a function from tree to findings.

mod argued_allow;
mod clock;
mod crate_walls;
mod event_match;
mod file_system;
mod foreign_types;
mod framing;
mod hot_modules;
mod ignored_tests;
mod leftovers;
mod lengths;
mod limits_doc;
mod links;
mod machine_paths;
mod module_doc;
mod os_conditions;
mod readable;
mod request_way;
mod sans_io;
mod sleeping_tests;
mod unsafe_fence;
mod unwinding;
mod unwrap;

use super::finding::{Finding, Report};
use super::tree::Tree;

/// One rule.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// What it demands and why, in one line.
    pub(crate) reason: &'static str,
    check: fn(&Tree, &mut Report<'_>),
}

impl Rule {
    pub(crate) fn run(&self, tree: &Tree, findings: &mut Vec<Finding>) {
        (self.check)(tree, &mut Report::new(self.name, findings));
    }
}

/// All rules: walls first, then habits, then papers.
pub(crate) const ALL: &[Rule] = &[
    readable::RULE,
    crate_walls::RULE,
    foreign_types::RULE,
    unsafe_fence::RULE,
    os_conditions::RULE,
    hot_modules::RULE,
    sans_io::RULE,
    clock::RULE,
    file_system::RULE,
    event_match::RULE,
    framing::RULE,
    unwinding::RULE,
    module_doc::RULE,
    lengths::RULE,
    unwrap::RULE,
    leftovers::RULE,
    ignored_tests::RULE,
    sleeping_tests::RULE,
    argued_allow::RULE,
    limits_doc::RULE,
    request_way::RULE,
    links::RULE,
    machine_paths::RULE,
];
