//! Why the program ends other than well.

use std::fmt;
use std::io;

use shearwater::Error;
use shearwater_config::Errors;

/// Why the program ends other than well.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What happened, and what to do.
    what: What,
    /// The process's exit code.
    pub(crate) code: u8,
}

#[derive(Debug)]
enum What {
    /// One sentence.
    Sentence(String),
    /// One sentence, as an error.
    Error(String),
    /// An error and the way out.
    Helped { error: String, help: String },
    /// A paragraph for each problem of a configuration.
    Problems(Errors),
    /// It has been said already.
    Said,
}

impl Failure {
    /// It could not start.
    pub(crate) fn start(sentence: String) -> Self {
        Self { what: What::Sentence(sentence), code: 2 }
    }

    /// It could not start; `help` is a way that it could.
    pub(crate) fn helped(error: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: What::Helped { error: error.into(), help: help.into() }, code: 2 }
    }

    /// Standard output can't be written.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self { what: What::Error(format!("can't write to standard output: {error}")), code: 1 }
    }

    /// Something did not work out, which has been said already.
    pub(crate) fn said(code: u8) -> Self {
        Self { what: What::Said, code }
    }

    /// The problems of a configuration, where it is that.
    pub(crate) fn problems(&self) -> Option<&Errors> {
        match &self.what {
            What::Problems(errors) => Some(errors),
            _ => None,
        }
    }
}

/// As it is printed: with its end of line, unless there is nothing to say.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Sentence(sentence) => writeln!(f, "shearwater: {sentence}"),
            What::Error(error) => writeln!(f, "error: {error}"),
            What::Helped { error, help } => writeln!(f, "error: {error}\nhelp: {help}"),
            What::Problems(errors) => {
                let count = errors.problems.len() + errors.left_out;
                let problems = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
                writeln!(
                    f,
                    "{errors}\nshearwater: {} has {problems}; nothing was started",
                    errors.file.display()
                )
            }
            What::Said => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = if matches!(error, Error::Failed(_)) { 1 } else { 2 };
        Self { what: What::Sentence(error.to_string()), code }
    }
}

impl From<Errors> for Failure {
    fn from(errors: Errors) -> Self {
        Self { what: What::Problems(errors), code: 2 }
    }
}
