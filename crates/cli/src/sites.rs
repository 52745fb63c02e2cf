//! `[[site]]`: opens the folders of a configuration and checks its sites.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use shearwater_config::{self as config, Config, Finding, Findings};
use shearwater_files::{Folder, FolderError, FolderOptions};
use shearwater_site::{self as site, Content, Mistake, Options, Sites};

use crate::folder;
use crate::settings;
use crate::site::{Root, Site, cant_open};

/// Opens the sites of a configuration. Returns none if it has none, or errors.
pub(crate) fn open(config: &Config) -> (Option<Site>, Findings) {
    if config.sites.is_empty() {
        return (None, Findings::default());
    }
    let mut folders = Folders::default();
    let sites: Vec<site::Site> =
        config.sites.iter().enumerate().map(|(index, site)| of_site(index, site, &mut folders)).collect();
    let Folders { open, roots, mut findings, .. } = folders;
    match Sites::new(Options { folders: open, cache: settings::cache(&config.cache), sites }) {
        Ok(sites) => {
            findings.warnings.extend(sites.warnings().list.iter().map(finding));
            let site = Site { sites, description: describe(config), roots, warnings: Vec::new() };
            (Some(site), findings)
        }
        Err(mistakes) => {
            // Without its folder a site may lack an error page.
            let has_all_folders = findings.errors.is_empty();
            let mistakes = mistakes.list.iter();
            let mistakes = mistakes.filter(|all| has_all_folders || !all.key.contains(".error_pages."));
            findings.errors.extend(mistakes.map(finding));
            (None, findings)
        }
    }
}

fn finding(mistake: &Mistake) -> Finding {
    let Mistake { key, message, help } = mistake.clone();
    Finding { key, message, help }
}

/// Describes the sites for reports.
fn describe(config: &Config) -> String {
    let first = &config.sites[0];
    let name = match (first.hosts.first(), &first.serving.root) {
        (Some(host), _) => host.clone(),
        (None, Some(root)) => root.display().to_string(),
        (None, None) => "a site without files".to_owned(),
    };
    match config.sites.len() {
        1 => name,
        count => format!("{count} sites: {name} and others"),
    }
}

/// The folders to serve, each opened once for all routes with the same options.
#[derive(Default)]
struct Folders {
    /// Options and indices in `open`, by root.
    known: HashMap<PathBuf, Vec<(FolderOptions, usize)>>,
    open: Vec<Folder>,
    roots: Vec<Root>,
    findings: Findings,
    /// Errors of the site by key and root, which its routes don't repeat.
    of_site: HashSet<(String, PathBuf)>,
}

impl Folders {
    /// Opens the folder of a table, unless it is open with the same options. `of` is the key of the table.
    fn content(&mut self, of: &str, serving: &config::Serving) -> Content {
        let Some(root) = &serving.root else { return Content::Nothing };
        let options = folder::options(serving);
        let known = self.known.get(root).and_then(|served| served.iter().find(|(of, _)| *of == options));
        if let Some(&(_, index)) = known {
            return Content::Files(index);
        }
        match Folder::open_with(root, &options) {
            Ok(folder) => {
                self.findings.warnings.extend(folder.missing().into_iter().map(|option| Finding {
                    key: format!("{of}.{option}"),
                    message: "no such file".to_owned(),
                    help: Some("without it, requests that fall back to it get a 404".to_owned()),
                }));
                let index = self.open.len();
                self.open.push(folder);
                let formats = serving.precompressed.iter().copied().map(folder::coding).collect();
                self.roots.push(Root { path: root.clone(), formats });
                self.known.entry(root.clone()).or_default().push((options, index));
                return Content::Files(index);
            }
            Err(FolderError::Open(error)) => {
                let (message, help) = cant_open(root, &error);
                self.error(of, "root", root, message, help);
            }
            Err(FolderError::Option(_)) => {
                for (key, message) in folder::check(serving) {
                    self.error(of, &key, root, message, None);
                }
            }
        }
        Content::Nothing
    }

    /// Adds an error, unless a route inherits it from its site.
    fn error(&mut self, of: &str, key: &str, root: &Path, message: String, help: Option<String>) {
        let site = of.split('.').next().unwrap_or(of);
        let is_new = self.of_site.insert((format!("{site}.{key}"), root.to_path_buf()));
        if is_new {
            self.findings.errors.push(Finding { key: format!("{of}.{key}"), message, help });
        }
    }
}

fn of_site(index: usize, site: &config::Site, folders: &mut Folders) -> site::Site {
    let of = format!("site[{index}]");
    site::Site {
        hosts: site.hosts.clone(),
        content: folders.content(&of, &site.serving),
        headers: of_headers(&site.headers),
        error_pages: of_pages(&site.serving.error_pages, &BTreeMap::new()),
        redirects: site.redirects.iter().map(of_redirect).collect(),
        routes: site
            .routes
            .iter()
            .enumerate()
            .map(|(route, keys)| of_route(&format!("{of}.route[{route}]"), keys, site, folders))
            .collect(),
    }
}

fn of_route(of: &str, route: &config::Route, site: &config::Site, folders: &mut Folders) -> site::Route {
    let content = match &route.respond {
        Some(respond) => Content::Fixed(site::Fixed {
            status: respond.status,
            media_type: respond.media_type.clone(),
            body: respond.body.clone().into_bytes(),
        }),
        None => folders.content(of, &route.serving),
    };
    site::Route {
        path: route.path.clone(),
        content: Some(content),
        headers: of_headers(&route.headers),
        error_pages: of_pages(&route.serving.error_pages, &site.serving.error_pages),
    }
}

fn of_redirect(redirect: &config::Redirect) -> site::Redirect {
    site::Redirect { from: redirect.from.clone(), to: redirect.to.clone(), status: redirect.status }
}

fn of_headers(headers: &config::Headers) -> site::Headers {
    let set = headers.set.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    site::Headers { set, remove: headers.remove.clone() }
}

/// Returns the pages that differ from the site's, which a route inherits.
fn of_pages(pages: &BTreeMap<u16, String>, others: &BTreeMap<u16, String>) -> Vec<site::ErrorPage> {
    let own = pages.iter().filter(|(status, path)| others.get(status) != Some(path));
    own.map(|(&status, path)| site::ErrorPage { status, path: path.clone() }).collect()
}
