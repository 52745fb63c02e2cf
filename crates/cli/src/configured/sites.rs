//! `[[site]]`: what is served to whom.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use shearwater_config::{self as config, Config};
use shearwater_files::{CacheLimits, Folder, FolderError, FolderOptions};
use shearwater_site::{self as site, Content, Mistake, Place, Sites};

use super::folder;
use crate::args::Serve;
use crate::failure::Failure;
use crate::site::{Root, Site, refusal};

/// Something said of a key.
pub(crate) type Told = (String, String);

/// Opens what is to be served: the sites of the file, the folder of the command line, or what there is without both. With it what
/// can be served, but is hardly meant.
pub(crate) fn open(serve: &Serve, config: &Config, cache: CacheLimits) -> Result<(Site, Vec<Told>), Failure> {
    if config.sites.is_empty() {
        let base = serve.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        return Site::open(serve.dir.as_deref(), base).map(|site| (site, Vec::new()));
    }
    if let Some(dir) = &serve.dir {
        let (dir, file) = (dir.display(), config.file().display());
        return Err(Failure::start(format!(
            "the folder {dir} and the sites of {file} contradict each other: name one of both"
        )));
    }
    let mut folders = Folders::of(config);
    let sites: Vec<site::Site> =
        config.sites.iter().enumerate().map(|(index, site)| of_site(index, site, &mut folders)).collect();
    if !folders.problems.is_empty() {
        return Err(config.refuse_all(folders.problems).into());
    }
    let described = described(config);
    let options = site::Options { folders: folders.open, cache, sites };
    let told = |mistake: &Mistake| {
        let key = key(config, mistake);
        let why = config.conceal(table(&key), &mistake.why);
        (key, why)
    };
    let sites = Sites::new(options)
        .map_err(|mistakes| Failure::from(config.refuse_all(mistakes.told.iter().map(told))))?;
    let mut doubts = folders.doubts;
    doubts.extend(sites.doubts().told.iter().map(told));
    Ok((Site::Sites { sites, described, roots: folders.roots }, doubts))
}

/// The sites' names, in a few words.
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

/// The folders that are served: each once, however many routes lead there.
struct Folders<'a> {
    config: &'a Config,
    /// By root: how it is served, and where that folder stands in `open`. Hashed, since a thousand sites have a thousand roots.
    known: HashMap<PathBuf, Vec<(FolderOptions, usize)>>,
    open: Vec<Folder>,
    /// The same ones, as the operator knows them.
    roots: Vec<Root>,
    /// What is wrong, by keys.
    problems: Vec<Told>,
    /// What can be served, but is hardly meant, by keys.
    doubts: Vec<Told>,
}

impl<'a> Folders<'a> {
    fn of(config: &'a Config) -> Self {
        Self {
            config,
            known: HashMap::new(),
            open: Vec::new(),
            roots: Vec::new(),
            problems: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// What is answered by files that are served so; `of` is the key of the table that says it.
    fn content(&mut self, of: &str, serving: &config::Serving) -> Content {
        let Some(root) = &serving.root else { return Content::Nothing };
        let options = folder::options(serving);
        let known = self.known.get(root).and_then(|served| served.iter().find(|(of, _)| *of == options));
        if let Some(&(_, place)) = known {
            return Content::Files(place);
        }
        match Folder::open_with(root, &options) {
            Ok(folder) => {
                let why =
                    "there is no such file now: while there is none, what it stands in for is not found";
                let missing = folder.missing().into_iter();
                self.doubts.extend(missing.map(|option| (format!("{of}.{option}"), why.to_owned())));
                let place = self.open.len();
                self.open.push(folder);
                let formats = serving.precompressed.iter().copied().map(folder::format).collect();
                self.roots.push(Root { path: root.clone(), formats });
                self.known.entry(root.clone()).or_default().push((options, place));
                return Content::Files(place);
            }
            Err(FolderError::Open(error)) => {
                self.problems.push((format!("{of}.root"), refusal(root, &error)));
            }
            Err(FolderError::Option(bad)) => {
                let (key, what) = (folder::key(bad.option), format!("{:?}: {}", bad.value, bad.why));
                self.problems.push((format!("{of}.{key}"), self.config.conceal(table(of), &what)));
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

/// Those that others don't have already: a route has its site's.
fn of_pages(pages: &BTreeMap<u16, String>, others: &BTreeMap<u16, String>) -> Vec<site::ErrorPage> {
    let own = pages.iter().filter(|(status, path)| others.get(status) != Some(path));
    own.map(|(&status, path)| site::ErrorPage { status, path: path.clone() }).collect()
}

/// The table of the site that a key belongs to.
fn table(key: &str) -> &str {
    key.split_once('.').map_or(key, |(table, _)| table)
}

/// The key that a mistake is about.
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
