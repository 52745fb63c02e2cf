//! What workers have to say goes to standard error, a line each.

use std::io::Write;

use shearwater_engine::Notice;

/// Prints a notice; the planned end of a worker is none.
pub(crate) fn print(notice: &Notice) {
    if matches!(notice, Notice::WorkerEnded { error: None, .. }) {
        return;
    }
    // A closed standard error is no reason to stop serving.
    drop(writeln!(std::io::stderr(), "shearwater: {notice}"));
}
