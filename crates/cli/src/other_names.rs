//! Flags and commands of other programs: nginx, Caddy, serve, http-server, miniserve, dufs and Python's http.server.

/// Commands of other programs for serving.
pub(crate) const SERVING: [&str; 9] =
    ["start", "run", "server", "http", "http.server", "file-server", "files", "dev", "preview"];

const STOP: &str = "Ctrl-C or SIGTERM stops a server: `kill $(cat PIDFILE)` if it was started with `--pid-file PIDFILE`, `systemctl stop shearwater` for the service";

const RESTART: &str = "`shearwater reload PIDFILE` reads the configuration again, `shearwater upgrade PIDFILE` starts the program again; neither loses a connection. `systemctl restart shearwater` restarts the service";

const HTTPS: &str = "`--domain NAME` gets a certificate by itself, `--cert FILE --key FILE` names your own, `--self-signed` is for trying";

const NO_DAEMON: &str = "the program stays in the foreground: use a service manager, such as systemd, or `nohup shearwater FOLDER &`";

/// Commands of other programs, separated by spaces, with the alternative.
const COMMANDS: &[(&str, &str)] = &[
    ("version", "`shearwater --version`"),
    ("stop quit exit shutdown kill end halt", STOP),
    ("restart respawn", RESTART),
    (
        "status ps stats info monitor",
        "`shearwater top` shows a server that was started with `--admin 127.0.0.1:9180`",
    ),
    ("test verify lint configtest", "`shearwater check FILE`"),
    ("ping healthcheck", "`shearwater health URL`"),
    (
        "compress gzip brotli zstd",
        "`shearwater precompress FOLDER` makes NAME.br, NAME.zst and NAME.gz for its files; `shearwater FOLDER --compress` compresses on the fly",
    ),
    ("reverse-proxy proxy", "forwarding requests to another server is not supported yet"),
    (
        "adapt convert",
        "docs/tasks/from-nginx.md and docs/tasks/from-caddy.md have our key for each directive",
    ),
    ("new create setup scaffold", "`shearwater init` writes a site.toml for a folder"),
    ("manual manpage", "`shearwater man`"),
    (
        "cert certs certificate renew",
        "`shearwater certificates` lists those that a running server gets by itself",
    ),
    ("reopen rotate logrotate", "SIGUSR1 reopens the access log: `kill -USR1 $(cat PIDFILE)`"),
    (
        "log logs",
        "messages go to standard error, of the service to `journalctl -u shearwater`; `--log FILE` writes an access log",
    ),
    ("daemon background", NO_DAEMON),
    ("install enable", "`systemctl enable --now shearwater`, with the package of docs/tasks/systemd.md"),
    ("default defaults", "`shearwater config default`"),
    ("list ls browse", "`shearwater FOLDER --listing` lists folders that have no index"),
];

/// Flags of other programs for serving, without their dashes and separated by spaces, with the alternative.
const FLAGS: &[(&str, &str)] = &[
    (
        "root dir directory folder path document-root webroot d",
        "name the folder without a flag: `shearwater FOLDER`",
    ),
    (
        "list browse directory-listing autoindex dir-listing",
        "`shearwater FOLDER --listing` lists folders that have no index",
    ),
    (
        "host interface interfaces ip a b i",
        "give address and port together: `shearwater --listen 0.0.0.0:8080`",
    ),
    (
        "single fallback page-fallback history-fallback render-spa rewrite-all",
        "`shearwater FOLDER --spa` serves /index.html for the paths of an app",
    ),
    ("s", "`--spa` is for single-page apps; SIGTERM stops a server, `shearwater reload PIDFILE` reloads one"),
    (
        "debug loglevel trace",
        "`--verbose`, or `level` of [logging] in a configuration file; `--log FILE` writes an access log",
    ),
    ("https tls ssl letsencrypt acme certbot auto-https certs autocert secure S", HTTPS),
    (
        "certificate ssl-cert tls-cert ssl-key tls-key private-key ssl-certificate ssl-certificate-key cert-file key-file http2-tls-cert http2-tls-key C K",
        "`--cert FILE --key FILE`",
    ),
    (
        "hosts hostname server-name vhost",
        "`--domain NAME` serves HTTPS for a name; in a configuration file: `hosts` of [[site]]",
    ),
    ("completion completions print-completions", "`shearwater completions SHELL`"),
    ("man manpage print-manpage", "`shearwater man`"),
    ("metrics prometheus status stats", "`--admin 127.0.0.1:9180` serves metrics and a status page"),
    ("health healthcheck", "`--admin 127.0.0.1:9180` has /health; `shearwater health URL` requests a URL"),
    ("pidfile pid", "`--pid-file FILE`"),
    (
        "log-file logfile access-logs log-path",
        "`--log FILE` writes an access log; messages go to standard error",
    ),
    ("grace graceful-timeout shutdown-timeout grace-period", "`--drain DURATION`, such as `--drain 10s`"),
    ("jobs cores cpus processes worker-processes threads-multiplier", "`--workers N`"),
    ("daemon daemonize background detach fork", NO_DAEMON),
    ("t test validate configtest dry-run", "`shearwater check FILE` checks a configuration file"),
    (
        "live reload livereload hot",
        "changed files are served at once; `--watch` reloads when the configuration changes",
    ),
    ("conf configuration config-file adapter", "`--config FILE`, or `shearwater FILE`"),
    ("pretty-urls cleanurls ext extension html", "in a configuration file: `clean_urls = true` of [[site]]"),
    (
        "cache max-age no-cache cache-control-headers expires",
        "`--cache-control VALUE`, such as `--cache-control no-cache`",
    ),
    ("headers add-header H", "`--header 'NAME: VALUE'`"),
    ("security-headers", "in a configuration file: `security_headers` and `hsts` of [[site]]"),
    (
        "auth basic-auth basicauth auth-file htpasswd user users username password",
        "in a configuration file: `basic_auth` of [[site]]",
    ),
    ("rate-limit ratelimit throttle limit-req", "in a configuration file: `rate_limit` of [[site]]"),
    ("allow allow-ip allowlist whitelist", "in a configuration file: `allow` of [[site]]"),
    ("deny deny-ip blocklist blacklist", "in a configuration file: `deny` of [[site]]"),
    ("download content-disposition attachment", "in a configuration file: `download` of [[site.route]]"),
    ("enable-cors cors-allow-origins", "`--cors`"),
    (
        "page404 page-404 page50x 404 not-found error-document error-pages errors",
        "`--error-page 404=/404.html`",
    ),
    (
        "follow-symlinks no-symlinks allow-symlink symlink links disable-symlinks",
        "`--symlinks follow`, `--symlinks never`, or without it those that stay in the folder",
    ),
    (
        "dotfiles no-dotfiles allow-hidden ignore-hidden-files",
        "in a configuration file: `hidden` of [[site]]; names that start with a dot are not served by default",
    ),
    (
        "route-prefix path-prefix prefix base base-path",
        "in a configuration file: [[site.route]] with `path = \"/PREFIX/*\"` and `strip_prefix = true`",
    ),
    ("mimetypes mime-types types", "in a configuration file: `mime` of [[site]]"),
    (
        "redirect redirects to from",
        "in a configuration file: [[site.redirect]]; forwarding to another server is not supported yet",
    ),
    ("max-connections connections", "in a configuration file: `max_connections` of [performance]"),
    (
        "timeout keepalive keep-alive-timeout",
        "in a configuration file: `keep_alive_timeout` of [performance], and [timeouts]",
    ),
    ("gzip brotli zstd deflate encode compression compress-response g", "`--compress`"),
    (
        "compression-static precompressed",
        "leave it out: NAME.br, NAME.zst and NAME.gz beside a file are sent to clients that accept them",
    ),
    (
        "no-compression no-compress",
        "leave it out: without `--compress` nothing is; `precompressed = []` of [[site]] ignores NAME.gz beside files",
    ),
    (
        "no-etag no-last-modified",
        "leave it out: both headers are always sent, and an unchanged file costs a 304",
    ),
    ("no-log no-request-logging no-logs no-access-log", "without `--log` there is no access log"),
    ("silent no-banner", "`--quiet`"),
    ("stop quit signal", STOP),
    ("no-clipboard no-port-switching", "leave it out: that is how the program is"),
    ("o browser launch", "`--open`"),
    ("qrcode qr", "showing a QR code isn't supported: the start report has the URL"),
    (
        "zip tar enable-zip enable-tar enable-tar-gz allow-archive",
        "archives of folders aren't supported: clients can mirror a listing, such as with `wget -r`",
    ),
    ("render-index index-file index-page", "in a configuration file: `index` of [[site]]"),
];

/// Returns the alternative for a command of another program.
pub(crate) fn of_command(given: &str) -> Option<&'static str> {
    find(COMMANDS, given)
}

/// Returns the alternative for a flag of another program, which is without its dashes.
pub(crate) fn of_flag(given: &str) -> Option<&'static str> {
    find(FLAGS, given)
}

fn find(table: &[(&str, &'static str)], given: &str) -> Option<&'static str> {
    let is_among = |names: &str| names.split(' ').any(|name| name == given);
    table.iter().find(|(names, _)| is_among(names)).map(|&(_, help)| help)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use shearwater_config::key_named;

    use super::{COMMANDS, FLAGS};

    #[test]
    fn names_each_word_once() {
        for table in [COMMANDS, FLAGS] {
            let mut known = HashSet::new();
            let words = table.iter().flat_map(|(names, _)| names.split(' '));
            let twice: Vec<_> = words.filter(|word| !known.insert(*word)).collect();
            assert_eq!(twice, Vec::<&str>::new());
        }
    }

    #[test]
    fn names_keys_that_exist() {
        let quoted = FLAGS.iter().filter_map(|(_, help)| help.split_once("of [").map(|(before, _)| before));
        let keys: Vec<_> = quoted.filter_map(|text| text.rsplit('`').nth(1)?.split(' ').next()).collect();
        assert!(keys.len() > 8, "{keys:?}");
        for key in keys {
            assert!(key_named(key).is_some(), "{key}");
        }
    }
}
