//! static-web-server, as the sites are configured for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::sites::Site;
use crate::harness::folder::Folder;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// Where the lab installs it, below the checkout.
const OF_THE_LAB: &str = "../target/peers/tools/bin/static-web-server";

/// The program: what was asked for, what the lab has installed, or what the shell finds.
pub(super) fn program(given: Option<&Path>) -> PathBuf {
    let of_the_lab = Path::new(env!("CARGO_MANIFEST_DIR")).join(OF_THE_LAB);
    match given {
        Some(path) => path.to_owned(),
        None if of_the_lab.exists() => of_the_lab,
        None => PathBuf::from("static-web-server"),
    }
}

/// Its version; `None` where there is none.
pub(super) fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
        .map(str::to_owned)
}

/// Starts it with a site; what it writes goes to `folder`.
pub(super) fn start(program: &Path, site: Site, root: &Path, folder: &Folder) -> Outcome<Server> {
    let configuration = folder.path().join(format!("static-web-server-{}.toml", site.name()));
    std::fs::write(&configuration, text(site, root)).during("writing static-web-server's configuration")?;
    let mut command = Command::new(program);
    command.arg("--config-file").arg(&configuration);
    Server::start(command, folder, |command, address| {
        command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
    })
}

fn text(site: Site, root: &Path) -> String {
    let root = root.display();
    let general = format!(
        "[general]\nroot = \"{root}\"\nlog-level = \"error\"\nthreads-multiplier = 1\ncompression = false\ncompression-static = true\n\
         cache-control-headers = false\nsecurity-headers = false\nignore-hidden-files = true\nredirect-trailing-slash = true\n"
    );
    general + &of_site(site, &root.to_string())
}

/// What is special to a site.
fn of_site(site: Site, root: &str) -> String {
    match site {
        Site::Plain => format!("page404 = \"{root}/404.html\"\n{ADVANCED}"),
        Site::Spa => format!("page-fallback = \"{root}/index.html\"\n"),
        Site::Clean => String::new(),
        Site::List => "directory-listing = true\nindex-files = \"none\"\n".to_owned(),
    }
}

const ADVANCED: &str = r#"[advanced]
[[advanced.headers]]
source = "**"
headers = { X-Content-Type-Options = "nosniff" }
[[advanced.headers]]
source = "/assets/**"
headers = { Cache-Control = "max-age=31536000" }
[[advanced.headers]]
source = "{/,**/*.html,**/}"
headers = { Cache-Control = "no-cache" }
[[advanced.headers]]
source = "**/*.xyz"
headers = { Content-Type = "text/x-note; charset=utf-8" }
[[advanced.redirects]]
source = "/old"
destination = "/about.html"
kind = 301
"#;
