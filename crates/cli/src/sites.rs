//! `[[site]]`: sites of the configuration as options of `shearwater-site`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use shearwater_config::{self as config, Config, Finding, Severity};
use shearwater_files::{CacheLimits, Folder, FolderError, FolderOptions};
use shearwater_site::{self as site, Content, Mistake, Place, Sites};

use crate::args::Serve;
use crate::failure::Failure;
use crate::folder;
use crate::site::{Root, Site, cant_open};

/// Opens the content to serve: the sites of the file, the folder of the command line, or the default. Returns warnings with it.
pub(crate) fn open(
    serve: &Serve,
    config: &Config,
    cache: CacheLimits,
) -> Result<(Site, Vec<Finding>), Failure> {
    if config.sites.is_empty() {
        let base = serve.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        return Site::open(serve.dir.as_deref(), base).map(|site| (site, Vec::new()));
    }
    if let Some(dir) = &serve.dir {
        let (dir, file) = (dir.display(), config.file().display());
        return Err(Failure::helped(
            format!("both the folder {dir} and the sites of {file} are given"),
            "name one of both",
        ));
    }
    let mut folders = Folders::of(config);
    let sites: Vec<site::Site> =
        config.sites.iter().enumerate().map(|(index, site)| of_site(index, site, &mut folders)).collect();
    if !folders.problems.is_empty() {
        return Err(config.diagnostics(Severity::Error, folders.problems).into());
    }
    let described = described(config);
    let options = site::Options { folders: folders.open, cache, sites };
    let finding = |mistake: &Mistake| {
        let key = key(config, mistake);
        let message = config.conceal(table(&key), &mistake.why);
        Finding { key, message, help: None }
    };
    let sites = Sites::new(options).map_err(|mistakes| {
        let errors = mistakes.told.iter().map(finding).collect();
        Failure::from(config.diagnostics(Severity::Error, errors))
    })?;
    let mut warnings = folders.warnings;
    warnings.extend(sites.doubts().told.iter().map(finding));
    Ok((Site::Sites { sites, described, roots: folders.roots }, warnings))
}

/// Describes the sites for reports.
fn described(config: &Config) -> String {
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
struct Folders<'a> {
    config: &'a Config,
    /// Options and indices in `open`, by root.
    known: HashMap<PathBuf, Vec<(FolderOptions, usize)>>,
    open: Vec<Folder>,
    roots: Vec<Root>,
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<'a> Folders<'a> {
    fn of(config: &'a Config) -> Self {
        Self {
            config,
            known: HashMap::new(),
            open: Vec::new(),
            roots: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

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
                self.warnings.extend(folder.missing().into_iter().map(|option| Finding {
                    key: format!("{of}.{option}"),
                    message: "no such file".to_owned(),
                    help: Some("without it, requests that fall back to it get a 404".to_owned()),
                }));
                let index = self.open.len();
                self.open.push(folder);
                let formats = serving.precompressed.iter().copied().map(folder::format).collect();
                self.roots.push(Root { path: root.clone(), formats });
                self.known.entry(root.clone()).or_default().push((options, index));
                return Content::Files(index);
            }
            Err(FolderError::Open(error)) => {
                let (message, help) = cant_open(root, &error);
                self.problems.push(Finding { key: format!("{of}.root"), message, help });
            }
            Err(FolderError::Option(bad)) => {
                let (key, what) = (folder::key(bad.option), format!("{:?}: {}", bad.value, bad.why));
                let (key, message) = (format!("{of}.{key}"), self.config.conceal(table(of), &what));
                self.problems.push(Finding { key, message, help: None });
            }
        }
        Content::Nothing
    }
}

fn of_site(index: usize, site: &config::Site, folders: &mut Folders<'_>) -> site::Site {
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
            .map(|(route, said)| of_route(&format!("{of}.route[{route}]"), said, site, folders))
            .collect(),
    }
}

fn of_route(of: &str, route: &config::Route, site: &config::Site, folders: &mut Folders<'_>) -> site::Route {
    let content = match &route.respond {
        Some(respond) => Content::Fixed(site::Fixed {
            status: respond.status,
            media_type: respond.media_type.clone(),
            body: respond.body.clone().into_bytes(),
        }),
        None => folders.content(of, &route.serving),
    };
    site::Route {
        path: route.path.to_string(),
        content: Some(content),
        headers: of_headers(&route.headers),
        error_pages: of_pages(&route.serving.error_pages, &site.serving.error_pages),
    }
}

fn of_redirect(redirect: &config::Redirect) -> site::Redirect {
    site::Redirect { from: redirect.from.to_string(), to: redirect.to.clone(), status: redirect.status }
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

/// Returns the table of a site, `site[0]`, that a key belongs to.
fn table(key: &str) -> &str {
    key.split_once('.').map_or(key, |(table, _)| table)
}

/// Returns the key of a mistake.
fn key(config: &Config, mistake: &Mistake) -> String {
    let of = |site: usize, route: Option<usize>| match route {
        Some(route) => format!("site[{site}].route[{route}]"),
        None => format!("site[{site}]"),
    };
    match &mistake.place {
        Place::Sites => "site[0]".to_owned(),
        Place::Site(site) => of(*site, None),
        Place::Host { site, host } => format!("site[{site}].hosts[{host}]"),
        Place::Redirect { site, redirect } => format!("site[{site}].redirect[{redirect}]"),
        Place::Route { site, route } => of(*site, Some(*route)),
        Place::Header { site, route, name } => {
            let of_site = &config.sites[*site];
            let headers = route.map_or(&of_site.headers, |route| &of_site.routes[route].headers);
            let list = if headers.set.contains_key(name) { "set" } else { "remove" };
            format!("{}.headers.{list}", of(*site, *route))
        }
        Place::ErrorPage { site, route, status } => {
            format!("{}.error_pages.{status}", of(*site, *route))
        }
    }
}
