//! nginx, as the sites are configured for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::sites::Site;
use crate::harness::folder::Folder;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// What it says of itself: version, and the folder of its configuration, which has the media types that it comes with. `None` where there is none.
pub(super) fn about(program: &Path) -> Option<(String, PathBuf)> {
    let output = Command::new(program).arg("-V").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let version = text.lines().next()?.rsplit('/').next()?.to_owned();
    let file = text.split_whitespace().find_map(|word| word.strip_prefix("--conf-path="))?;
    Some((version, Path::new(file).parent()?.to_owned()))
}

/// Starts it with a site, as one process; what it writes goes to `folder`.
pub(super) fn start(
    program: &Path,
    types: &Path,
    site: Site,
    root: &Path,
    folder: &Folder,
) -> Outcome<Server> {
    let place = folder.make(&format!("nginx-{}", site.name()))?;
    let configuration = place.join("nginx.conf");
    let mut command = Command::new(program);
    command.arg("-p").arg(&place).arg("-c").arg(&configuration).args(["-e", "stderr"]);
    let mut written = Ok(());
    let started = Server::start(command, folder, |_, address| {
        written = std::fs::write(&configuration, text(site, types, root, &address.to_string()));
    });
    written.during("writing nginx's configuration")?;
    started
}

fn text(site: Site, types: &Path, root: &Path, address: &str) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {kind};\n"))
        .concat();
    let (types, root) = (types.join("mime.types"), root.display());
    format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\n{temporary}    access_log off;\n    \
         include \"{}\";\n    default_type application/octet-stream;\n    charset utf-8;\n    charset_types text/css text/plain text/x-note application/javascript;\n    \
         gzip_static on;\n    gzip_vary on;\n    disable_symlinks if_not_owner from=$document_root;\n    absolute_redirect off;\n    \
         server {{\n        listen {address};\n        root \"{root}\";\n        \
         location ~ /\\.(?!well-known/) {{ return 404; }}\n{}    }}\n}}\n",
        types.display(),
        of_site(site)
    )
}

/// What is special to a site.
fn of_site(site: Site) -> &'static str {
    match site {
        Site::Plain => {
            r#"        error_page 404 /404.html;
        add_header X-Content-Type-Options nosniff always;
        location = /old { return 301 /about.html; }
        location ^~ /assets/ {
            add_header X-Content-Type-Options nosniff always;
            add_header Cache-Control max-age=31536000;
        }
        location ~* \.html$ {
            add_header X-Content-Type-Options nosniff always;
            add_header Cache-Control no-cache;
        }
        location ~ \.xyz$ {
            add_header X-Content-Type-Options nosniff always;
            types { text/x-note xyz; }
        }
"#
        }
        Site::Spa => "        location / { try_files $uri $uri/ /index.html; }\n",
        Site::Clean => {
            "        location / { if ($request_uri ~ ^/([^?]*)index\\.html(\\?|$)) { return 308 /$1$is_args$args; }\n            \
             if ($request_uri ~ ^/([^?]*)\\.html(\\?|$)) { return 308 /$1$is_args$args; }\n            \
             try_files $uri $uri.html $uri/ =404; }\n"
        }
        Site::List => "        index none;\n        autoindex on;\n",
    }
}
