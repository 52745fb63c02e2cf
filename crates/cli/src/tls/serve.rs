//! TLS of a running server: its configuration is made of the plan and of the certificates that it gets by itself.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater::engine::{forbid_core_dumps, handed_state};
use shearwater::tls::{
    AlpnProtocol, Challenges, ClientAuthorities, Configuration, ExportedKeys, NamedCertificate, Options,
    Pair, PairError, SharedConfiguration, Tickets, self_signed,
};
use shearwater_acme::{ExternalAccount, Handle, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, Manager, Notice, Status};
use shearwater_config::{Directory, Protocol, SiteTls, TlsVersion};
use shearwater_metrics::{Certificate, Metrics};

use crate::failure::Failure;
use crate::tls::{BadPair, PairFacts, SiteCertificate, TlsPlan};

/// Names in a self-signed certificate of a site without hosts.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// TLS of a running server.
#[derive(Clone)]
pub(crate) struct RunningTls(Arc<Inner>);

struct Inner {
    shared: Arc<SharedConfiguration>,
    tickets: Arc<Tickets>,
    challenges: Arc<Challenges>,
    current: Mutex<Current>,
    /// Gets certificates, from the first site on that wants one.
    manager: OnceLock<Handle>,
    /// Challenges of the manager, for workers.
    managed: Arc<OnceLock<Arc<shearwater_acme::Challenges>>>,
}

/// Parts of the present configuration.
struct Current {
    plan: TlsPlan,
    /// Certificates that the server got by itself, by their names.
    obtained: HashMap<Vec<String>, Pair>,
    /// Those that it has made, by their names.
    made: HashMap<Vec<String>, Pair>,
}

impl RunningTls {
    /// Reads pairs and keys, and begins to get certificates.
    ///
    /// # Errors
    /// A file that can't be used, or a folder that can't be written.
    pub(crate) fn start(plan: TlsPlan) -> Result<Self, Failure> {
        // Before a key is read. A system that refuses it has its reasons.
        drop(forbid_core_dumps());
        let tickets = Arc::new(match plan.tls.ticket_keys.as_deref() {
            None => inherited_tickets()?.map_or_else(|| tickets(None), Ok)?,
            file => tickets(file)?,
        });
        let managed = Arc::<OnceLock<Arc<shearwater_acme::Challenges>>>::default();
        let source = Arc::clone(&managed);
        let challenges = Arc::new(Challenges::with_source(move |name| source.get()?.alpn(name)));
        let options = plan.manager_options(plan.automatic());
        let mut current = Current { plan, obtained: HashMap::new(), made: HashMap::new() };
        let shared = SharedConfiguration::new(current.configuration(&tickets, &challenges)?);
        let (current, manager) = (Mutex::new(current), OnceLock::new());
        let running = Self(Arc::new(Inner { shared, tickets, challenges, current, manager, managed }));
        if let Some(options) = options {
            running.set_manager(running.start_manager(options)?);
        }
        Ok(running)
    }

    /// Starts the thread that gets certificates.
    fn start_manager(&self, options: shearwater_acme::Options) -> Result<Handle, Failure> {
        // The manager must not keep alive what owns it.
        let inner = Arc::downgrade(&self.0);
        let manager = Manager::start(options, move |notice| {
            if let Some(inner) = inner.upgrade() {
                Self(inner).notice(notice);
            }
        });
        manager.map_err(|failure| Failure::system(failure.message, Some(failure.help)))
    }

    /// Serves the challenges of a manager, which is the only one from then on.
    fn set_manager(&self, manager: Handle) {
        // Only the start and the reloads, which come one after the other, set it.
        let _ = self.0.managed.set(manager.challenges());
        let _ = self.0.manager.set(manager);
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Certificate(certificate) => {
                let names = certificate.names.join(", ");
                let mut current = self.lock();
                current.obtained.insert(certificate.names, certificate.pair);
                match current.configuration(&self.0.tickets, &self.0.challenges) {
                    Ok(configuration) => {
                        self.0.shared.replace(configuration);
                        tracing::info!(target: "shearwater", kind = "certificate", "serving a certificate for {names}");
                    }
                    Err(failure) => {
                        let error = failure.to_string();
                        tracing::error!(target: "shearwater", kind = "certificate_failed", details = error.as_str(), "can't serve the certificate for {names}");
                    }
                }
            }
            Notice::Failed(failure) => {
                let (message, help) = (failure.message.as_str(), failure.help.as_str());
                tracing::error!(target: "shearwater", kind = "certificate_failed", "{message}; help: {help}");
            }
        }
    }

    /// Returns the configuration for the server.
    pub(crate) fn shared(&self) -> Arc<SharedConfiguration> {
        Arc::clone(&self.0.shared)
    }

    /// Returns the keys of session tickets for the process that takes this one's place, unless they are in a file.
    pub(crate) fn ticket_keys(&self) -> Option<ExportedKeys> {
        let is_of_file = self.lock().plan.tls.ticket_keys.is_some();
        (!is_of_file).then(|| self.0.tickets.export())
    }

    /// Returns the function that finds challenges by HTTP.
    pub(crate) fn find_challenge(&self) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
        let managed = Arc::clone(&self.0.managed);
        move |token: &str| managed.get()?.http(token)
    }

    /// Returns the certificates that the server gets by itself.
    pub(crate) fn status(&self) -> Vec<Status> {
        self.0.manager.get().map(Handle::status).unwrap_or_default()
    }

    /// Shows the certificates that are served or ordered.
    pub(crate) fn show_in(&self, metrics: &Metrics) {
        let tls = self.clone();
        metrics.set_certificates(move || tls.certificates());
    }

    fn certificates(&self) -> Vec<Certificate> {
        let ordered = self.status();
        let current = self.lock();
        current.plan.certificates.iter().map(|site| current.shown(site, &ordered)).collect()
    }

    /// Orders the certificate of a name now.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn renew(&self, name: &str) -> Result<u64, String> {
        let Some(manager) = self.0.manager.get() else {
            return Err("no site has `tls = \"auto\"`".to_owned());
        };
        manager.renew(name).map_err(|failure| format!("{failure}; help: {}", failure.help))
    }

    /// Waits for something in the status of a name's certificate: see [`Handle::wait_for`].
    pub(crate) fn wait_for<T>(
        &self,
        name: &str,
        timeout: Duration,
        look: impl FnMut(Option<&Status>) -> Option<T>,
    ) -> Option<T> {
        self.0.manager.get()?.wait_for(name, timeout, look)
    }

    /// Ends orders, so that the next process can go on with them at once.
    pub(crate) fn stop(&self) {
        self.0.manager.get().inspect(|manager| manager.stop());
    }

    /// Reads the pairs of a new plan. [`Replacement::apply`] serves them.
    ///
    /// # Errors
    /// A file that can't be used. Nothing has changed then.
    pub(crate) fn prepare(&self, plan: TlsPlan) -> Result<Replacement<'_>, Failure> {
        let present = self.lock();
        let keys = match (plan.tls.ticket_keys.as_deref(), &present.plan.tls.ticket_keys) {
            (None, None) => None,
            (file, _) => Some(tickets(file)?),
        };
        let mut current = Current { plan, obtained: present.obtained.clone(), made: present.made.clone() };
        drop(present);
        let configuration = current.configuration(&self.0.tickets, &self.0.challenges)?;
        // It begins without names: a reload that fails after this must order nothing.
        let options = current.plan.manager_options(Vec::new()).filter(|_| self.0.manager.get().is_none());
        let manager = options.map(|options| self.start_manager(options)).transpose()?;
        Ok(Replacement { running: self, current, configuration, keys, manager })
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A configuration that a reload has read.
pub(crate) struct Replacement<'a> {
    running: &'a RunningTls,
    current: Current,
    configuration: Configuration,
    keys: Option<Tickets>,
    /// Started, if the first site wants a certificate.
    manager: Option<Handle>,
}

impl Replacement<'_> {
    /// Serves it: workers take it over at their next turn.
    pub(crate) fn apply(mut self) -> Result<(), String> {
        let Inner { shared, tickets, challenges, manager, .. } = &*self.running.0;
        if let Some(manager) = self.manager {
            self.running.set_manager(manager);
        }
        let mut present = self.running.lock();
        let automatic = self.current.plan.automatic();
        if let Some(manager) = manager.get() {
            // Certificates that it finds now are served after this, because they need the lock.
            let set = manager.set_certificates(automatic.clone());
            set.map_err(|failure| format!("error: {failure}\nhelp: {}\n", failure.help))?;
        }
        // Some may have been issued since the plan was read.
        let is_newer = present.obtained.iter().any(|(names, pair)| {
            self.current.obtained.get(names).is_none_or(|known| known.facts() != pair.facts())
        });
        self.current.obtained = present.obtained.clone();
        self.current.obtained.retain(|names, _| automatic.contains(names));
        if is_newer {
            let configuration = self.current.configuration(tickets, challenges);
            self.configuration = configuration.map_err(|failure| failure.to_string())?;
        }
        self.keys.iter().for_each(|keys| tickets.replace(keys));
        shared.replace(self.configuration);
        *present = self.current;
        Ok(())
    }
}

impl Current {
    /// Reads all pairs.
    fn configuration(
        &mut self,
        tickets: &Arc<Tickets>,
        challenges: &Arc<Challenges>,
    ) -> Result<Configuration, Failure> {
        let certificates = self.plan.certificates.clone();
        let certificates: Result<Vec<_>, _> =
            certificates.into_iter().map(|certificate| self.named(certificate)).collect();
        let options = Options {
            certificates: certificates?,
            strict_sni: self.plan.tls.strict_sni,
            min_version: match self.plan.tls.min_version {
                TlsVersion::Tls12 => shearwater::tls::Version::Tls12,
                TlsVersion::Tls13 => shearwater::tls::Version::Tls13,
            },
            protocols: self.plan.tls.protocols.iter().map(|protocol| alpn(*protocol)).collect(),
            // The server's own response to plain HTTP names https.
            plain_http_response: Vec::new(),
            tickets: Some(Arc::clone(tickets)),
            challenges: Some(Arc::clone(challenges)),
        };
        Configuration::new(options).map_err(|error| Failure::usage(error.to_string()))
    }

    fn named(&mut self, certificate: SiteCertificate) -> Result<NamedCertificate, Failure> {
        let SiteCertificate { hosts, source, .. } = certificate;
        let (mut pair, mut clients) = (None, None);
        match source {
            SiteTls::Off => {}
            SiteTls::Auto => pair = self.obtained.get(&hosts).cloned(),
            SiteTls::SelfSigned => {
                if !self.made.contains_key(&hosts) {
                    self.made.insert(hosts.clone(), make(&hosts)?);
                }
                pair = self.made.get(&hosts).cloned();
            }
            SiteTls::Own(own) => {
                let read = Pair::read(&own.cert, &own.key);
                pair = Some(read.map_err(|error| Failure::usage_helped(error.to_string(), error.help()))?);
                if let Some(path) = own.client_ca {
                    let read = ClientAuthorities::read(&path);
                    clients = Some(read.map_err(|error| Failure::usage(error.to_string()))?);
                }
            }
        }
        Ok(NamedCertificate { names: hosts, pair, clients })
    }
}

impl Current {
    /// Returns a certificate as metrics show it. `ordered` are those that the server gets by itself.
    fn shown(&self, site: &SiteCertificate, ordered: &[Status]) -> Certificate {
        let name = site.hosts.first().map_or("(default)", String::as_str).to_owned();
        let of = |pair: &Pair| (pair.facts().not_before, pair.facts().not_after);
        let made = |pairs: &HashMap<Vec<String>, Pair>| pairs.get(&site.hosts).map(of);
        let (source, validity) = match site.source {
            SiteTls::Off => ("none", None),
            SiteTls::Auto => ("auto", made(&self.obtained)),
            SiteTls::SelfSigned => ("self-signed", made(&self.made)),
            SiteTls::Own(_) => ("own", site.facts.as_ref().map(|facts| (facts.not_before, facts.not_after))),
        };
        let is_ordered = |status: &&Status| site.source == SiteTls::Auto && status.names == site.hosts;
        let is_failing = ordered.iter().find(is_ordered).is_some_and(|status| status.failure.is_some());
        Certificate { name, source, validity, is_failing }
    }
}

impl TlsPlan {
    /// Returns the names of each certificate that the server gets by itself.
    fn automatic(&self) -> Vec<Vec<String>> {
        let auto = self.certificates.iter().filter(|site| site.source == SiteTls::Auto);
        auto.map(|site| site.hosts.clone()).collect()
    }

    /// Returns options for getting certificates, unless no site wants one.
    fn manager_options(&self, names: Vec<Vec<String>>) -> Option<shearwater_acme::Options> {
        let acme = &self.acme;
        Some(shearwater_acme::Options {
            directory: match &acme.directory {
                Directory::LetsEncrypt => LETS_ENCRYPT.to_owned(),
                Directory::LetsEncryptStaging => LETS_ENCRYPT_STAGING.to_owned(),
                Directory::Url(url) => url.clone(),
            },
            ca: acme.ca.clone(),
            emails: acme.email.iter().cloned().collect(),
            external_account: acme
                .eab
                .as_ref()
                .map(|eab| ExternalAccount { kid: eab.kid.clone(), hmac: eab.hmac.reveal().to_owned() }),
            terms_agreed: acme.agree_to_terms,
            challenges: self.challenges(),
            ..shearwater_acme::Options::new(self.storage.clone()?, names)
        })
    }
}

fn alpn(protocol: Protocol) -> AlpnProtocol {
    match protocol {
        Protocol::Http2 => AlpnProtocol::Http2,
        Protocol::Http11 => AlpnProtocol::Http11,
    }
}

/// Makes a self-signed certificate.
fn make(hosts: &[String]) -> Result<Pair, Failure> {
    let names: Vec<&str> = match hosts {
        [] => LOCAL_NAMES.to_vec(),
        hosts => hosts.iter().map(String::as_str).collect(),
    };
    self_signed(&names, unix_seconds()).map_err(|error| Failure::system(error.to_string(), None))
}

/// Returns the ticket keys of the process before this one.
fn inherited_tickets() -> Result<Option<Tickets>, Failure> {
    let handed = handed_state().map_err(|error| Failure::system(error.to_string(), None))?;
    let Some(export) = handed else { return Ok(None) };
    match Tickets::import(&export) {
        Ok(tickets) => Ok(Some(tickets)),
        Err(error) => {
            // Clients do whole handshakes then.
            tracing::warn!(target: "shearwater", kind = "ticket_keys", "{error}");
            Ok(None)
        }
    }
}

/// Reads ticket keys, or makes some.
fn tickets(path: Option<&Path>) -> Result<Tickets, Failure> {
    let Some(path) = path else {
        return Tickets::random(unix_seconds())
            .map_err(|error| Failure::system(error.to_string(), Some(error.help().to_owned())));
    };
    let failed =
        |error: &dyn std::fmt::Display| format!("can't use the ticket keys {}: {error}", path.display());
    let bytes = fs::read(path).map_err(|error| Failure::usage(failed(&error)))?;
    Tickets::from_file_bytes(&bytes).map_err(|error| Failure::usage_helped(failed(&error), error.help()))
}

/// Reads a certificate and its key, for `check`.
pub(crate) fn read_pair(cert: &Path, key: &Path) -> Result<PairFacts, BadPair> {
    let bad = |error: PairError| BadPair { message: error.to_string(), help: error.help().to_owned() };
    let pair = Pair::read(cert, key).map_err(bad)?;
    let facts = pair.facts();
    let addresses = facts.addresses.iter().map(ToString::to_string);
    let names = facts.dns_names.iter().cloned().chain(addresses).collect();
    Ok(PairFacts { names, not_before: facts.not_before, not_after: facts.not_after })
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
