//! A table of figures, some of which have a bound to hold.

use crate::report::align;

/// What was measured, figure by figure.
pub struct Verdicts {
    rows: Vec<[String; 3]>,
    failed: bool,
    note: &'static str,
}

impl Verdicts {
    /// None yet. `note` stands below the table and says how to read it.
    pub fn new(note: &'static str) -> Self {
        Self { rows: vec![["what", "figure", "bound"].map(str::to_owned)], failed: false, note }
    }

    /// A figure without a bound.
    pub fn shown(&mut self, what: &str, figure: String) {
        self.rows.push([what.to_owned(), figure, String::new()]);
    }

    /// A figure with a bound, and whether it held.
    pub fn judged(&mut self, what: &str, figure: String, bound: &str, held: bool) {
        let verdict = if held { "held" } else { "FAILED" };
        self.rows.push([what.to_owned(), figure, format!("{bound}: {verdict}")]);
        self.failed |= !held;
    }

    /// The table.
    pub fn text(&self) -> String {
        format!("{}\n{}\n", align(&self.rows), self.note)
    }

    /// Whether every bound held.
    pub fn is_met(&self) -> bool {
        !self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::Verdicts;

    #[test]
    fn one_bound_that_does_not_hold_fails_the_table() {
        let mut verdicts = Verdicts::new("figures of nothing");
        verdicts.shown("a", "1".to_owned());
        verdicts.judged("b", "2".to_owned(), "at most 2", true);
        assert!(verdicts.is_met());
        verdicts.judged("c", "3".to_owned(), "at most 2", false);
        verdicts.judged("d", "1".to_owned(), "at most 2", true);
        assert!(!verdicts.is_met());
        let text = verdicts.text();
        assert!(text.contains("at most 2: FAILED") && text.ends_with("\nfigures of nothing\n"), "{text}");
    }
}
