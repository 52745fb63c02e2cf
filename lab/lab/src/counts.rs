//! A client's counts as it prints them: one line, a mark and then `name=count` pairs.

/// The pairs of such a line.
pub(crate) struct Counts<'a>(&'a str);

impl<'a> Counts<'a> {
    /// Finds the line that begins with `mark` in a client's output.
    pub(crate) fn find(output: &'a str, mark: &str) -> Option<Self> {
        output.lines().find_map(|line| line.strip_prefix(mark)).map(Self)
    }

    /// What is said of a name.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
        Some(pairs.find(|(key, _)| *key == name)?.1)
    }

    /// A whole number.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}
