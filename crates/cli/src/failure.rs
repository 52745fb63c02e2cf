//! Why the program ends other than well.

use shearwater::Error;

/// Why the program ends other than well.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One sentence: what happened, and what to do.
    pub(crate) sentence: String,
    /// The process's exit code.
    pub(crate) code: u8,
}

impl Failure {
    /// It could not start.
    pub(crate) fn start(sentence: String) -> Self {
        Self { sentence, code: 2 }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = if matches!(error, Error::Failed(_)) { 1 } else { 2 };
        Self { sentence: error.to_string(), code }
    }
}
