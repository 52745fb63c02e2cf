//! Values of keys.

use std::path::PathBuf;
use std::time::Duration;

use shearwater_config::{
    Accept, Address, Config, Directory, Driver, Findings, Pair, Protocol, SiteTls, TlsVersion,
    print_effective,
};

use crate::right;

#[test]
fn an_empty_file_has_the_defaults() {
    for text in ["", "\n# nothing\n", "\u{feff}", "[server]\n[cache]"] {
        assert_eq!(right(text), Config::default(), "{text:?}");
    }
}

#[test]
fn parses_all_notations_of_toml() {
    let config = right("[server]\nworkers = 0x10\nbacklog = 65_535");
    assert_eq!((config.server.workers, config.server.backlog), (16, 65_535));
    assert_eq!(right("server.workers = 3\nserver.pin = true").server.workers, 3);
    assert_eq!(
        right("server = { workers = 3, driver = \"uring\", accept = \"dispatch\" }").server.driver,
        Driver::Uring
    );
    assert_eq!(right("server = { accept = \"dispatch\" }").server.accept, Accept::Dispatch);
}

#[test]
fn durations_and_sizes_have_units_or_are_seconds_and_bytes() {
    let seconds = Duration::from_secs;
    for (text, head) in
        [("10", seconds(10)), ("\"10s\"", seconds(10)), ("\"2m\"", seconds(120)), ("\"1h\"", seconds(3600))]
    {
        assert_eq!(right(&format!("[timeouts]\nhead = {text}")).timeouts.head, head, "{text}");
    }
    let config = right("[performance]\nconnection_timeout = \"1500ms\"\n[server]\ndrain_timeout = \"0s\"");
    assert_eq!(config.performance.connection_timeout, Duration::from_millis(1500));
    assert_eq!(config.server.drain_timeout, Duration::ZERO);
    for (text, bytes) in
        [("65536", 65_536), ("\"64KiB\"", 65_536), ("\"10MB\"", 10_000_000), ("\"${EMPTY:-1GiB}\"", 1 << 30)]
    {
        assert_eq!(right(&format!("[limits]\nbody_bytes_max = {text}")).limits.body_bytes_max, bytes);
    }
}

#[test]
fn localhost_is_the_loopback_address() {
    let config = right("[[listen]]\naddress = \"localhost:81\"\n[admin]\nlisten = \"localhost:9180\"");
    let loopback = |port: u16| Address::Tcp(([127, 0, 0, 1], port).into());
    assert_eq!((&config.listen[0].address, config.admin.listen), (&loopback(81), Some(loopback(9180))));
}

#[test]
fn resolves_paths_against_the_folder_of_the_file() {
    let config = right(
        "[[listen]]\naddress = \"[::1]:80\"\n[[listen]]\naddress = \"unix:run/x.sock\"\nmode = \"660\"\n\
         [[site]]\nroot = \"./${DIR}\"\nhosts = [\"A.org.\"]\n[[site]]\nroot = \"/srv/www\"\nhosts = [\"[::1]\"]",
    );
    assert_eq!(config.listen[0].address, Address::Tcp("[::1]:80".parse().expect("an address")));
    assert_eq!(config.listen[1].address, Address::Unix(PathBuf::from("/etc/shearwater/run/x.sock")));
    assert_eq!((config.listen[0].mode, config.listen[1].mode), (None, Some(0o660)));
    assert_eq!(config.sites[0].serving.root, Some(PathBuf::from("/etc/shearwater/public")));
    assert_eq!(config.sites[1].serving.root, Some(PathBuf::from("/srv/www")));
    assert_eq!(config.sites[0].hosts, ["A.org."]);
    let config =
        Config::parse("site.toml".as_ref(), "[[site]]\nroot = \"www\"", |_| None, |_| Findings::default())
            .expect("a valid text")
            .0;
    let here = std::env::current_dir().expect("a folder").join("www");
    assert_eq!(config.sites[0].serving.root, Some(here));
}

/// A site with every key, and routes that override some.
const SITE: &str = r#"
        [[site]]
        allow = ["10.0.0.0/8"]
        deny = ["10.1.0.0/16", "unix"]
        rate_limit = { requests = 100, per = "1m" }
        basic_auth = "users"
        cors = true
        security_headers = true
        root = "${DIR}"
        index = ["index.html", "index.htm"]
        spa = "/app.html"
        clean_urls = true
        hidden = "serve"
        symlinks = "never"
        listing = true
        precompressed = ["gzip"]
        compress = true
        mime = { ".FOO" = "text/x-foo", bar = "text/x-bar" }
        mime_names = { LICENSE = "text/plain" }
        charset = ""
        error_pages = { 404 = "/404.html", 500 = "/500.html" }
        cache_control = [ { type = "text/HTML", value = "no-cache" }, { path = "/assets/*", value = "max-age=1" } ]
        headers = { set = { X-Escaped = "$${SECRET}", X-Site = "${SECRET}" }, remove = ["Server"] }
        [[site.redirect]]
        from = "/old/*"
        to = "/new/{rest}"
        [[site.route]]
        path = "/assets/*"
        try_files = ["{path}", "= 404"]
        mime = { bar = "text/x-other" }
        mime_names = { "a.b" = "a/b" }
        charset = "windows-1252"
        error_pages = { 404 = "/assets/404.html" }
        headers = { set = { X-Route = "r" } }
        [[site.route]]
        path = "/health"
        respond = { body = "ok" }
        [[site.route]]
        path = "/plain"
        allow = []
        rate_limit = { requests = 5, per = 3, burst = 9 }
        basic_auth = { file = "/x", realm = "R" }
        cors = { origins = ["https://a"], headers = ["A"], credentials = true, max_age = 60 }
        security_headers = false
        download = "a b"
        spa = false
        root = "other"
        listing = true
"#;

/// The site as printed: with defaults, variables as written, and routes with the keys that differ from the site's.
const PRINTED: &str = r#"
[[site]]
hosts = []
tls = "off"
allow = ["10.0.0.0/8"]
deny = ["10.1.0.0/16", "unix"]
rate_limit = { requests = 100, per = "1m" }
basic_auth = "/etc/shearwater/users"
cors = true
security_headers = true
root = "${DIR}"
index = ["index.html", "index.htm"]
try_files = []
spa = "/app.html"
clean_urls = true
hidden = "serve"
symlinks = "never"
listing = true
precompressed = ["gzip"]
compress = true
mime = { bar = "text/x-bar", foo = "text/x-foo" }
mime_names = { LICENSE = "text/plain" }
charset = ""
error_pages = { 404 = "/404.html", 500 = "/500.html" }
cache_control = [{ type = "text/HTML", value = "no-cache" }, { path = "/assets/*", value = "max-age=1" }]
headers = { set = { X-Escaped = "$${SECRET}", X-Site = "${SECRET}" }, remove = ["Server"] }

[[site.redirect]]
from = "/old/*"
to = "/new/{rest}"
status = 308

[[site.route]]
path = "/assets/*"
headers = { set = { X-Route = "r" }, remove = [] }
try_files = ["{path}", "= 404"]
spa = false
mime = { bar = "text/x-other", foo = "text/x-foo" }
mime_names = { LICENSE = "text/plain", "a.b" = "a/b" }
charset = "windows-1252"
error_pages = { 404 = "/assets/404.html", 500 = "/500.html" }

[[site.route]]
path = "/health"
respond = { status = 200, type = "text/plain; charset=utf-8", body = "ok" }

[[site.route]]
path = "/plain"
download = "a b"
allow = []
rate_limit = { requests = 5, per = "3s", burst = 9 }
basic_auth = { file = "/x", realm = "R" }
cors = { origins = ["https://a"], methods = ["GET", "HEAD"], headers = ["A"], expose = [], credentials = true, max_age = "1m" }
security_headers = false
root = "/etc/shearwater/other"
try_files = []
spa = false
"#;

#[test]
fn parses_every_key_of_a_site_and_of_its_routes() {
    let config = right(SITE);
    let printed = print_effective(&config);
    assert_eq!(&printed[printed.find("\n[[site]]").expect("a site")..], PRINTED);
    let site = &config.sites[0];
    let headers = &site.headers.set;
    assert_eq!((headers["X-Escaped"].as_str(), headers["X-Site"].as_str()), ("${SECRET}", "hunter2"));
    let [assets, health, plain] = &site.routes[..] else { panic!("three routes") };
    for route in [assets, health] {
        assert_eq!(
            (&route.serving.root, route.serving.listing),
            (&site.serving.root, true),
            "{}",
            route.path
        );
    }
    // `spa` and `try_files` exclude each other.
    assert_eq!((&assets.serving.spa, &plain.serving.spa), (&None, &None));
}

#[test]
fn a_fallback_of_a_route_replaces_that_of_its_site() {
    let config = right(
        "[[site]]\nroot = \".\"\ntry_files = [\"{path}\", \"/i.html\"]\n[[site.route]]\npath = \"/app/*\"\nspa = \"/app/i.html\"\n\
         [[site.route]]\npath = \"/same/*\"\n",
    );
    let [app, same] = &config.sites[0].routes[..] else { panic!("two routes") };
    assert_eq!((app.serving.spa.as_deref(), app.serving.try_files.len()), (Some("/app/i.html"), 0));
    assert_eq!((same.serving.spa.as_deref(), same.serving.try_files.len()), (None, 2));
}

#[test]
fn accepts_addresses_that_do_not_overlap() {
    right(
        "[server]\nhttp_port = 80\n[[listen]]\naddress = \"127.0.0.1:81\"\n[[listen]]\naddress = \"[::1]:81\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"unix:80\"\n\
         [[listen]]\naddress = \"0.0.0.0:82\"\n[[listen]]\naddress = \"[::1]:82\"\n",
    );
}

#[test]
fn parses_keys_of_http2() {
    let default = right("");
    assert_eq!((default.server.http2_prior_knowledge, default.limits.streams_max), (false, 100));
    assert_eq!(default.tls.protocols, [Protocol::Http2, Protocol::Http11]);
    for (text, protocols) in [
        ("[\"h2\"]", &[Protocol::Http2][..]),
        ("[\"http/1.1\"]", &[Protocol::Http11]),
        ("[\"http/1.1\", \"${EMPTY:-h2}\"]", &[Protocol::Http11, Protocol::Http2]),
    ] {
        assert_eq!(right(&format!("[tls]\nprotocols = {text}")).tls.protocols, protocols, "{text}");
    }
    for streams_max in [1, 10_000] {
        let config =
            right(&format!("[server]\nhttp2_prior_knowledge = true\n[limits]\nstreams_max = {streams_max}"));
        assert_eq!((config.server.http2_prior_knowledge, config.limits.streams_max), (true, streams_max));
    }
}

#[test]
fn parses_every_form_of_tls() {
    let config = right(
        "[server]\nhttp_port = 80\nhttps_port = 443\n[[listen]]\naddress = \"[::1]:8443\"\ntls = true\n\
         [tls]\nmin_version = \"1.3\"\nstorage = \"state\"\n\
         [acme]\nemail = \"a@b.example\"\ndirectory = \"https://ca.example/d\"\neab = { kid = \"1\", hmac = \"${SECRET}\" }\n\
         [[site]]\nroot = \".\"\n\
         [[site]]\nroot = \".\"\ntls = \"auto\"\nhsts = \"1y\"\n\
         [[site]]\nroot = \".\"\ntls = \"self-signed\"\nhttp = \"serve\"\nhsts = false\n\
         [[site]]\nroot = \".\"\ntls = { cert = \"a.pem\", key = \"/k\" }\nhsts = { max_age = \"2y\", subdomains = true }\n\
         [[site]]\nroot = \".\"\nhttp = \"redirect\"\nhsts = 300",
    );
    assert_eq!((config.server.http_port, config.server.https_port), (Some(80), Some(443)));
    assert!(config.listen[0].tls);
    assert_eq!(
        (config.tls.min_version, &config.tls.protocols[..]),
        (TlsVersion::Tls13, &[Protocol::Http2, Protocol::Http11][..])
    );
    assert_eq!(config.tls.storage, Some(PathBuf::from("/etc/shearwater/state")));
    assert_eq!(config.acme.directory, Directory::Url("https://ca.example/d".to_owned()));
    assert!(config.acme.agree_to_terms);
    let eab = config.acme.eab.expect("a binding");
    assert_eq!((eab.kid.as_str(), eab.hmac.reveal()), ("1", "hunter2"));
    assert!(!format!("{eab:?}").contains("hunter2"), "{eab:?}");
    let pair =
        Pair { cert: PathBuf::from("/etc/shearwater/a.pem"), key: PathBuf::from("/k"), client_ca: None };
    let own = SiteTls::Own(pair);
    let years = |count: u64| Duration::from_secs(count * 365 * 86_400);
    for (site, (tls, redirects, hsts)) in config.sites.iter().zip([
        (SiteTls::Off, false, None),
        (SiteTls::Auto, true, Some((years(1), false))),
        (SiteTls::SelfSigned, false, None),
        (own, true, Some((years(2), true))),
        (SiteTls::Off, true, Some((Duration::from_secs(300), false))),
    ]) {
        let found = site.hsts.as_ref().map(|hsts| (hsts.max_age, hsts.subdomains));
        assert_eq!((&site.tls, site.redirects_clear(), found), (&tls, redirects, hsts));
    }
}
