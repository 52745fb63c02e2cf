//! Unknown names: keys of other tables, of other programs, of earlier versions and of missing features, and misspelled ones.

use std::borrow::Cow;

use toml::Spanned;

use crate::context::{Context, Value};
use crate::diagnostics::shown;
use crate::limits::NAME_CHARS_MAX;

/// Reports an unknown key with the key that is probably meant.
pub(crate) fn report(
    key: &Spanned<Cow<'_, str>>,
    value: &Value<'_>,
    known: &[&'static str],
    context: &mut Context<'_>,
) {
    let name = key.get_ref().as_ref();
    let shown = shown(name);
    // First, because `listen` is also a key of [admin].
    let home = other_name(name).map(|ours| format!("the key is called {ours}"));
    let home = home.or_else(|| Some(format!("it is a key of {}", (context.table_of)(name)?)));
    let renamed = RENAMED.iter().find(|(old, new, _)| *old == name && known.contains(new));
    let (message, help) = if let Some((old, new, unit)) = renamed {
        let help = match value.get_ref().as_integer().filter(|number| !number.as_str().starts_with('-')) {
            Some(number) => format!("write `{new} = \"{number}{unit}\"`"),
            None => format!("write `{new}` with a unit, such as `{new} = \"10s\"`"),
        };
        (format!("`{old}` was renamed to `{new}`"), help)
    } else if let (Some(feature), None) = (unsupported(name), &home) {
        (format!("unknown key `{shown}`: {}", feature.what), feature.help.to_owned())
    } else {
        let help = match (nearest(name, known.iter().copied()), home) {
            (Some(nearest), _) => format!("a key with a similar name exists: `{nearest}`"),
            (None, Some(home)) => home,
            (None, None) => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("known keys: {}", known.join(", "))
            }
        };
        (format!("unknown key `{shown}`"), help)
    };
    context.within(&shown, |context| context.error_with_help(&key.span(), message, help));
}

/// Keys that got another name when durations got units, with the unit of the old key's integers.
const RENAMED: [(&str, &str, &str); 7] = [
    ("drain_s", "drain_timeout", "s"),
    ("head_ms", "head", "ms"),
    ("body_ms", "body", "ms"),
    ("body_grace_ms", "body_grace", "ms"),
    ("write_ms", "write", "ms"),
    ("linger_ms", "linger", "ms"),
    ("drain_idle_ms", "drain_idle", "ms"),
];

/// Names of keys in other programs and in the crate's API.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("alias", "`root` with `strip_prefix = true`"),
    ("connections_max", "`max_connections` of [performance]"),
    ("first_head_ms", "`connection_timeout` of [performance]"),
    ("idle_ms", "`keep_alive_timeout` of [performance]"),
    ("receive_bytes", "`request_buffer_size` of [performance]"),
    ("output_bytes_max", "`response_buffer_size` of [performance]"),
    ("trusted_gateway", "`trusted_proxies` of [server]"),
    ("set_real_ip_from", "`trusted_proxies` of [server]"),
    ("real_ip_header", "`client_header` of [server]"),
    ("accept_proxy", "`proxy_protocol` of [server]"),
    ("port", "`http_port` of [server], or `address` of [[listen]]"),
    ("listen", "[[listen]] in double brackets"),
    ("host", "`hosts` of [[site]]"),
    ("server_name", "`hosts` of [[site]]"),
    ("threads", "`workers` of [server]"),
    ("log_level", "`level` of [logging]"),
    ("access_log", "`access` of [log]"),
    ("accesslog", "`access` of [log]"),
    ("log_format", "`format` of [log]"),
    ("metrics", "`listen` of [admin]"),
    ("prometheus", "`listen` of [admin]"),
    ("stub_status", "`listen` of [admin]"),
    ("gzip_static", "`precompressed` of [[site]]"),
    ("brotli_static", "`precompressed` of [[site]]"),
    ("gzip", "`compress` of [[site]]"),
    ("brotli", "`compress` of [[site]]"),
    ("zstd", "`compress` of [[site]]"),
    ("encode", "`compress` of [[site]]"),
    ("compression", "`compress` of [[site]]"),
    ("gzip_types", "`compress = true` of [[site]], for all types that get shorter"),
    ("gzip_comp_level", "`compress = true` of [[site]]; the level is fixed"),
    ("autoindex", "`listing` of [[site]]"),
    ("directory_listing", "`listing` of [[site]]"),
    ("document_root", "`root` of [[site]]"),
    ("location", "[[site.route]] in double brackets"),
    ("client_max_body_size", "`body_bytes_max` of [limits]"),
    ("tls", "`tls` of [[site]], and of [[listen]]"),
    ("cert", "`tls = { cert = …, key = … }` of [[site]]"),
    ("key", "`tls = { cert = …, key = … }` of [[site]]"),
    ("ca", "`client_ca` beside `cert` and `key`, or `ca` of [acme]"),
    ("ssl_certificate", "`tls = { cert = …, key = … }` of [[site]]"),
    ("ssl_certificate_key", "`tls = { cert = …, key = … }` of [[site]]"),
    ("ssl_client_certificate", "`tls = { …, client_ca = … }` of [[site]]"),
    ("certificate", "`tls = { cert = …, key = … }` of [[site]]"),
    ("certificates", "`tls = { cert = …, key = … }` of [[site]]"),
    ("tls_cert", "`tls = { cert = …, key = … }` of [[site]]"),
    ("tls_key", "`tls = { cert = …, key = … }` of [[site]]"),
    ("ssl", "`tls` of [[site]], and `https_port` of [server]"),
    ("https", "`tls` of [[site]], and `https_port` of [server]"),
    ("auto_https", "`tls = \"auto\"` of [[site]]"),
    ("autocert", "`tls = \"auto\"` of [[site]]"),
    ("letsencrypt", "`tls = \"auto\"` of [[site]]"),
    ("certbot", "`tls = \"auto\"` of [[site]]"),
    ("ssl_protocols", "`min_version` of [tls]"),
    ("tls_min_version", "`min_version` of [tls]"),
    ("alpn", "`protocols` of [tls]"),
    ("http2", "`protocols` of [tls], which has \"h2\" by default"),
    ("h2", "`protocols` of [tls], which has \"h2\" by default"),
    ("h2c", "`http2_prior_knowledge` of [server]"),
    ("http2_max_concurrent_streams", "`streams_max` of [limits]"),
    ("max_concurrent_streams", "`streams_max` of [limits]"),
    ("ssl_session_ticket_key", "`ticket_keys` of [tls]"),
    ("acme_email", "`email` of [acme]"),
    ("acme_ca", "`directory` of [acme]"),
    ("force_https", "`http = \"redirect\"` of [[site]]"),
    ("force_ssl", "`http = \"redirect\"` of [[site]]"),
    ("ssl_redirect", "`http = \"redirect\"` of [[site]]"),
    ("strict_transport_security", "`hsts` of [[site]]"),
    ("drain_ms", "`drain_timeout` of [server]"),
    ("auth", "`basic_auth` of [[site]]"),
    ("auth_basic", "`basic_auth` of [[site]]"),
    ("auth_basic_user_file", "`basic_auth` of [[site]]"),
    ("basicauth", "`basic_auth` of [[site]]"),
    ("htpasswd", "`basic_auth` of [[site]]"),
    ("users", "`basic_auth` of [[site]]"),
    ("password", "`basic_auth` of [[site]]"),
    ("limit_req", "`rate_limit` of [[site]]"),
    ("ratelimit", "`rate_limit` of [[site]]"),
    ("throttle", "`rate_limit` of [[site]]"),
    ("allowlist", "`allow` of [[site]]"),
    ("whitelist", "`allow` of [[site]]"),
    ("blocklist", "`deny` of [[site]]"),
    ("blacklist", "`deny` of [[site]]"),
    ("content_disposition", "`download` of [[site.route]]"),
    ("attachment", "`download` of [[site.route]]"),
];

/// Returns our name for a key of another program.
pub(crate) fn other_name(name: &str) -> Option<&'static str> {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|&(_, ours)| ours)
}

/// Returns the known name most similar to `given`, if at most a third of it differs.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let plain = given.to_lowercase().replace('-', "_");
    let distance = |name: &str| strsim::damerau_levenshtein(&plain, name);
    let is_near = |name: &&str| distance(name) <= (name.len() / 3).max(1);
    known.into_iter().filter(is_near).min_by_key(|name| distance(name))
}

/// Joins names as in a sentence: `a, b or c`.
pub(crate) fn or_list<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}

/// A missing feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    /// Words in the names of its keys in other programs, separated by spaces.
    words: &'static str,
    /// The feature and that it is missing.
    pub what: &'static str,
    /// An alternative.
    pub help: &'static str,
}

const FEATURES: &[Unsupported] = &[
    Unsupported {
        words: "upload uploads webdav dav mkdir delete overwrite",
        what: "uploads and other changes of files are not supported",
        help: "files are only read: copy them into the folder by other means, such as rsync",
    },
    Unsupported {
        words: "templates template ssi markdown",
        what: "pages are not made from templates",
        help: "make them ahead of time with a site generator",
    },
    Unsupported {
        words: "http3 h3 quic",
        what: "HTTP/3 is not supported yet",
        help: "sites with TLS have HTTP/2: see `protocols` of [tls]; for HTTP/3 use a proxy (Caddy, nginx, HAProxy) in front of this server",
    },
    Unsupported {
        words: "proxy upstream upstreams backend backends fastcgi uwsgi cgi php",
        what: "forwarding requests to another server is not supported yet",
        help: "let a proxy (Caddy, nginx) route those paths to the other server and the rest to this one",
    },
    Unsupported {
        words: "jwt oauth oauth2 oidc ldap login auth_request forward_auth",
        what: "this kind of authentication is not supported yet",
        help: "`basic_auth` of [[site]] names an htpasswd file; for others, authenticate in a proxy (Caddy, nginx) in front of this server",
    },
    Unsupported {
        words: "statsd graphite opentelemetry otel otlp",
        what: "sending metrics is not supported yet",
        help: "`listen` of [admin] serves them to Prometheus and to collectors that scrape",
    },
    Unsupported {
        words: "rewrite rewrites",
        what: "rewriting paths is not supported yet",
        help: "a [[site.redirect]] sends clients to another path; `try_files` of [[site]] looks up other files",
    },
    Unsupported {
        words: "user group chroot daemon daemonize pid pidfile",
        what: "the program doesn't change its user or run in the background",
        help: "use a service manager (systemd: User=, Group=)",
    },
];

/// A key of ours with a word of a missing feature.
const OURS: &str = "proxy_protocol";

/// Returns the missing feature that the name of a key or flag refers to.
#[must_use]
pub fn unsupported(name: &str) -> Option<&'static Unsupported> {
    let name = name.to_lowercase();
    let words = || name.split(['_', '-', '.', ' ']);
    let is_meant = |feature: &&Unsupported| words().any(|word| feature.words.split(' ').any(|of| of == word));
    if name == OURS {
        return None;
    }
    FEATURES.iter().find(is_meant)
}

#[cfg(test)]
mod tests {
    use super::{nearest, or_list, unsupported};
    use crate::limits::NAME_CHARS_MAX;

    #[test]
    fn suggests_similar_names_only() {
        let known = ["workers", "http_port", "backlog", "pin", "driver"];
        for (given, meant) in [
            ("wrokers", Some("workers")),
            ("Workers", Some("workers")),
            ("http-port", Some("http_port")),
            ("httpport", Some("http_port")),
            ("pins", Some("pin")),
            ("x", None),
            ("nothing_alike", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
        assert_eq!(nearest(&"workers".repeat(NAME_CHARS_MAX), known), None);
    }

    #[test]
    fn joins_names_with_or() {
        assert_eq!(or_list(&["a", "b", "c"]), "a, b or c");
        assert_eq!((or_list(&["a"]), or_list::<&str>(&[])), ("a".to_owned(), String::new()));
    }

    #[test]
    fn recognises_features_by_words_of_the_name() {
        for (name, what) in [
            ("allow-upload", "uploads"),
            ("proxy_pass", "forwarding requests"),
            ("reverse_proxy", "forwarding requests"),
            ("jwt_secret", "this kind of authentication"),
            ("otel_endpoint", "sending metrics"),
            ("http3_hq", "HTTP/3"),
        ] {
            let found = unsupported(name).unwrap_or_else(|| panic!("{name}"));
            assert!(found.what.starts_with(what), "{name}: {}", found.what);
        }
        for name in [
            "http2",
            "http_port",
            "https_port",
            "ssl_certificate_key",
            "port",
            "wokers",
            "hash",
            "certain",
            "author",
            "logging",
        ] {
            assert_eq!(unsupported(name), None, "{name}");
        }
    }
}
