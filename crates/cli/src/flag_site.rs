//! A folder's site as flags describe it.

use shearwater_config::{Pair, SiteTls};
use shearwater_files::{CacheRule, FileMatch, FindOptions, FolderOptions, Links};
use shearwater_site::{ErrorPage, Headers};

use crate::args::Serve;
use crate::settings;

/// A folder's site as flags describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FlagSite {
    pub(crate) hosts: Vec<String>,
    pub(crate) tls: SiteTls,
    pub(crate) files: FolderOptions,
    pub(crate) headers: Headers,
    /// Pages of any origin may read the files.
    pub(crate) cors: bool,
    pub(crate) error_pages: Vec<ErrorPage>,
}

impl FlagSite {
    /// Returns the site that flags describe.
    pub(crate) fn of(serve: &Serve) -> Self {
        let tls = match (&serve.cert, &serve.key) {
            (Some(cert), Some(key)) => {
                SiteTls::Own(Pair { cert: cert.clone(), key: key.clone(), client_ca: None })
            }
            _ if serve.self_signed => SiteTls::SelfSigned,
            _ if !serve.domain.is_empty() => SiteTls::Auto,
            _ => SiteTls::Off,
        };
        let page = |(status, path): &(u16, String)| ErrorPage { status: *status, path: path.clone() };
        Self {
            hosts: serve.domain.clone(),
            tls,
            files: files(serve),
            headers: Headers { set: serve.header.clone(), remove: Vec::new() },
            cors: serve.cors,
            error_pages: serve.error_page.iter().map(page).collect(),
        }
    }

    /// Returns whether the site has TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls != SiteTls::Off
    }
}

/// Returns the options of the folder.
fn files(serve: &Serve) -> FolderOptions {
    let spa = serve.spa.then(|| "/index.html".to_owned());
    let everywhere =
        |value: &String| CacheRule { files: FileMatch::Path("/*".to_owned()), value: value.clone() };
    FolderOptions {
        find: FindOptions { spa, ..FindOptions::default() },
        symlinks: serve.symlinks.map_or(Links::default(), settings::links),
        listing: serve.listing,
        compress: serve.compress,
        cache_control: serve.cache_control.iter().map(everywhere).collect(),
        ..FolderOptions::default()
    }
}

/// Returns the first given flag of a single folder, with the key of a site that replaces it.
pub(crate) fn only_for_a_folder(serve: &Serve) -> Option<(&'static str, &'static str)> {
    [
        (serve.listing, "--listing", "listing = true"),
        (serve.spa, "--spa", "spa = \"/index.html\""),
        (serve.compress, "--compress", "compress = true"),
        (
            serve.cache_control.is_some(),
            "--cache-control",
            "cache_control = [{ path = \"/*\", value = \"…\" }]",
        ),
        (serve.symlinks.is_some(), "--symlinks", "symlinks = \"…\""),
        (!serve.error_page.is_empty(), "--error-page", "error_pages = { 404 = \"/404.html\" }"),
        (!serve.header.is_empty(), "--header", "headers = { set = { NAME = \"…\" } }"),
        (serve.cors, "--cors", "cors = true"),
        (!serve.domain.is_empty(), "--domain", "tls = \"auto\""),
        (serve.cert.is_some(), "--cert", "tls = { cert = \"…\", key = \"…\" }"),
        (serve.self_signed, "--self-signed", "tls = \"self-signed\""),
    ]
    .into_iter()
    .find_map(|(is_given, flag, key)| is_given.then_some((flag, key)))
}
