//! lighttpd: one process, epoll, sendfile, no access log (its module is not loaded).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{BACKLOG, CONNECTIONS, DESCRIPTORS, IDLE_S};
use crate::process::Launch;
use crate::server::Place;

/// Requests after which it closes: as many as it can be told.
const REQUESTS_MAX: u32 = 65_535;

pub(crate) fn launch(program: PathBuf, place: &Place<'_>) -> Result<Launch, String> {
    let text = configuration(&place.site.public(), place.address);
    let file = place.site.write("lighttpd.conf", &text)?;
    let arguments = vec!["-D".to_owned(), "-f".to_owned(), file.display().to_string()];
    Ok(Launch { program, arguments, environment: Vec::new() })
}

/// Its configuration. Files' metadata is kept for a second or two by its own default.
pub fn configuration(public: &Path, address: SocketAddr) -> String {
    format!(
        "server.bind = \"{}\"\nserver.port = {}\nserver.document-root = \"{}\"\nserver.modules = ()\n\
         server.event-handler = \"linux-sysepoll\"\nserver.network-backend = \"sendfile\"\n\
         server.max-fds = {DESCRIPTORS}\nserver.max-connections = {CONNECTIONS}\n\
         server.listen-backlog = {BACKLOG}\nserver.max-keep-alive-requests = {REQUESTS_MAX}\n\
         server.max-keep-alive-idle = {IDLE_S}\nserver.stat-cache-engine = \"simple\"\n\
         mimetype.assign = ( \"\" => \"application/octet-stream\" )\n",
        address.ip(),
        address.port(),
        public.display()
    )
}
