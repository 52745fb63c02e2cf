//! Warnings about what can be served, but is hardly meant: printed at the start, and by `shearwater check`.

use std::fmt;

use shearwater_config::Errors;

/// All warnings.
#[derive(Debug)]
pub(crate) struct Warnings {
    /// Warnings about keys of the configuration file.
    pub(crate) of_file: Errors,
    /// Others, each a sentence.
    pub(crate) others: Vec<String>,
}

/// As it is printed; nothing where there are none.
impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_file = &self.of_file;
        match of_file.problems.len() + of_file.left_out {
            0 => {}
            1 => writeln!(f, "{of_file}\nshearwater: this is a warning: it can be served")?,
            count => writeln!(f, "{of_file}\nshearwater: these are {count} warnings: it can be served")?,
        }
        self.others.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}
