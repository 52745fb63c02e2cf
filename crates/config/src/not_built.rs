//! Features of other servers that this one doesn't have yet, by the names of their keys, each with a way around.

/// A feature that is not built yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotBuilt {
    /// Words in the names of its keys in other programs.
    words: &'static [&'static str],
    /// One sentence.
    pub what: &'static str,
    /// A way around.
    pub help: &'static str,
}

const FEATURES: &[NotBuilt] = &[
    NotBuilt {
        words: &[
            "https",
            "tls",
            "ssl",
            "cert",
            "certs",
            "certificate",
            "certificates",
            "acme",
            "letsencrypt",
        ],
        what: "TLS is not built yet",
        help: "let a proxy (Caddy, nginx, HAProxy) speak it, and pass requests on to this server at 127.0.0.1 or a unix: socket",
    },
    NotBuilt {
        words: &["http2", "h2", "h2c", "http3", "h3", "quic", "alpn"],
        what: "HTTP/2 and HTTP/3 are not built yet",
        help: "let a proxy (Caddy, nginx, HAProxy) speak them, and pass requests on to this server by HTTP/1.1",
    },
    NotBuilt {
        words: &["gzip", "brotli", "zstd", "deflate", "compress", "compression"],
        what: "compression on the fly is not built yet",
        help: "`shearwater precompress FOLDER` makes compressed files, which are sent in place of the others",
    },
    NotBuilt {
        words: &["log", "logs", "accesslog"],
        what: "an access log is not built yet, and messages go to standard error",
        help: "redirect standard error to a file, let a proxy in front log requests, or print the counters by SIGUSR1",
    },
    NotBuilt {
        words: &["proxy", "upstream", "upstreams", "backend", "backends", "fastcgi", "uwsgi", "cgi", "php"],
        what: "passing requests on to another server is not built yet",
        help: "let a proxy (Caddy, nginx) send those paths there and the others here",
    },
    NotBuilt {
        words: &["auth", "authentication", "htpasswd", "password", "passwords", "login", "jwt", "users"],
        what: "access by password or token is not built yet",
        help: "let a proxy (Caddy, nginx) in front ask for it",
    },
    NotBuilt {
        words: &["metrics", "prometheus", "stats", "statsd", "opentelemetry", "otel", "admin"],
        what: "metrics are not built yet",
        help: "SIGUSR1 prints the counters; a path for health checks is a [[site.route]] with `respond = {}`",
    },
    NotBuilt {
        words: &["rate", "ratelimit", "throttle", "burst"],
        what: "a bound of requests per second is not built yet",
        help: "connections_per_address_max of [limits] bounds the connections of an address",
    },
    NotBuilt {
        words: &["allow", "deny", "allowlist", "blocklist", "whitelist", "blacklist"],
        what: "rules by address are not built yet",
        help: "use a firewall, or listen where only those can connect that may",
    },
    NotBuilt {
        words: &["rewrite", "rewrites"],
        what: "rewriting is not built yet",
        help: "a [[site.redirect]] sends clients to another path, and try_files of [[site]] looks for other files",
    },
    NotBuilt {
        words: &["user", "group", "chroot", "daemon", "daemonize", "pid", "pidfile"],
        what: "the program neither changes its user nor goes to the background",
        help: "let a service manager start it so (systemd: User=, Group=)",
    },
];

/// Returns the feature that is meant by the name of a key or flag, if it is not built yet.
#[must_use]
pub fn not_built(name: &str) -> Option<&'static NotBuilt> {
    let name = name.to_lowercase();
    let words = || name.split(['_', '-', '.', ' ']);
    let is_meant = |feature: &&NotBuilt| words().any(|word| feature.words.contains(&word));
    // Whatever stands behind it: `https_port` is `httpsport` to some.
    let is_tls = || words().any(|word| word.starts_with("https"));
    FEATURES.iter().find(is_meant).or_else(|| is_tls().then_some(&FEATURES[0]))
}

#[cfg(test)]
mod tests {
    use super::not_built;
    use crate::manual::sections;

    #[test]
    fn names_are_told_apart_by_their_words() {
        for (name, what) in [
            ("tls", "TLS"),
            ("https_port", "TLS"),
            ("HTTPS-Port", "TLS"),
            ("httpsPort", "TLS"),
            ("ssl_certificate_key", "TLS"),
            ("gzip", "compression"),
            ("gzip_types", "compression"),
            ("access_log", "an access log"),
            ("proxy_pass", "passing requests on"),
            ("reverse_proxy", "passing requests on"),
            ("auth", "access by password"),
            ("auth_basic_user_file", "access by password"),
            ("metrics", "metrics"),
            ("http2", "HTTP/2"),
            ("rate_limit", "a bound of requests"),
        ] {
            let found = not_built(name).unwrap_or_else(|| panic!("{name}"));
            assert!(found.what.starts_with(what), "{name}: {}", found.what);
        }
        for name in ["http_port", "port", "wokers", "hash", "certain", "author", "logging"] {
            assert_eq!(not_built(name), None, "{name}");
        }
    }

    /// A key that is there must not be said to be missing.
    #[test]
    fn no_key_of_ours_is_among_them() {
        for key in sections().iter().flat_map(|section| &section.keys) {
            assert_eq!(not_built(key.name), None, "{}", key.name);
        }
    }
}
