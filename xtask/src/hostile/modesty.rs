//! Who goes before whom on the clients' core: what the normal clients feel has to be the server's doing, not that of attackers
//! who are at work beside them.

use std::process::{Command, Stdio};

/// The lowest priority among threads that take turns.
const NICENESS: i32 = 19;

/// Lets every other thread of this core go before the one that calls it.
pub(super) fn stand_back() {
    // Taking turns is not enough: a thread of low priority keeps the core until its slice is over, a millisecond or more. One of the
    // class `idle` leaves it at once. Where the program that sets the class is missing, latencies are worse, and show it as lateness.
    if !set_class("--idle", "0") {
        // Without it the attackers get their turns all the same.
        let _ = rustix::process::nice(NICENESS);
    }
}

/// Lets the thread that calls it go before every other one of this core, where that is allowed (to root); true if so.
pub(super) fn go_first() -> bool {
    set_class("--fifo", "1")
}

/// Sets the scheduling class of this thread by the system's own program; this one has no unsafe code to call the kernel.
fn set_class(class: &str, priority: &str) -> bool {
    // `PID/task/TID`. Elsewhere than on Linux there is none, nor that program.
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return false };
    let mut command = Command::new("chrt");
    command.args([class, "--pid", priority]).args(thread.file_name());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
