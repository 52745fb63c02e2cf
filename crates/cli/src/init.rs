//! `shearwater init`: writes a short configuration for a folder.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::failure::Failure;
use crate::report::print;

/// The file that is written.
const FILE: &str = "site.toml";

/// Folders that build tools write sites to; the first that exists is served.
const FOLDERS: [&str; 8] = ["public", "dist", "build", "_site", "out", "www", "htdocs", "site"];

/// Writes `site.toml` for a folder; without one, for the first of [`FOLDERS`], or for the working directory.
pub(crate) fn init(folder: Option<&Path>) -> Result<(), Failure> {
    let found = FOLDERS.iter().map(Path::new).find(|folder| folder.is_dir());
    let root = folder.or(found).unwrap_or(Path::new("."));
    if !root.is_dir() {
        let error = format!("no such folder: {}", root.display());
        return Err(Failure::usage_helped(error, "create it, or name another one"));
    }
    let Some(name) = root.to_str() else {
        return Err(Failure::usage(format!("the name of {} is not UTF-8", root.display())));
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(FILE).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            let help = format!("`shearwater check {FILE}` checks it; rename it to get a new one");
            return Failure::usage_helped(format!("{FILE} exists already"), help);
        }
        Failure::system(format!("can't write {FILE}: {error}"), None)
    })?;
    file.write_all(configuration(root, name).as_bytes())
        .map_err(|error| Failure::system(format!("can't write {FILE}: {error}"), None))?;
    print(&format!("Wrote {FILE} for `{name}`. `shearwater {FILE}` serves it.\n"))
}

/// Returns the configuration of a folder.
fn configuration(root: &Path, name: &str) -> String {
    // Keys that do nothing for the folder are commented out.
    let mark = |applies: bool| if applies { "" } else { "# " };
    let has = |file: &str| root.join(file).is_file();
    let (listing, error_page) = (mark(!has("index.html")), mark(has("404.html")));
    // TOML has the escapes of JSON; `${` would begin a variable.
    let name = serde_json::Value::from(name).to_string().replace("${", "$${");
    let mut text = format!(
        "# Configuration of Shearwater. `shearwater check {FILE}` checks it, `shearwater {FILE}` serves it.
# `shearwater config default` prints every key; docs/tasks has examples.

[[listen]]
address = \"127.0.0.1:8080\"    # \"[::]:80\" is port 80 of all addresses

[[site]]
root = {name}
# hosts = [\"example.org\"]     # without it: all names
# tls = \"auto\"                # a certificate by itself; needs `hosts`, and `https_port = 443` in [server]
# spa = \"/index.html\"         # for the paths of a single-page app
# clean_urls = true           # /about for about.html
# compress = true             # text, on the fly
{listing}listing = true              # lists folders without an index.html
{error_page}error_pages = {{ 404 = \"/404.html\" }}
cache_control = [{{ type = \"text/html\", value = \"no-cache\" }}]
"
    );
    if root.canonicalize().ok() == Path::new(".").canonicalize().ok() {
        text.push_str(&format!(
            "\n# This file is in the folder, and not for clients.\n[[site.route]]\npath = \"/{FILE}\"\nrespond = {{ status = 404, body = \"Not Found\\n\" }}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use shearwater_config::{Config, Findings};
    use testkit::TestFolder;

    use super::configuration;

    #[test]
    fn writes_keys_that_fit_the_folder() {
        let folder = TestFolder::new();
        folder.file("index.html", "x").file("sub/404.html", "x");
        for (path, name, listing, error_pages) in
            [(folder.path().to_owned(), "a \"${b}\"", false, 0), (folder.at("sub"), "..", true, 1)]
        {
            let text = configuration(&path, name);
            let (config, _) =
                Config::parse("/srv/site.toml".as_ref(), &text, |_| None, |_| Findings::default())
                    .expect(&text);
            let serving = &config.sites[0].serving;
            assert_eq!((serving.listing, serving.error_pages.len()), (listing, error_pages));
            assert!(serving.root.as_ref().is_some_and(|root| root.ends_with(name)), "{serving:?}");
        }
    }
}
