//! What a rule reports: where, which rule, what is wrong, what to do instead.

use std::fmt;

/// One breach of one rule. Ordered by place, for printing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Counted from 1; 1 also where the file as a whole is meant.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    pub(crate) what: String,
    pub(crate) instead: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}; {}", self.path, self.line, self.rule, self.what, self.instead)
    }
}

/// Takes the findings of one rule.
pub(crate) struct Report<'a> {
    rule: &'static str,
    findings: &'a mut Vec<Finding>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(rule: &'static str, findings: &'a mut Vec<Finding>) -> Self {
        Self { rule, findings }
    }

    /// Adds a finding. `what` says what is wrong, `instead` what to do about it; both without a full stop.
    pub(crate) fn add(
        &mut self,
        path: &str,
        line: usize,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        self.findings.push(Finding {
            path: path.to_owned(),
            line,
            rule: self.rule,
            what: what.into(),
            instead: instead.into(),
        });
    }
}
