//! Checks of the keys on TLS that need each other, the file system or a certificate.

use std::fs::{File, Metadata, metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use shearwater_acme::limits::NAMES_PER_CERTIFICATE_MAX;
use shearwater_acme::unsuitable;
use shearwater_config::{
    self as config, ClientHeader, Config, Directory, Finding, Findings, Pair, ProxyProtocol, SiteTls,
};

use crate::flag_site::FlagSite;
use crate::tls::{BadPair, ReadPair, host_name};

/// Checks the keys of a configuration. `has_tls` tells whether a flag gives an address with TLS, `now` is in seconds since
/// 1970, `read_pair` reads pairs if it can.
pub(crate) fn check(config: &Config, has_tls: bool, now: u64, read_pair: Option<ReadPair>) -> Findings {
    let mut check = Check { config, now, read_pair, findings: Findings::default() };
    check.addresses(has_tls);
    for (index, site) in config.sites.iter().enumerate() {
        let of = format!("site[{index}]");
        match &site.tls {
            SiteTls::Auto => check.names(&of, site),
            SiteTls::Own(pair) => check.pair(&of, site, pair),
            SiteTls::Off | SiteTls::SelfSigned => {}
        }
    }
    for (key, path) in [("tls.ticket_keys", &config.tls.ticket_keys), ("acme.ca", &config.acme.ca)] {
        path.iter().for_each(|path| check.file(key, path, key == "tls.ticket_keys"));
    }
    check.findings
}

struct Check<'a> {
    config: &'a Config,
    now: u64,
    read_pair: Option<ReadPair>,
    findings: Findings,
}

impl Check<'_> {
    fn error(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help) = (message.into(), Some(help.into()));
        self.findings.errors.push(Finding { key: key.to_owned(), message, help });
    }

    fn warning(&mut self, key: &str, message: impl Into<String>, help: &str) {
        let help = Some(help.to_owned()).filter(|help| !help.is_empty());
        self.findings.warnings.push(Finding { key: key.to_owned(), message: message.into(), help });
    }

    /// Checks that addresses with TLS come with certificates, and the other way round.
    ///
    /// A site that redirects requests in clear, or has HSTS, needs TLS here or in a trusted proxy.
    fn addresses(&mut self, has_flag: bool) {
        let Config { server, listen, sites, .. } = self.config;
        let own = listen.iter().position(|listen| listen.tls);
        let has_tls = has_flag || server.https_port.is_some() || own.is_some();
        let is_off = |site: &config::Site| site.tls == SiteTls::Off;
        if !sites.is_empty() && sites.iter().all(is_off) && has_tls {
            let key = own.map_or("server.https_port".to_owned(), |index| format!("listen[{index}].tls"));
            let help = "add `tls = \"auto\"`, `\"self-signed\"`, or a pair of your own to a [[site]]";
            self.error(&key, "no site has a certificate", help);
        }
        let names_client =
            server.client_header != ClientHeader::None || server.proxy_protocol == ProxyProtocol::Required;
        let can_be_secure = has_tls || (names_client && !server.trusted_proxies.is_empty());
        for (index, site) in sites.iter().enumerate() {
            let of = |key: &str| format!("site[{index}].{key}");
            if !is_off(site) && !has_tls {
                let help = "add `https_port = 443` to [server], or `tls = true` to a [[listen]]";
                self.error(&of("tls"), "no address has TLS", help);
            }
            if can_be_secure || !is_off(site) {
                continue;
            }
            let help = "add `tls`; if a proxy ends TLS, name it in `trusted_proxies` of [server], and the header that it writes in `client_header`";
            if site.redirects_clear() {
                self.error(
                    &of("http"),
                    "every request would be redirected again and again: none comes by TLS",
                    help,
                );
            }
            if site.hsts.is_some() {
                self.error(&of("hsts"), "the header would never be sent: no request comes by TLS", help);
            }
        }
    }

    /// Checks the names of a certificate that the server is to get by itself.
    fn names(&mut self, of: &str, site: &config::Site) {
        let key = format!("{of}.tls");
        if site.hosts.is_empty() {
            self.error(
                &key,
                "`tls = \"auto\"` without `hosts`",
                "add the names that the certificate is for: hosts = [\"example.org\"]",
            );
        }
        if site.hosts.len() > NAMES_PER_CERTIFICATE_MAX {
            self.error(
                &key,
                format!("more than {NAMES_PER_CERTIFICATE_MAX} names for one certificate"),
                "divide the site, or use a pair of your own",
            );
        }
        let is_public = !matches!(self.config.acme.directory, Directory::Url(_));
        for (index, host) in site.hosts.iter().enumerate() {
            if let Some((message, help)) = unsuitable(&host_name(host), is_public) {
                self.error(&format!("{of}.hosts[{index}]"), message, help);
            }
        }
    }

    /// Checks a pair of the operator's.
    fn pair(&mut self, of: &str, site: &config::Site, Pair { cert, key, client_ca }: &Pair) {
        let errors = self.findings.errors.len();
        self.file(&format!("{of}.tls.cert"), cert, false);
        self.file(&format!("{of}.tls.key"), key, true);
        if let Some(client_ca) = client_ca {
            self.file(&format!("{of}.tls.client_ca"), client_ca, false);
            if !site.redirects_clear() {
                let help = "leave `http` out: requests in clear are redirected, where clients show their certificate";
                self.error(
                    &format!("{of}.http"),
                    "requests in clear come without the client's certificate",
                    help,
                );
            }
        }
        let Some(read_pair) = self.read_pair.filter(|_| errors == self.findings.errors.len()) else { return };
        match read_pair(cert, key) {
            Ok(facts) => {
                for (host, message) in facts.doubts(&site.hosts, self.now) {
                    let key = host.map_or(format!("{of}.tls.cert"), |index| format!("{of}.hosts[{index}]"));
                    self.warning(&key, message, "");
                }
            }
            Err(BadPair { message, help }) => self.error(&format!("{of}.tls.cert"), message, help),
        }
    }

    /// Checks that a file can be read, and a secret one only by those who should.
    fn file(&mut self, key: &str, path: &Path, is_secret: bool) {
        match readable(path) {
            Err(message) => self.error(key, message, "name a file that the server's user can read"),
            Ok(metadata) if is_secret && metadata.mode() & READ_BY_ALL != 0 => {
                let help = "chmod 600 or 640, owned by the server's user or group";
                self.warning(key, "everyone on this machine can read this key", help);
            }
            Ok(_) => {}
        }
    }
}

const READ_BY_ALL: u32 = 0o004;

/// Returns warnings about the pair of flags.
pub(crate) fn flag_warnings(site: &FlagSite) -> Option<String> {
    let SiteTls::Own(Pair { key, .. }) = &site.tls else { return None };
    let is_open = metadata(key).is_ok_and(|metadata| metadata.mode() & READ_BY_ALL != 0);
    is_open.then(|| format!("{}: everyone on this machine can read this key", key.display()))
}

/// Returns the metadata of a file that can be read, or a message.
pub(crate) fn readable(path: &Path) -> Result<Metadata, String> {
    let shown = path.display();
    let open = || {
        let metadata = metadata(path)?;
        // Opening a pipe would wait for its writer.
        if metadata.is_file() {
            File::open(path)?;
        }
        Ok::<_, io::Error>(metadata)
    };
    match open() {
        Ok(metadata) if metadata.is_file() => Ok(metadata),
        Ok(metadata) if metadata.is_dir() => Err(format!("{shown} is a folder")),
        Ok(_) => Err(format!("{shown} is a pipe, a socket or a device")),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => format!("no such file: {shown}"),
            io::ErrorKind::PermissionDenied => format!("permission denied: {shown}"),
            _ => format!("can't open {shown}: {error}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use shearwater_config::{Config, Findings};
    use testkit::TestFolder;

    use shearwater_acme::limits::NAMES_PER_CERTIFICATE_MAX;

    use super::check;
    use crate::tls::{BadPair, PairFacts};

    const DAY: u64 = 86_400;

    /// Reads pairs by the content of the certificate's file.
    fn read_pair(cert: &Path, key: &Path) -> Result<PairFacts, BadPair> {
        match std::fs::read_to_string(cert).expect("a file").as_str() {
            "good" => {
                Ok(PairFacts { names: vec!["a.example".to_owned()], not_before: 0, not_after: 100 * DAY })
            }
            _ => Err(BadPair {
                message: format!("{} doesn't fit {}", key.display(), cert.display()),
                help: String::new(),
            }),
        }
    }

    /// Returns errors, or warnings, as lines of key and message.
    fn found(folder: &TestFolder, text: &str, now: u64) -> Vec<String> {
        let file = folder.at("site.toml");
        let mut findings = Findings::default();
        let checked = |config: &Config| {
            findings = check(config, false, now, Some(read_pair));
            Findings::default()
        };
        Config::parse(&file, text, |_| None, checked).unwrap_or_else(|errors| panic!("{errors}"));
        let all = findings.errors.iter().chain(&findings.warnings);
        let folder = format!("{}/", folder.path().display());
        all.map(|finding| format!("{}: {}", finding.key, finding.message).replace(&folder, "")).collect()
    }

    #[test]
    fn reads_pairs_and_doubts_them() {
        let folder = TestFolder::new();
        folder.file("good.pem", "good").file("bad.pem", "bad").file("k.pem", "");
        let of = |cert: &str| {
            format!(
                "[server]\nhttps_port = 443\n[[site]]\nroot = \".\"\nhosts = [\"a.example\", \"b.example\"]\n\
                 tls = {{ cert = \"{cert}\", key = \"k.pem\" }}"
            )
        };
        let other = "site[0].hosts[1]: certificate isn't for this name: it is for a.example";
        let readable = "site[0].tls.key: everyone on this machine can read this key";
        assert_eq!(found(&folder, &of("good.pem"), DAY), [readable, other]);
        let expired = "site[0].tls.cert: certificate has expired on 1970-04-11";
        assert_eq!(found(&folder, &of("good.pem"), 101 * DAY), [readable, expired, other]);
        assert_eq!(
            found(&folder, &of("bad.pem"), DAY),
            ["site[0].tls.cert: k.pem doesn't fit bad.pem", readable]
        );
        // A missing file is reported once.
        assert_eq!(
            found(&folder, &of("none.pem"), DAY),
            ["site[0].tls.cert: no such file: none.pem", readable]
        );
    }

    #[test]
    fn limits_the_names_of_a_certificate() {
        let folder = TestFolder::new();
        let of = |count: usize| {
            let hosts: Vec<String> = (0..count).map(|number| format!("\"a{number}.example.org\"")).collect();
            let hosts = hosts.join(", ");
            format!("[server]\nhttps_port = 443\n[[site]]\nroot = \".\"\ntls = \"auto\"\nhosts = [{hosts}]")
        };
        assert_eq!(found(&folder, &of(NAMES_PER_CERTIFICATE_MAX), DAY), [""; 0]);
        assert_eq!(
            found(&folder, &of(NAMES_PER_CERTIFICATE_MAX + 1), DAY),
            ["site[0].tls: more than 100 names for one certificate"]
        );
    }
}
