//! Configurations of the program with sites over the served folder.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// Paths of the routes of [`realistic`]: of one, two and three segments, and single ones.
const ROUTES: &str = "/assets/* /assets/fonts/* /images/* /api/* /api/v1/* /api/v2/* /api/v2/beta/* /docs/* /docs/old/* \
                      /blog/* /feeds/* /downloads/* /press/* /team/* / /robots.txt /favicon.ico /sitemap.xml \
                      /manifest.json /about";

/// Returns a site as people have them: hosts, redirects, headers, an error page, cache rules and 20 routes.
pub(crate) fn realistic(address: SocketAddr, workers: u32, public: &Path) -> String {
    // The host that wrk names is the address.
    let mut out = server(address, workers) + &site("\"lab\", \"127.0.0.1\", \"*.example.org\"", public);
    out.push_str(
        r#"error_pages = { 404 = "/404.html" }
cache_control = [{ type = "image/*", value = "max-age=86400" }, { type = "text/html", value = "no-cache" }]
headers = { set = { X-Content-Type-Options = "nosniff", X-Frame-Options = "DENY", Referrer-Policy = "same-origin" } }

[[site.redirect]]
from = "/old/*"
to = "/new/{rest}"

[[site.redirect]]
from = "/home"
to = "/"

"#,
    );
    ROUTES.split(' ').for_each(|path| route(&mut out, path));
    out
}

/// Returns so many sites, each with a host and so many routes.
pub(crate) fn many(address: SocketAddr, workers: u32, public: &Path, sites: u32, routes: u32) -> String {
    let mut out = server(address, workers);
    for number in 0..sites {
        out.push_str(&site(&format!("\"site-{number:04}.example.org\""), public));
        (0..routes).for_each(|number| route(&mut out, &format!("/part-{number}/*")));
    }
    out
}

fn server(address: SocketAddr, workers: u32) -> String {
    format!("[server]\nworkers = {workers}\ndriver = \"epoll\"\n\n[[listen]]\naddress = \"{address}\"\n")
}

fn site(hosts: &str, public: &Path) -> String {
    format!("\n[[site]]\nhosts = [{hosts}]\nroot = {:?}\n", public.display().to_string())
}

fn route(out: &mut String, path: &str) {
    // A String takes all that is written to it.
    let _ = write!(out, "[[site.route]]\npath = {path:?}\n");
}
