//! nginx on the folder, with nothing switched on but what is compared.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::folder::Folder;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// How to get it.
const GET_NGINX: &str = "nginx is not installed. Debian, Ubuntu: apt-get install nginx; Fedora: dnf install nginx; Arch: pacman -S nginx; \
                         macOS: brew install nginx";

/// What it says of itself.
pub(super) fn version(program: &Path) -> Outcome<String> {
    let Ok(output) = Command::new(program).arg("-v").output() else { return Err(GET_NGINX.into()) };
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(text.rsplit('/').next().unwrap_or_default().to_owned())
}

/// Starts it on the folder `root`, as one process; what it writes goes to `folder`.
pub(super) fn start(program: &Path, root: &Path, folder: &Folder) -> Outcome<Server> {
    let place = folder.make("nginx")?;
    let configuration = place.join("nginx.conf");
    let mut command = Command::new(program);
    command.arg("-p").arg(&place).arg("-c").arg(&configuration).args(["-e", "stderr"]);
    let mut written = Ok(());
    let started = Server::start(command, folder, |_, address| {
        written = fs::write(&configuration, text(root, &address.to_string()));
    });
    written.during("writing nginx's configuration")?;
    started
}

fn text(root: &Path, address: &str) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\n{temporary}    access_log off;\n    sendfile on;\n    \
         types {{ application/gzip gz; }}\n    default_type application/octet-stream;\n    gzip_static on;\n    gzip_vary on;\n    server {{\n        listen {address};\n        \
         root \"{}\";\n    }}\n}}\n",
        root.display()
    )
}
