//! This server, as the sites are configured for it.

use std::path::Path;
use std::process::Command;

use super::sites::Site;
use crate::harness::folder::Folder;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// Starts it with a site; what it writes goes to `folder`.
pub(super) fn start(program: &Path, driver: &str, site: Site, folder: &Folder) -> Outcome<Server> {
    let configuration = folder.path().join(format!("{}.toml", site.name()));
    std::fs::write(&configuration, text(site)).during("writing this server's configuration")?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&configuration).args(["--workers", "1", "--driver", driver]);
    Server::start(command, folder, |command, address| {
        command.args(["--listen", &address.to_string()]);
    })
}

/// The configuration, in the folder that the root lies in.
fn text(site: Site) -> &'static str {
    match site {
        Site::Plain => {
            r#"[[site]]
root = "root"
error_pages = { 404 = "/404.html" }
mime = { xyz = "text/x-note" }
headers = { set = { X-Content-Type-Options = "nosniff" } }
cache_control = [
    { path = "/assets/*", value = "max-age=31536000" },
    { type = "text/html", value = "no-cache" },
]
[[site.redirect]]
from = "/old"
to = "/about.html"
status = 301
"#
        }
        Site::Spa => "[[site]]\nroot = \"root\"\nspa = \"/index.html\"\n",
        Site::Clean => "[[site]]\nroot = \"root\"\nclean_urls = true\n",
        Site::List => "[[site]]\nroot = \"root\"\nindex = []\nlisting = true\n",
    }
}
