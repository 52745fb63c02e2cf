//! Trusted proxies: the keys of `[server]` that name them, as options of the server.

use shearwater::TrustedProxies;
use shearwater_config::{self as config, Config, Finding, Findings, ProxyProtocol};

/// Returns the trusted proxies of a checked configuration.
pub(crate) fn trusted(server: &config::Server) -> TrustedProxies {
    // `check` has reported invalid ones. Without any, nothing is trusted.
    TrustedProxies::new(&server.trusted_proxies).unwrap_or_default()
}

/// Checks the values that only the server can check, and keys that need each other.
pub(crate) fn check(config: &Config) -> Findings {
    let mut findings = Findings::default();
    let mut error = |key: String, message: String, help: &str| {
        let help = Some(help.to_owned());
        findings.errors.push(Finding { key: format!("server.{key}"), message, help });
    };
    let server = &config.server;
    if let Err(wrong) = TrustedProxies::new(&server.trusted_proxies) {
        error(format!("trusted_proxies[{}]", wrong.index), wrong.reason().to_owned(), wrong.help());
    }
    if !server.trusted_proxies.is_empty() {
        return findings;
    }
    let name = "name them: trusted_proxies = [\"10.0.0.0/8\"]";
    if server.proxy_protocol == ProxyProtocol::Required {
        let message = "no proxy is trusted that could send a PROXY header".to_owned();
        error("proxy_protocol".to_owned(), message, name);
    }
    if server.client_header != config::ClientHeader::None {
        error("client_header".to_owned(), "no proxy is trusted that could set this header".to_owned(), name);
    }
    findings
}
