//! What workers have to say, and what they have done, goes to standard error, a line each.

use std::fmt::Display;
use std::io::Write;

use shearwater_engine::{Notice, Totals};

/// Prints a notice; the planned end of a thread is none.
pub(crate) fn print(notice: &Notice) {
    match notice {
        Notice::WorkerEnded { error: None, .. } | Notice::AcceptorEnded { error: None } => {}
        _ => line(notice),
    }
}

/// Prints what a server that goes on has done so far.
pub(crate) fn so_far(totals: &Totals) {
    line(&format_args!("so far {totals}"));
}

/// Prints what a server has done that has ended.
pub(crate) fn in_all(totals: &Totals) {
    line(&format_args!("in all {totals}"));
}

fn line(text: &dyn Display) {
    // A closed standard error is no reason to stop serving.
    drop(writeln!(std::io::stderr(), "shearwater: {text}"));
}
