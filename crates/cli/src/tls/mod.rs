//! TLS as it is planned: which addresses have it, which site has which certificate, and the flags that ask for it.
//!
//! Plain data, checked and described; [`RunningTls`] serves it.

pub(crate) mod certificates;
pub(crate) mod check;
mod pair;
mod serve;

use std::env::{split_paths, var_os};
use std::path::PathBuf;

use shearwater::ListenAddress;
use shearwater_acme::{ChallengeKind, unsuitable};
use shearwater_config::{self as config, Config, Directory, Pair, SiteTls};

use crate::args::Serve;
use crate::failure::Failure;
use crate::flag_site::FlagSite;
use crate::settings::Listening;

pub(crate) use pair::{BadPair, PairFacts, READ_PAIR, ReadPair, date};
pub(crate) use serve::{Replacement, RunningTls};

/// Ports of `--domain` and `--cert`.
const PORTS: (u16, u16) = (443, 80);

/// Address of `--self-signed`: of this machine only, and without a privilege.
const LOCAL_ADDRESS: &str = "127.0.0.1:8443";

/// Maximum number of certificates in a report.
const CERTIFICATES_SHOWN_MAX: usize = 20;

/// TLS of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsPlan {
    /// Addresses whose connections are by TLS.
    pub(crate) addresses: Vec<ListenAddress>,
    /// Ports of the other ones.
    pub(crate) plain_ports: Vec<u16>,
    /// The certificates of the sites that have one. The first is for clients that ask for no or another name.
    pub(crate) certificates: Vec<SiteCertificate>,
    pub(crate) tls: config::Tls,
    pub(crate) acme: config::Acme,
    /// Folder for certificates that the server gets by itself; `None` if no site has such.
    pub(crate) storage: Option<PathBuf>,
}

/// The certificate of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SiteCertificate {
    /// Host names of the site; empty: any.
    pub(crate) hosts: Vec<String>,
    /// Its source, never [`SiteTls::Off`].
    pub(crate) source: SiteTls,
    /// Contents of a pair, if it could be read.
    pub(crate) facts: Option<PairFacts>,
}

/// Checks the flags on TLS.
///
/// # Errors
/// One half of a pair, invalid names, files that can't be read.
pub(crate) fn check_flags(serve: &Serve) -> Result<(), Failure> {
    let (lone, missing) = match (&serve.cert, &serve.key) {
        (Some(_), None) => ("--cert", "--key"),
        (None, Some(_)) => ("--key", "--cert"),
        _ => ("", ""),
    };
    if !lone.is_empty() {
        let help = "a certificate and its key: `--cert FILE --key FILE`";
        return Err(Failure::usage_helped(format!("`{lone}` without `{missing}`"), help));
    }
    for (flag, path) in [("--cert", &serve.cert), ("--key", &serve.key)] {
        if let Some(Err(message)) = path.as_ref().map(|path| check::readable(path)) {
            return Err(Failure::usage(format!("`{flag}`: {message}")));
        }
    }
    for name in &serve.domain {
        if let Some((message, help)) = unsuitable(&host_name(name), true) {
            return Err(Failure::usage_helped(format!("`--domain {name}`: {message}"), help));
        }
    }
    if serve.acme_staging && (serve.cert.is_some() || serve.self_signed) {
        let help = "it is for `--domain`, and for sites with `tls = \"auto\"`";
        return Err(Failure::usage_helped("`--acme-staging` has no effect on this certificate", help));
    }
    Ok(())
}

/// Sets the keys that flags override or imply. Returns a line for each key of the file that changes.
pub(crate) fn override_keys(serve: &Serve, site: &FlagSite, config: &mut Config) -> Vec<String> {
    let server = &mut config.server;
    let mut overridden = Vec::new();
    for (flag, name, port, key) in [
        (serve.http_port, "--http-port", "http_port", &mut server.http_port),
        (serve.https_port, "--https-port", "https_port", &mut server.https_port),
    ] {
        if let (Some(new), Some(old)) = (flag, *key)
            && new != old
        {
            overridden.push(format!("{name} {new} overrides server.{port} = {old}"));
        }
        *key = flag.or(*key);
    }
    let has_default_ports = serve.listen.is_none() && server.https_port.is_none() && config.listen.is_empty();
    if matches!(site.tls, SiteTls::Auto | SiteTls::Own(_)) && has_default_ports {
        server.https_port = Some(PORTS.0);
        server.http_port = server.http_port.or(Some(PORTS.1));
    }
    if serve.acme_staging {
        if config.acme.directory != config::Acme::default().directory {
            overridden
                .push(format!("--acme-staging overrides acme.directory = \"{}\"", config.acme.directory));
        }
        config.acme.directory = Directory::LetsEncryptStaging;
    }
    overridden
}

/// Returns the address that a site by flags has without another one.
pub(crate) fn default_address(site: &FlagSite, config: &Config) -> Option<&'static str> {
    let has_none = config.server.https_port.is_none() && !config.listen.iter().any(|listen| listen.tls);
    (site.tls == SiteTls::SelfSigned && has_none).then_some(LOCAL_ADDRESS)
}

/// Plans TLS; `None`: nothing has it.
///
/// # Errors
/// Addresses with TLS without a certificate, or the other way round; an unusable pair; no folder for certificates.
pub(crate) fn plan(
    config: &Config,
    site: &FlagSite,
    listening: &Listening,
) -> Result<Option<TlsPlan>, Failure> {
    let addresses = listening.encrypted.clone();
    let of_flags = SiteCertificate { hosts: site.hosts.clone(), source: site.tls.clone(), facts: None };
    let of_file = config.sites.iter().map(|site| SiteCertificate {
        hosts: site.hosts.clone(),
        source: site.tls.clone(),
        facts: None,
    });
    let mut certificates: Vec<_> =
        of_file.chain([of_flags]).filter(|site| site.source != SiteTls::Off).collect();
    match (addresses.first(), certificates.is_empty()) {
        (None, true) => return Ok(None),
        (Some(address), true) => {
            let help = "`--domain NAME` gets one, `--cert FILE --key FILE` names your own, `--self-signed` is for trying; in a file: `tls` of [[site]]";
            return Err(Failure::usage_helped(
                format!("{address} has TLS, but there is no certificate"),
                help,
            ));
        }
        (None, false) => {
            let help = "`--https-port 443`, or `https_port = 443` in [server]";
            return Err(Failure::usage_helped("there is a certificate, but no address with TLS", help));
        }
        (Some(_), false) => {}
    }
    // The site of all other hosts gets their clients, too: its policy on client certificates is theirs.
    certificates.sort_by_key(|certificate| !certificate.hosts.is_empty());
    for certificate in &mut certificates {
        if certificate.source == SiteTls::Auto {
            certificate.hosts.iter_mut().for_each(|host| *host = host_name(host));
        }
        if let (SiteTls::Own(pair), Some(read)) = (&certificate.source, READ_PAIR) {
            let failed = |BadPair { message, help }| Failure::usage_helped(message, help);
            certificate.facts = Some(read(&pair.cert, &pair.key).map_err(failed)?);
        }
    }
    let storage = match certificates.iter().any(|site| site.source == SiteTls::Auto) {
        true => Some(config.tls.storage.clone().or_else(default_storage).ok_or_else(no_storage)?),
        false => None,
    };
    Ok(Some(TlsPlan {
        addresses,
        plain_ports: listening.plain_ports(),
        certificates,
        tls: config.tls.clone(),
        acme: config.acme.clone(),
        storage,
    }))
}

/// Returns a host as certificates name it.
pub(crate) fn host_name(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Returns the folder that the service manager or the user has for data.
fn default_storage() -> Option<PathBuf> {
    let managed = var_os("STATE_DIRECTORY").and_then(|paths| split_paths(&paths).next());
    let of_user = || var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let of_home = || {
        var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".local/share"))
    };
    managed.or_else(|| of_user().or_else(of_home).map(|path| path.join("shearwater")))
}

fn no_storage() -> Failure {
    let help = "write `storage = \"/var/lib/shearwater\"` in [tls], or set STATE_DIRECTORY or HOME";
    Failure::usage_helped("no folder to keep certificates in", help)
}

impl TlsPlan {
    /// Returns the port that requests in clear are redirected to, unless it isn't known before binding.
    pub(crate) fn port(&self) -> Option<u16> {
        let mut ports = self.addresses.iter().filter_map(|address| Some(address.tcp()?.port()));
        ports.next().filter(|port| *port != 0)
    }

    /// Returns the challenges that the CA can ask for. Other ports than 443 and 80 may be theirs at a router, which isn't known.
    fn challenges(&self) -> Vec<ChallengeKind> {
        let mut ports = self.addresses.iter().filter_map(|address| Some(address.tcp()?.port()));
        let by_port = [
            (ports.any(|port| port == PORTS.0), ChallengeKind::TlsAlpn01),
            (self.plain_ports.contains(&PORTS.1), ChallengeKind::Http01),
        ];
        let is_known = by_port.iter().any(|(is_bound, _)| *is_bound);
        by_port.into_iter().filter(|(is_bound, _)| *is_bound || !is_known).map(|(_, kind)| kind).collect()
    }

    /// Returns a line for each certificate, up to a bound.
    pub(crate) fn lines(&self) -> Vec<String> {
        let shown = self.certificates.iter().take(CERTIFICATES_SHOWN_MAX);
        let mut lines: Vec<String> = shown
            .map(|certificate| format!("{}: {}", certificate.name(), self.describe(certificate)))
            .collect();
        if let more @ 1.. = self.certificates.len().saturating_sub(CERTIFICATES_SHOWN_MAX) {
            lines.push(format!("and {more} more, which `shearwater check --json` lists"));
        }
        lines
    }

    /// Describes the source of a certificate.
    pub(crate) fn describe(&self, SiteCertificate { source, facts, .. }: &SiteCertificate) -> String {
        match source {
            SiteTls::Off => "none".to_owned(),
            SiteTls::SelfSigned => "self-signed, which no browser trusts: for trying".to_owned(),
            SiteTls::Auto => {
                let storage = self.storage.as_ref().map(|path| path.display().to_string());
                format!("by itself from {}, in {}", self.acme.directory, storage.unwrap_or_default())
            }
            SiteTls::Own(Pair { cert, client_ca, .. }) => {
                let ends = facts.as_ref().map(|facts| format!(", until {}", date(facts.not_after)));
                let clients = client_ca.as_ref().map(|ca| format!(", clients by {}", ca.display()));
                format!("{}{}{}", cert.display(), ends.unwrap_or_default(), clients.unwrap_or_default())
            }
        }
    }
}

impl SiteCertificate {
    /// Returns the site's names for reports.
    pub(crate) fn name(&self) -> String {
        match &self.hosts[..] {
            [] => "(default)".to_owned(),
            hosts => hosts.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::path::PathBuf;

    use shearwater::{ListenAddress, Server};
    use shearwater_acme::ChallengeKind;
    use shearwater_config::{Config, Directory, SiteTls};

    use super::{FlagSite, override_keys, plan};
    use crate::args::Serve;
    use crate::settings::{Listening, listening};

    /// Returns the addresses with and without TLS for flags and ports of a file.
    fn addresses(serve: &Serve, ports: (Option<u16>, Option<u16>)) -> (Vec<String>, Vec<String>) {
        let mut config = Config::default();
        (config.server.https_port, config.server.http_port) = ports;
        let site = FlagSite::of(serve);
        let mut overridden = override_keys(serve, &site, &mut config);
        let Listening { addresses, encrypted, .. } = listening(serve, &site, &config, &mut overridden);
        let shown = |address: &str| address.replace("0.0.0.0", "[::]");
        let encrypted: Vec<String> = encrypted.iter().map(|address| shown(&address.to_string())).collect();
        let plain = addresses.iter().map(|address| shown(address));
        (encrypted.clone(), plain.filter(|address| !encrypted.contains(address)).collect())
    }

    fn domain() -> Serve {
        Serve { domain: vec!["example.org".to_owned()], ..Serve::default() }
    }

    #[test]
    fn flags_imply_ports() {
        let file = PathBuf::from("a.pem");
        let pair = || Serve { cert: Some(file.clone()), key: Some(file.clone()), ..Serve::default() };
        let local = || Serve { self_signed: true, ..Serve::default() };
        let listen = Some("127.0.0.1:9443".to_owned());
        for (serve, ports, encrypted, plain) in [
            (domain(), (None, None), &["[::]:443"][..], &["[::]:80"][..]),
            (pair(), (None, None), &["[::]:443"], &["[::]:80"]),
            (Serve { http_port: Some(8080), ..domain() }, (None, None), &["[::]:443"], &["[::]:8080"]),
            // Port 80 needs the same privilege as 443.
            (Serve { https_port: Some(8443), ..domain() }, (None, None), &["[::]:8443"], &[]),
            (domain(), (Some(8443), Some(8080)), &["[::]:8443"], &["[::]:8080"]),
            (Serve { https_port: Some(9443), ..pair() }, (Some(8443), None), &["[::]:9443"], &[]),
            (Serve { listen: listen.clone(), ..domain() }, (None, None), &["127.0.0.1:9443"], &[]),
            (local(), (None, None), &["127.0.0.1:8443"], &[]),
            (Serve { http_port: Some(8080), ..local() }, (None, None), &["127.0.0.1:8443"], &["[::]:8080"]),
            (Serve { https_port: Some(9443), ..local() }, (None, None), &["[::]:9443"], &[]),
            (Serve { listen, ..local() }, (None, None), &["127.0.0.1:9443"], &[]),
            (Serve { http_port: Some(8080), ..Serve::default() }, (None, None), &[], &["[::]:8080"]),
            (Serve::default(), (None, None), &[], &["127.0.0.1:8080"]),
        ] {
            let (found_encrypted, found_plain) = addresses(&serve, ports);
            assert_eq!(
                (&found_encrypted[..], &found_plain[..]),
                (&owned(encrypted)[..], &owned(plain)[..]),
                "{serve:?}"
            );
        }
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn reports_overridden_keys() {
        let serve = Serve { https_port: Some(1), http_port: Some(2), acme_staging: true, ..domain() };
        let mut config = Config::default();
        (config.server.https_port, config.server.http_port) = (Some(443), Some(2));
        config.acme.directory = Directory::Url("https://ca.example/".to_owned());
        let overridden = override_keys(&serve, &FlagSite::of(&serve), &mut config);
        assert_eq!(
            overridden,
            [
                "--https-port 1 overrides server.https_port = 443",
                "--acme-staging overrides acme.directory = \"https://ca.example/\""
            ]
        );
        assert_eq!(config.acme.directory, Directory::LetsEncryptStaging);
    }

    #[test]
    fn the_site_of_other_hosts_has_the_first_certificate() {
        let site = |hosts: &[&str]| shearwater_config::Site {
            hosts: owned(hosts),
            tls: SiteTls::SelfSigned,
            ..shearwater_config::Site::default()
        };
        let mut config = Config::default();
        config.sites.extend([site(&["b.example"]), site(&["a.example"]), site(&[])]);
        let plan = plan(&config, &FlagSite::default(), &bound(&[8443], &[]));
        let plan = plan.expect("nothing is wrong").expect("TLS");
        let hosts: Vec<_> = plan.certificates.into_iter().map(|certificate| certificate.hosts).collect();
        assert_eq!(hosts, [owned(&[]), owned(&["b.example"]), owned(&["a.example"])]);
    }

    #[test]
    fn plans_certificates_and_addresses_together() {
        let config = Config::default();
        let none = FlagSite::default();
        assert_eq!(plan(&config, &none, &bound(&[], &[])).expect("nothing is wrong"), None);
        assert!(plan(&config, &none, &bound(&[8443], &[])).is_err(), "an address without a certificate");
        let local = FlagSite { tls: SiteTls::SelfSigned, ..none };
        assert!(plan(&config, &local, &bound(&[], &[])).is_err(), "a certificate without an address");
        let planned = plan(&config, &local, &bound(&[8443], &[])).expect("nothing is wrong").expect("TLS");
        assert_eq!((planned.port(), planned.certificates.len(), planned.storage), (Some(8443), 1, None));
    }

    /// Returns addresses with and without TLS.
    fn bound(encrypted: &[u16], plain: &[u16]) -> Listening {
        let address = |port: &u16| SocketAddr::from(([127, 0, 0, 1], *port));
        let encrypted: Vec<_> = encrypted.iter().map(|port| ListenAddress::Tls(address(port))).collect();
        let plain = plain.iter().map(|port| address(port).to_string());
        let addresses = plain.chain(encrypted.iter().map(ToString::to_string)).collect();
        Listening { server: Server::bind(""), addresses, encrypted }
    }

    #[test]
    fn the_ports_decide_on_challenges() {
        let config = Config::default();
        let site = FlagSite { tls: SiteTls::SelfSigned, ..FlagSite::default() };
        let (tls, http) = (ChallengeKind::TlsAlpn01, ChallengeKind::Http01);
        for (encrypted, plain, expected) in [
            (443, &[80][..], &[tls, http][..]),
            (443, &[], &[tls]),
            (443, &[8080], &[tls]),
            (8443, &[80], &[http]),
            (8443, &[8080], &[tls, http]),
            (8443, &[], &[tls, http]),
        ] {
            let planned = plan(&config, &site, &bound(&[encrypted], plain)).expect("nothing is wrong");
            assert_eq!(planned.expect("TLS").challenges(), expected, "{encrypted}, {plain:?}");
        }
    }
}
