//! The servers that are held against one another: a folder, a site as people have them, and many sites.

use std::fmt::{self, Display, Write};
use std::net::SocketAddr;
use std::path::Path;

/// What stands between a request and the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sites {
    /// Nothing: it is served by the command line.
    Bare,
    /// Two hosts and a star, 20 routes, two redirects, three fields set, an error page, rules of `Cache-Control`.
    Real,
    /// So many sites with so many routes each.
    Many {
        /// Sites, each with a host of its own.
        sites: u32,
        /// Routes of each.
        routes: u32,
    },
}

impl Display for Sites {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare => out.write_str("a folder"),
            Self::Real => out.write_str("a site with 20 routes"),
            Self::Many { sites, routes } => write!(out, "sites x routes {sites} x {routes}"),
        }
    }
}

impl Sites {
    /// The host of one of the sites; the number is taken around where there are fewer.
    pub fn host(self, number: u32) -> String {
        match self {
            Self::Bare | Self::Real => "lab".to_owned(),
            Self::Many { sites, .. } => format!("site-{:04}.example.org", number % sites.max(1)),
        }
    }
}

/// Prefixes of a site's routes: of one, two and three segments.
const PREFIXES: [&str; 14] = [
    "/assets",
    "/assets/fonts",
    "/images",
    "/api",
    "/api/v1",
    "/api/v2",
    "/api/v2/beta",
    "/docs",
    "/docs/old",
    "/blog",
    "/feeds",
    "/downloads",
    "/press",
    "/team",
];
/// Routes of a site that are one path each.
const EXACT: [&str; 6] = ["/", "/robots.txt", "/favicon.ico", "/sitemap.xml", "/manifest.json", "/about"];

/// The configuration, for one worker; there are no sites in that of a folder.
pub fn text(sites: Sites, address: SocketAddr, public: &Path) -> String {
    let mut out =
        format!("[server]\nworkers = 1\ndriver = \"epoll\"\n\n[[listen]]\naddress = \"{address}\"\n",);
    match sites {
        Sites::Bare => {}
        Sites::Real => real(&mut out, public),
        Sites::Many { sites: count, routes } => {
            for number in 0..count {
                out.push_str(&site(&format!("[\"{}\"]", sites.host(number)), public));
                (0..routes).for_each(|route| push_route(&mut out, &format!("/part-{route}/*"), ""));
            }
        }
    }
    out
}

fn site(hosts: &str, public: &Path) -> String {
    format!("\n[[site]]\nhosts = {hosts}\nroot = {:?}\n", public.display().to_string())
}

fn push_route(out: &mut String, path: &str, more: &str) {
    // A String takes all that is written to it.
    let _ = write!(out, "[[site.route]]\npath = {path:?}\n{more}");
}

fn real(out: &mut String, public: &Path) {
    // The host that wrk names is the address.
    out.push_str(&site("[\"lab\", \"127.0.0.1\", \"*.example.org\"]", public));
    out.push_str(
        "error_pages = { 404 = \"/404.html\" }\n\
         cache_control = [{ type = \"image/*\", value = \"max-age=86400\" }, { type = \"text/html\", value = \"no-cache\" }]\n\
         headers = { set = { X-Content-Type-Options = \"nosniff\", X-Frame-Options = \"DENY\", Referrer-Policy = \"same-origin\" } }\n\n\
         [[site.redirect]]\nfrom = \"/old/*\"\nto = \"/new/{rest}\"\n\n[[site.redirect]]\nfrom = \"/home\"\nto = \"/\"\n\n",
    );
    for prefix in PREFIXES {
        let forever = "cache_control = [{ path = \"*\", value = \"public, max-age=31536000, immutable\" }]\n";
        push_route(out, &format!("{prefix}/*"), if prefix == "/assets" { forever } else { "" });
    }
    EXACT.iter().for_each(|path| push_route(out, path, ""));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{EXACT, PREFIXES, Sites, text};

    #[test]
    fn a_configuration_has_what_its_name_says() {
        assert_eq!(PREFIXES.len() + EXACT.len(), 20);
        let address = ([127, 0, 0, 1], 8080).into();
        let count = |sites, what: &str| text(sites, address, Path::new("public")).matches(what).count();
        assert_eq!(count(Sites::Real, "[[site.route]]"), 20);
        let many = Sites::Many { sites: 3, routes: 5 };
        assert_eq!((count(many, "[[site]]"), count(many, "[[site.route]]")), (3, 15));
        assert_eq!(many.host(4), "site-0001.example.org");
    }
}
