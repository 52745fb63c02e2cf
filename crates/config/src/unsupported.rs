//! Features of other servers that are missing here, by words in their key names, each with an alternative.

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
        words: "https tls ssl cert certs certificate certificates acme letsencrypt",
        what: "TLS is not supported yet",
        help: "terminate TLS in a proxy (Caddy, nginx, HAProxy) and forward requests to this server at 127.0.0.1 or a unix: socket",
    },
    Unsupported {
        words: "http2 h2 h2c http3 h3 quic alpn",
        what: "HTTP/2 and HTTP/3 are not supported yet",
        help: "use a proxy (Caddy, nginx, HAProxy) that forwards requests to this server by HTTP/1.1",
    },
    Unsupported {
        words: "gzip brotli zstd deflate compress compression",
        what: "compression on the fly is not supported yet",
        help: "`shearwater precompress FOLDER` makes compressed files, which are sent instead",
    },
    Unsupported {
        words: "log logs accesslog",
        what: "an access log is not supported yet; messages go to standard error",
        help: "redirect standard error to a file, log requests in a proxy, or print counters with SIGUSR1",
    },
    Unsupported {
        words: "proxy upstream upstreams backend backends fastcgi uwsgi cgi php",
        what: "forwarding requests to another server is not supported yet",
        help: "let a proxy (Caddy, nginx) route those paths to the other server and the rest to this one",
    },
    Unsupported {
        words: "auth authentication htpasswd password passwords login jwt users",
        what: "authentication is not supported yet",
        help: "authenticate in a proxy (Caddy, nginx) in front of this server",
    },
    Unsupported {
        words: "metrics prometheus stats statsd opentelemetry otel admin",
        what: "metrics are not supported yet",
        help: "SIGUSR1 prints counters; a health check is a [[site.route]] with `respond = {}`",
    },
    Unsupported {
        words: "rate ratelimit throttle burst",
        what: "rate limits are not supported yet",
        help: "`connections_per_address_max` of [limits] limits the connections of an address",
    },
    Unsupported {
        words: "allow deny allowlist blocklist whitelist blacklist",
        what: "access rules by address are not supported yet",
        help: "use a firewall, or listen on an address that only permitted clients can reach",
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

/// Returns the missing feature that the name of a key or flag refers to.
#[must_use]
pub fn unsupported(name: &str) -> Option<&'static Unsupported> {
    let name = name.to_lowercase();
    let words = || name.split(['_', '-', '.', ' ']);
    let is_meant = |feature: &&Unsupported| words().any(|word| feature.words.split(' ').any(|of| of == word));
    // TLS also by prefix: `httpsPort` has no separator.
    let is_tls = || words().any(|word| word.starts_with("https"));
    FEATURES.iter().find(is_meant).or_else(|| is_tls().then_some(&FEATURES[0]))
}

#[cfg(test)]
mod tests {
    use super::unsupported;
    use crate::reference::sections;

    #[test]
    fn recognises_features_by_words_of_the_name() {
        for (name, what) in [
            ("tls", "TLS"),
            ("https_port", "TLS"),
            ("HTTPS-Port", "TLS"),
            ("httpsPort", "TLS"),
            ("ssl_certificate_key", "TLS"),
            ("gzip", "compression"),
            ("gzip_types", "compression"),
            ("access_log", "an access log"),
            ("proxy_pass", "forwarding requests"),
            ("reverse_proxy", "forwarding requests"),
            ("auth", "authentication"),
            ("auth_basic_user_file", "authentication"),
            ("metrics", "metrics"),
            ("http2", "HTTP/2"),
            ("rate_limit", "rate limits"),
        ] {
            let found = unsupported(name).unwrap_or_else(|| panic!("{name}"));
            assert!(found.what.starts_with(what), "{name}: {}", found.what);
        }
        for name in ["http_port", "port", "wokers", "hash", "certain", "author", "logging"] {
            assert_eq!(unsupported(name), None, "{name}");
        }
    }

    #[test]
    fn recognises_no_key_of_ours() {
        for key in sections().iter().flat_map(|section| &section.keys) {
            assert_eq!(unsupported(key.name), None, "{}", key.name);
        }
    }
}
