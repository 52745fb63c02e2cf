//! `[[site]]`: opens the folders of a configuration and checks its sites.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use shearwater_config::{self as config, Config, Finding, Findings};
use shearwater_files::{
    CacheRule, Coding, FileMatch, FindOptions, Folder, FolderError, FolderOptions, Hidden, MediaTypeOptions,
};
use shearwater_site::{self as site, Content, Mistake, Options, Sites};

use crate::guards::{self, GuardsPlan};
use crate::settings;
use crate::site::{Root, Site, cant_open};

/// Opens the sites of a configuration for so many workers. Returns none if it has none, or errors.
pub(crate) fn open(config: &Config, workers: u16) -> (Option<Site>, Findings) {
    if config.sites.is_empty() {
        return (None, Findings::default());
    }
    let (mut folders, mut guards) = (Folders::default(), GuardsPlan::default());
    let each = config.sites.iter().enumerate();
    let sites: Vec<site::Site> =
        each.map(|(index, site)| of_site(index, site, &mut folders, &mut guards)).collect();
    let Folders { open, roots, mut findings, .. } = folders;
    let files = guards.files();
    findings.errors.extend(guards.errors);
    for (index, site) in config.sites.iter().enumerate() {
        let routes = site.routes.iter().enumerate();
        findings.errors.extend(routes.filter_map(|(route, keys)| {
            guards::leaks(&format!("site[{index}].route[{route}]"), keys, &site.guarding)
        }));
    }
    match Sites::new(Options { folders: open, cache: settings::cache(&config.cache, workers), sites }) {
        Ok(sites) => {
            findings.warnings.extend(sites.warnings().list.iter().map(finding));
            let description = describe(config);
            let lines = config.sites.iter().map(line).collect();
            let guarded = config.sites.iter().flat_map(guarded).collect();
            let site = Site { sites, description, lines, guarded, roots, files, warnings: Vec::new() };
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

/// Describes a site with its folders in a line.
fn line(site: &config::Site) -> String {
    let routes = site.routes.iter().map(|route| &route.serving);
    let mut roots: Vec<String> = Vec::new();
    for root in [&site.serving].into_iter().chain(routes).filter_map(|serving| serving.root.as_ref()) {
        let root = root.display().to_string();
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    let roots = if roots.is_empty() { "no files".to_owned() } else { roots.join(", ") };
    if site.hosts.is_empty() { roots } else { format!("{}: {roots}", site.hosts.join(", ")) }
}

/// Describes the guards of a site and of its routes, a line each.
fn guarded(site: &config::Site) -> Vec<String> {
    let host = site.hosts.first().map_or("", String::as_str);
    let routes = site.routes.iter().filter(|route| route.guarding != site.guarding);
    let tables =
        [("/*", &site.guarding)].into_iter().chain(routes.map(|route| (&*route.path, &route.guarding)));
    let describe =
        |(path, keys)| format!("{host}{path}: {}", guards::describe(keys).unwrap_or("open".to_owned()));
    let is_open = guards::describe(&site.guarding).is_none();
    let shown = tables.filter(|(_, keys)| !is_open || guards::describe(keys).is_some());
    shown.map(describe).collect()
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
        let options = folder_options(serving);
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
                self.open.push(folder.clone());
                let formats = serving.precompressed.iter().copied().map(coding).collect();
                self.roots.push(Root { path: root.clone(), folder, formats });
                self.known.entry(root.clone()).or_default().push((options, index));
                return Content::Files(index);
            }
            Err(FolderError::Open(error)) => {
                let (message, help) = cant_open(root, &error);
                self.error(of, "root", root, message, help);
            }
            Err(FolderError::Option(_)) => {
                for (key, message) in check_options(serving) {
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

fn of_site(index: usize, site: &config::Site, folders: &mut Folders, guards: &mut GuardsPlan) -> site::Site {
    let of = format!("site[{index}]");
    let redirect = |config::Redirect { from, to, status }: &config::Redirect| site::Redirect {
        from: from.clone(),
        to: to.clone(),
        status: *status,
    };
    site::Site {
        hosts: site.hosts.clone(),
        content: folders.content(&of, &site.serving),
        https_only: site.redirects_clear(),
        hsts: site.hsts.as_ref().map(hsts),
        guards: guards.of_site(&of, &site.guarding),
        security_headers: site.guarding.security_headers,
        headers: of_headers(&site.headers),
        error_pages: of_pages(&site.serving.error_pages, &BTreeMap::new()),
        redirects: site.redirects.iter().map(redirect).collect(),
        routes: site
            .routes
            .iter()
            .enumerate()
            .map(|(route, keys)| of_route(&format!("{of}.route[{route}]"), keys, site, folders, guards))
            .collect(),
    }
}

fn hsts(config::Hsts { max_age, subdomains, preload }: &config::Hsts) -> site::Hsts {
    site::Hsts { max_age: *max_age, subdomains: *subdomains, preload: *preload }
}

fn of_route(
    of: &str,
    route: &config::Route,
    site: &config::Site,
    folders: &mut Folders,
    guards: &mut GuardsPlan,
) -> site::Route {
    let content = match &route.respond {
        Some(respond) => Some(Content::Fixed(site::Fixed {
            status: respond.status,
            media_type: respond.media_type.clone(),
            body: respond.body.clone().into_bytes(),
        })),
        // That of the site.
        None if route.serving == site.serving && !route.strip_prefix => None,
        None => Some(folders.content(of, &route.serving)),
    };
    site::Route {
        path: route.path.clone(),
        content,
        strip_prefix: route.strip_prefix,
        guards: guards.of_route(of, &route.guarding, &site.guarding),
        security_headers: route.guarding.security_headers,
        download: route.download.clone().map(|config::Download { name }| site::Download { name }),
        headers: of_headers(&route.headers),
        error_pages: of_pages(&route.serving.error_pages, &site.serving.error_pages),
    }
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

/// Returns the keys about files as options of a folder.
fn folder_options(serving: &config::Serving) -> FolderOptions {
    FolderOptions {
        find: FindOptions {
            index: serving.index.clone(),
            try_files: serving.try_files.iter().map(|tried| try_file(tried)).collect(),
            spa: serving.spa.clone(),
            clean_urls: serving.clean_urls,
        },
        hidden: match serving.hidden {
            config::Hidden::Deny => Hidden::Deny,
            config::Hidden::Serve => Hidden::Serve,
        },
        symlinks: settings::links(serving.symlinks),
        listing: serving.listing,
        precompressed: serving.precompressed.iter().copied().map(coding).collect(),
        compress: serving.compress,
        media_types: MediaTypeOptions {
            by_extension: pairs(&serving.mime),
            by_name: pairs(&serving.mime_names),
            otherwise: None,
            charset: Some(serving.charset.clone()),
        },
        cache_control: serving.cache_control.iter().filter_map(rule).collect(),
    }
}

fn pairs(types: &BTreeMap<String, String>) -> Vec<(String, String)> {
    types.iter().map(|(name, media_type)| (name.clone(), media_type.clone())).collect()
}

/// Returns a message for each invalid key, with the key relative to its table.
///
/// Each value is checked on its own, so that all of them are reported, and then all together.
fn check_options(serving: &config::Serving) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let mut check = |key: String, change: &dyn Fn(&mut FolderOptions)| {
        let mut options = FolderOptions::default();
        change(&mut options);
        if let Err(bad) = options.check() {
            wrong.push((key, format!("invalid value: {}", bad.why)));
        }
    };
    for (index, name) in serving.index.iter().enumerate() {
        check(format!("index[{index}]"), &|options| options.find.index = vec![name.clone()]);
    }
    for (index, entry) in serving.try_files.iter().enumerate() {
        check(format!("try_files[{index}]"), &|options| options.find.try_files = vec![try_file(entry)]);
    }
    check("spa".to_owned(), &|options| options.find.spa.clone_from(&serving.spa));
    for (extension, kind) in &serving.mime {
        let by_extension = || vec![(extension.clone(), kind.clone())];
        check(format!("mime.{extension}"), &|options| options.media_types.by_extension = by_extension());
    }
    for (name, kind) in &serving.mime_names {
        let by_name = || vec![(name.clone(), kind.clone())];
        check(format!("mime_names.{name}"), &|options| options.media_types.by_name = by_name());
    }
    check("charset".to_owned(), &|options| options.media_types.charset = Some(serving.charset.clone()));
    for (index, rule) in serving.cache_control.iter().filter_map(rule).enumerate() {
        let value = CacheRule { files: FileMatch::Path("/*".to_owned()), value: rule.value.clone() };
        let path = CacheRule { files: rule.files, value: "no-cache".to_owned() };
        for (key, rule) in [("value", value), ("path", path)] {
            check(format!("cache_control[{index}].{key}"), &|options| {
                options.cache_control = vec![rule.clone()];
            });
        }
    }
    if wrong.is_empty()
        && let Err(bad) = folder_options(serving).check()
    {
        wrong.push((bad.option.to_owned(), format!("invalid value: {}", bad.why)));
    }
    wrong
}

/// Normalizes an entry of `try_files`: `= 404` is `=404`.
fn try_file(text: &str) -> String {
    match text.strip_prefix('=') {
        Some(status) => format!("={}", status.trim_start()),
        None => text.to_owned(),
    }
}

fn coding(coding: config::Coding) -> Coding {
    match coding {
        config::Coding::Br => Coding::Br,
        config::Coding::Zstd => Coding::Zstd,
        config::Coding::Gzip => Coding::Gzip,
    }
}

/// Every rule that was parsed without errors has a type or a path.
fn rule(rule: &config::CacheControl) -> Option<CacheRule> {
    let files =
        rule.media_type.clone().map(FileMatch::Type).or_else(|| rule.path.clone().map(FileMatch::Path))?;
    Some(CacheRule { files, value: rule.value.clone() })
}
