//! static-web-server: installed from its crate into a folder of the lab's own, or found where the shell finds it.

use std::path::PathBuf;

use crate::machine;
use crate::process::Launch;
use crate::server::Place;

/// The version that is installed: a measurement names what it compares.
pub const VERSION: &str = "2.44.1";
const NAME: &str = "static-web-server";

/// Where `cargo install` puts it.
pub fn tools() -> PathBuf {
    super::target().join("tools")
}

/// Ours if it is installed, else the one of the system.
pub fn program() -> PathBuf {
    let own = tools().join("bin").join(NAME);
    if machine::lookup(&own).is_some() { own } else { NAME.into() }
}

/// One worker, for it may run on one core only; what it would add to answers or do to bodies is off.
pub(crate) fn launch(program: PathBuf, place: &Place<'_>) -> Launch {
    let arguments = vec![
        format!("--host={}", place.address.ip()),
        format!("--port={}", place.address.port()),
        format!("--root={}", place.site.public().display()),
        "--threads-multiplier=1".to_owned(),
        "--log-level=error".to_owned(),
        "--compression=false".to_owned(),
        "--cache-control-headers=false".to_owned(),
        "--security-headers=false".to_owned(),
        "--directory-listing=false".to_owned(),
    ];
    Launch { program, arguments, environment: Vec::new() }
}
