//! h2o: one thread, files of one folder; it keeps open files by itself and logs no access unless told to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{CONNECTIONS, IDLE_S};
use crate::process::Launch;
use crate::server::Place;

pub(crate) fn launch(program: PathBuf, place: &Place<'_>) -> Result<Launch, String> {
    let file =
        place.site.write("h2o.yaml", &configuration(&place.site.public(), place.address, place.workers))?;
    let arguments = ["-m", "worker", "-c", &file.display().to_string()].map(str::to_owned);
    Ok(Launch { program, arguments: arguments.to_vec(), environment: Vec::new() })
}

/// Its configuration. The length of its accept queue is its own, 65,536, which the kernel cuts.
pub fn configuration(public: &Path, address: SocketAddr, workers: u32) -> String {
    format!(
        "listen:\n  host: {}\n  port: {}\nnum-threads: {workers}\nmax-connections: {CONNECTIONS}\n\
         http1-request-timeout: {IDLE_S}\nhosts:\n  default:\n    paths:\n      \"/\":\n        \
         file.dir: \"{}\"\n        file.send-compressed: OFF\n",
        address.ip(),
        address.port(),
        public.display()
    )
}
