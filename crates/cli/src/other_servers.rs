//! Configuration files of other servers, recognised by their name or text.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// Bytes of a file that are read to recognise it.
const START_BYTES: u64 = 64 * 1024;

/// Extensions of configuration files that may be TOML.
const EXTENSIONS: [&str; 5] = ["conf", "cfg", "ini", "yaml", "yml"];

/// Directives of a Caddyfile, for one without braces.
const CADDY: [&str; 8] =
    ["root", "file_server", "reverse_proxy", "encode", "respond", "redir", "php_fastcgi", "try_files"];

/// Returns an error for the text of another server's configuration.
pub(crate) fn of_text(path: &Path, text: &str) -> Option<Failure> {
    let (server, page) = match server_of(path, text)? {
        Server::Nginx => ("nginx", "docs/tasks/from-nginx.md"),
        Server::Caddy => ("Caddy", "docs/tasks/from-caddy.md"),
    };
    Some(Failure::usage_helped(
        format!("{} is a configuration of {server}, and this program reads TOML", path.display()),
        format!(
            "{page} has our key for each directive; `shearwater config default > site.toml` writes every key"
        ),
    ))
}

/// Returns an error for a file that is given as a folder and looks like a configuration.
pub(crate) fn of_file(path: &Path) -> Option<Failure> {
    let mut start = Vec::new();
    // A file that can't be read isn't recognised.
    drop(File::open(path).and_then(|file| file.take(START_BYTES).read_to_end(&mut start)));
    if let Some(failure) = of_text(path, &String::from_utf8_lossy(&start)) {
        return Some(failure);
    }
    let extension = path.extension().and_then(OsStr::to_str).filter(|given| EXTENSIONS.contains(given));
    extension.map(|_| {
        let shown = path.display();
        Failure::usage_helped(
            format!("{shown} is a file, not a folder"),
            format!("if it is a configuration in TOML: `shearwater --config {shown}`"),
        )
    })
}

/// Another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Nginx,
    Caddy,
}

/// Returns the server that a configuration is for; `None` if it may be TOML.
fn server_of(path: &Path, text: &str) -> Option<Server> {
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next()?;
    let rest: Vec<&str> = lines.collect();
    let is_json = first.starts_with('{') && rest.first().is_some_and(|second| second.starts_with('"'));
    if first.starts_with('[') || is_assignment(first) || is_json {
        return None;
    }
    match path.file_name()?.to_str()? {
        "nginx.conf" => return Some(Server::Nginx),
        name if name.to_lowercase().contains("caddyfile") => return Some(Server::Caddy),
        _ => {}
    }
    let ends_with = |end: char| rest.iter().chain([&first]).any(|line| line.ends_with(end));
    let is_directive = |line: &&str| line.split_whitespace().next().is_some_and(|word| CADDY.contains(&word));
    if first.ends_with(['{', ';']) && ends_with(';') {
        return Some(Server::Nginx);
    }
    let has_site = first.ends_with('{') || !first.contains(' ');
    (has_site && rest.iter().any(is_directive)).then_some(Server::Caddy)
}

/// Returns true for a line such as `key = value`.
fn is_assignment(line: &str) -> bool {
    let (key, _) = line.split_once('=').unwrap_or((" ", ""));
    !key.trim().contains(char::is_whitespace) && !key.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Server, server_of};

    #[test]
    fn recognises_configurations_of_other_servers() {
        let nginx = Some(Server::Nginx);
        let caddy = Some(Server::Caddy);
        for (name, text, expected) in [
            ("default", "# x\nserver {\n    listen 80; # all\n    root /srv;\n}\n", nginx),
            ("a.conf", "user www-data;\nevents {\n}\n", nginx),
            ("a.conf", "proxy_cache_path /a levels=1:2 keys_zone=a:1m;\n", nginx),
            ("nginx.conf", "events {\n}\n", nginx),
            ("Caddyfile", "example.org\n", caddy),
            ("a", "example.org {\n\troot * /srv\n\tfile_server\n}\n", caddy),
            ("a", "{\n\temail a@b.c\n}\nexample.org {\n\tfile_server\n}\n", caddy),
            ("a", ":8080\nroot * /srv\nfile_server\n", caddy),
            ("a.toml", "[server]\nworkers = 1\n", None),
            ("nginx.conf", "server = { workers = 1 }\n", None),
            ("a.toml", "# only; a comment {\n", None),
            ("a.toml", "wokers\n", None),
            ("serve.json", "{\n  \"public\": \"root\"\n}\n", None),
            ("a.txt", "Some text.\nMore of it.\n", None),
        ] {
            assert_eq!(server_of(Path::new(name), text), expected, "{text}");
        }
    }
}
