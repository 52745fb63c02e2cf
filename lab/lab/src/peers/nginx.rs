//! nginx as its own documentation tunes it: no log, no limit of requests per connection, descriptors and metadata kept.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{BACKLOG, CONNECTIONS, DESCRIPTORS, IDLE_S};
use crate::process::Launch;
use crate::scenario::{JSON, PLAINTEXT, Scenario, Source};
use crate::server::Place;

pub(crate) fn launch(program: PathBuf, scenario: &Scenario, place: &Place<'_>) -> Result<Launch, String> {
    let text = configuration(scenario, &place.site.public(), place.address, place.workers);
    let file = place.site.write("nginx.conf", &text)?;
    let folder = place.site.folder().display().to_string();
    let arguments = ["-p", &folder, "-e", "stderr", "-c", &file.display().to_string()].map(str::to_owned);
    Ok(Launch { program, arguments: arguments.to_vec(), environment: Vec::new() })
}

/// Its configuration: files of the folder, or `return` with the text.
pub fn configuration(scenario: &Scenario, public: &Path, address: SocketAddr, workers: u32) -> String {
    let location = match scenario.source {
        Source::Plaintext => format!("default_type text/plain; return 200 '{PLAINTEXT}';"),
        Source::Json => format!("default_type application/json; return 200 '{JSON}';"),
        Source::File => format!("root {};", public.display()),
    };
    format!(
        "daemon off;\nworker_processes {workers};\npid nginx.pid;\nerror_log stderr error;\n\
         worker_rlimit_nofile {DESCRIPTORS};\n\
         events {{ worker_connections {CONNECTIONS}; multi_accept on; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  tcp_nodelay on;\n  \
         keepalive_requests 1000000000;\n  keepalive_timeout {IDLE_S}s;\n  \
         open_file_cache max=1000 inactive=300s;\n  open_file_cache_valid 60s;\n  \
         default_type application/octet-stream;\n  client_body_temp_path body;\n  proxy_temp_path proxy;\n  \
         fastcgi_temp_path fastcgi;\n  uwsgi_temp_path uwsgi;\n  scgi_temp_path scgi;\n  \
         server {{\n    listen {address} backlog={BACKLOG};\n    location / {{ {location} }}\n  }}\n}}\n"
    )
}
