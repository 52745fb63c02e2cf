//! Rung 11, guided: the code of rung 10, built again with a recorded profile and another allocator.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The script that builds, trains and builds again.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guided.sh");

/// Builds it, which takes minutes the first time, and becomes it.
pub(crate) fn serve(address: SocketAddr) -> io::Result<Infallible> {
    eprintln!("building with counters, training, building again: several minutes the first time");
    let built = Command::new(SCRIPT).stderr(Stdio::inherit()).output()?;
    if !built.status.success() {
        return Err(io::Error::other("ladder/guided.sh has failed"));
    }
    let folder = String::from_utf8_lossy(&built.stdout).into_owned();
    let program = Path::new(folder.trim()).join("ladder");
    Err(Command::new(program).args(["run", "io-uring", "--listen", &address.to_string()]).exec())
}
