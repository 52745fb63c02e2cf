//! Serves a folder bare, as a typical site, or as one of many sites, to count instructions per request.
//!
//! `site_cost FOLDER bare | real | many SITES ROUTES`; the environment variable `SHEARWATER_LISTEN` is the address (127.0.0.1:8080). The hosts
//! of `many` are `site-N.example.org`, its routes `/part-N/*`.

use std::path::Path;
use std::process::ExitCode;

use shearwater::{Response, Running, Server, Service};
use shearwater_files::{CacheLimits, Files, Folder};
use shearwater_site::{Content, ErrorPage, Headers, Options, REDIRECT_STATUS, Redirect, Route, Site, Sites};

struct Bare(Files);

impl Service for Bare {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        self.0.respond(request, response);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let started = match arguments.as_slice() {
        [folder, "bare"] => bare(folder),
        [folder, "real"] => serve(folder, vec![real()]),
        [folder, "many", sites, routes] => serve(folder, many(sites, routes)),
        _ => Err("site_cost FOLDER bare | real | many SITES ROUTES".into()),
    };
    match started.and_then(|running| Ok(running.wait()?)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

type StartResult = Result<Running, Box<dyn std::error::Error>>;

fn server() -> Server {
    let listen = std::env::var("SHEARWATER_LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    Server::bind(listen).workers(1)
}

fn bare(folder: &str) -> StartResult {
    let folder = Folder::open(Path::new(folder))?;
    Ok(server().start_service(move |_| Bare(folder.files()))?)
}

fn serve(folder: &str, sites: Vec<Site>) -> StartResult {
    let folders = vec![Folder::open(Path::new(folder))?];
    let sites = Sites::new(Options { folders, cache: CacheLimits::default(), sites })?;
    let running = server().start_service(move |_| sites.service())?;
    println!("serving");
    Ok(running)
}

fn headers(set: &[(&str, &str)]) -> Headers {
    let set = set.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Headers { set, remove: Vec::new() }
}

/// Returns a site with three hosts, three headers, an error page, two redirects and twenty routes.
fn real() -> Site {
    let beneath = |path: &str| Route { path: path.to_owned(), ..Route::default() };
    let mut routes: Vec<Route> = ["/assets/*", "/images/*", "/fonts/*", "/api/v1/*", "/api/v2/*", "/docs/*"]
        .into_iter()
        .chain(["/docs/old/*", "/blog/*", "/feeds/*", "/downloads/*", "/press/*", "/team/*", "/legal/*"])
        .chain(["/robots.txt", "/favicon.ico", "/health", "/sitemap.xml", "/manifest.json", "/about", "/"])
        .map(beneath)
        .collect();
    routes[0].headers = headers(&[("Cache-Control", "public, max-age=31536000, immutable")]);
    let redirect =
        |from: &str, to: &str| Redirect { from: from.into(), to: to.into(), status: REDIRECT_STATUS };
    Site {
        hosts: ["example.org", "www.example.org", "*.example.org"].map(str::to_owned).into(),
        content: Content::Files(0),
        headers: headers(&[
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "strict-origin-when-cross-origin"),
        ]),
        error_pages: vec![ErrorPage { status: 404, path: "/404.html".to_owned() }],
        redirects: vec![redirect("/old/*", "/new/{rest}"), redirect("/home", "/")],
        routes,
        ..Site::default()
    }
}

fn many(sites: &str, routes: &str) -> Vec<Site> {
    let count = |text: &str| text.parse::<usize>().unwrap_or(1);
    let routes: Vec<Route> = (0..count(routes))
        .map(|route| Route { path: format!("/part-{route}/*"), ..Route::default() })
        .collect();
    let site = |number: usize| Site {
        hosts: vec![format!("site-{number}.example.org")],
        content: Content::Files(0),
        routes: routes.clone(),
        ..Site::default()
    };
    (0..count(sites)).map(site).collect()
}
