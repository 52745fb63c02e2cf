//! Configurations: certificates, client policies and protocols by server name.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::server::{NoServerSessionStorage, WantsServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ConfigBuilder, ServerConfig, SupportedProtocolVersion};
use shearwater_io::secure::{Failure, Version};

use crate::certificate::Pair;
use crate::challenges::{self, Challenges};
use crate::clients::ClientAuthorities;
use crate::crypto;
use crate::failure::Alert;
use crate::tickets::{TicketKeysError, Tickets};

/// Settings of a [`Configuration`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Certificates by server name. The first one is the default.
    pub certificates: Vec<NamedCertificate>,
    /// Refuses clients that ask for no name, or for one without a certificate, instead of presenting the default.
    pub strict_sni: bool,
    /// Lowest version that is accepted.
    pub min_version: Version,
    /// Protocols that are agreed on by ALPN, in the order of preference. Default: HTTP/2, then HTTP/1.1.
    ///
    /// A client that offers only others is refused. One that doesn't use ALPN gets HTTP/1.1, whatever is listed.
    pub protocols: Vec<AlpnProtocol>,
    /// Response to a client that sends HTTP without TLS, complete with its head. Empty sends nothing.
    pub plain_http_response: Vec<u8>,
    /// Keys of the session tickets; `None` makes every handshake a full one.
    pub tickets: Option<Arc<Tickets>>,
    /// Open challenges of an ACME authority.
    pub challenges: Option<Arc<Challenges>>,
}

impl Options {
    /// Returns settings with one certificate for all names and with session tickets, without a check of clients.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn of_pair(pair: Pair) -> Result<Self, TicketKeysError> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let certificate = NamedCertificate { names: Vec::new(), pair: Some(pair), clients: None };
        let tickets = Some(Arc::new(Tickets::random(now)?));
        Ok(Self { certificates: vec![certificate], tickets, ..Self::default() })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            certificates: Vec::new(),
            strict_sni: false,
            min_version: Version::Tls12,
            protocols: AlpnProtocol::ALL.to_vec(),
            plain_http_response: Vec::new(),
            tickets: None,
            challenges: None,
        }
    }
}

/// Protocols that a server can agree on with its clients by ALPN (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlpnProtocol {
    /// HTTP/2 (RFC 9113).
    Http2,
    /// HTTP/1.1.
    Http11,
}

impl AlpnProtocol {
    /// All protocols, in the default order.
    pub const ALL: [Self; 2] = [Self::Http2, Self::Http11];

    /// Returns its name as registered with IANA: `h2`, `http/1.1`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http2 => "h2",
            Self::Http11 => "http/1.1",
        }
    }
}

/// Certificate and client policy of some server names.
#[derive(Debug, Clone)]
pub struct NamedCertificate {
    /// Server names. `*.example.org` is for names with more labels, as for the hosts of sites. Case and a final dot don't
    /// matter.
    pub names: Vec<String>,
    /// Certificate and key. Without them handshakes for these names are refused: a certificate has been ordered.
    pub pair: Option<Pair>,
    /// Authorities that must have signed the client's certificate; `None` requests none.
    pub clients: Option<ClientAuthorities>,
}

/// Certificates, client policies and protocols by server name. It never changes: a reload makes a new one.
#[derive(Debug)]
pub struct Configuration {
    hosts: Vec<Host>,
    /// Positions in `hosts`, by lower-case name; wildcards without their `*`.
    by_name: HashMap<Arc<str>, usize>,
    /// A host's policy isn't 0.
    pub(crate) has_client_policies: bool,
    strict_sni: bool,
    pub(crate) plain_http_response: Vec<u8>,
    pub(crate) tickets: Option<Arc<Tickets>>,
    challenges: Option<Arc<Challenges>>,
}

#[derive(Debug)]
struct Host {
    /// `None` until there is a certificate.
    config: Option<Arc<ServerConfig>>,
    client_policy: u32,
}

/// A session's configuration.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) client_policy: u32,
    /// The name that the client asked for.
    pub(crate) server_name: Option<Arc<str>>,
    /// The session only presents a challenge's certificate, and then ends.
    pub(crate) is_challenge: bool,
}

/// Maximum bytes of a name, as in DNS (RFC 1035 section 2.3.4). A longer one is that of no host.
const NAME_BYTES_MAX: usize = 253;

impl Configuration {
    /// Makes a configuration.
    ///
    /// # Errors
    /// Fails if there are no certificates or no protocols, or if a name or a protocol occurs twice.
    pub fn new(options: Options) -> Result<Self, ConfigurationError> {
        let versions: &[&SupportedProtocolVersion] = match options.min_version {
            Version::Tls12 => rustls::DEFAULT_VERSIONS,
            Version::Tls13 => &[&rustls::version::TLS13],
        };
        if options.certificates.is_empty() {
            return Err(ConfigurationError::Empty);
        }
        let protocols = protocol_names(&options.protocols)?;
        let (mut hosts, mut by_name) = (Vec::new(), HashMap::new());
        for NamedCertificate { names, pair, clients } in options.certificates {
            for name in names {
                let lower = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
                let key = lower.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(&lower);
                if by_name.insert(Arc::from(key), hosts.len()).is_some() {
                    return Err(ConfigurationError::NameTwice(name));
                }
            }
            let config = pair.map(|pair| {
                let (key, tickets) = (pair.certified_key(), options.tickets.as_ref());
                Arc::new(server_config(key, clients.as_ref(), &protocols, versions, tickets))
            });
            hosts.push(Host { config, client_policy: clients.map_or(0, |clients| clients.policy()) });
        }
        let has_client_policies = hosts.iter().any(|host: &Host| host.client_policy != 0);
        Ok(Self {
            hosts,
            has_client_policies,
            by_name,
            strict_sni: options.strict_sni,
            plain_http_response: options.plain_http_response,
            tickets: options.tickets,
            challenges: options.challenges,
        })
    }

    /// Returns the number of the client policy of a host, as in `SessionFacts::client_policy`; 0 requests no certificate.
    ///
    /// A request whose host has another policy than its session must be refused, by 421. So this finds hosts, with or
    /// without a port, exactly as sites are found: otherwise one name would have two policies.
    #[must_use]
    pub fn client_policy(&self, host: &str) -> u32 {
        if !self.has_client_policies {
            return 0;
        }
        let name =
            host.trim_end_matches(|digit: char| digit.is_ascii_digit()).strip_suffix(':').unwrap_or(host);
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let at = self.find(&name).map_or(0, |(_, at)| at);
        self.hosts[at].client_policy
    }

    /// Chooses by the names that a ClientHello contains.
    pub(crate) fn choose(
        &self,
        name: Option<&str>,
        offers: impl Fn(&str) -> bool,
    ) -> Result<Chosen, (Failure, Alert)> {
        if offers(challenges::PROTOCOL) {
            return self.choose_challenge(name);
        }
        let found = name.and_then(|name| self.find(name));
        if found.is_none() && self.strict_sni {
            return Err((Failure::UnknownName, Alert::UnrecognizedName));
        }
        let host = &self.hosts[found.as_ref().map_or(0, |(_, at)| *at)];
        // Until a name has its certificate, it looks like a name that isn't served: no client can do better than to
        // try again later, and a scan learns nothing.
        let config = host.config.clone().ok_or((Failure::UnknownName, Alert::UnrecognizedName))?;
        let known = found.map(|(key, _)| key).filter(|key| Some(&***key) == name).cloned();
        let server_name = known.or_else(|| name.map(Arc::from));
        Ok(Chosen { config, client_policy: host.client_policy, server_name, is_challenge: false })
    }

    fn choose_challenge(&self, name: Option<&str>) -> Result<Chosen, (Failure, Alert)> {
        let config = name.and_then(|name| self.challenges.as_ref()?.get(name));
        let config = config.ok_or((Failure::Protocol, Alert::NoApplicationProtocol))?;
        Ok(Chosen { config, client_policy: 0, server_name: name.map(Arc::from), is_challenge: true })
    }

    /// Finds a lower-case name: itself, then the wildcard for its fewest labels.
    fn find(&self, name: &str) -> Option<(&Arc<str>, usize)> {
        // A key that begins with a dot is a wildcard's.
        if name.len() > NAME_BYTES_MAX || name.starts_with('.') {
            return None;
        }
        let dots = || name.match_indices('.').map(|(at, _)| at);
        let wildcard = || dots().find_map(|at| self.by_name.get_key_value(&name[at..]));
        self.by_name.get_key_value(name).or_else(wildcard).map(|(key, at)| (key, *at))
    }
}

/// Returns the names of protocols, if there are some and each occurs once.
fn protocol_names(protocols: &[AlpnProtocol]) -> Result<Vec<&'static str>, ConfigurationError> {
    if protocols.is_empty() {
        return Err(ConfigurationError::NoProtocols);
    }
    let mut names = Vec::with_capacity(protocols.len());
    for protocol in protocols {
        let name = protocol.as_str();
        if names.contains(&name) {
            return Err(ConfigurationError::ProtocolTwice(*protocol));
        }
        names.push(name);
    }
    Ok(names)
}

/// Makes a configuration of rustls with one certificate, and rustls's default suites and groups.
pub(crate) fn server_config(
    key: Arc<CertifiedKey>,
    clients: Option<&ClientAuthorities>,
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
    tickets: Option<&Arc<Tickets>>,
) -> ServerConfig {
    let builder = ServerConfig::builder_with_provider(crypto::provider())
        .with_protocol_versions(versions)
        .expect("the library's default suites are for both versions");
    let builder: ConfigBuilder<ServerConfig, WantsServerCert> = match clients {
        Some(clients) => builder.with_client_cert_verifier(Arc::clone(&clients.verifier)),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    match tickets {
        Some(tickets) => config.ticketer = tickets.ticketer(clients),
        None => config.send_tls13_tickets = 0,
    }
    config
}

/// Reasons for which there can be no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationError {
    /// There are no certificates.
    Empty,
    /// A server name occurs twice.
    NameTwice(String),
    /// There are no protocols.
    NoProtocols,
    /// A protocol occurs twice.
    ProtocolTwice(AlpnProtocol),
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("expected at least one certificate, found none"),
            Self::NameTwice(name) => write!(out, "the server name `{name}` has two certificates"),
            Self::NoProtocols => out.write_str("expected at least one protocol, found none"),
            Self::ProtocolTwice(protocol) => write!(out, "the protocol `{}` occurs twice", protocol.as_str()),
        }
    }
}

impl std::error::Error for ConfigurationError {}
