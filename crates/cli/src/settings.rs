//! Sections of the configuration as options of the server and its parts.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use shearwater::{
    AcceptMode, ClientHeader, DriverChoice, Http2Options, Limits, ListenAddress, Order, Server, TcpOptions,
    Timeouts,
};
use shearwater_config::{self as config, Address, Choices, Config, Listen};
use shearwater_files::{CacheLimits, Links};

use crate::args::Serve;
use crate::flag_site::FlagSite;
use crate::proxies;
use crate::tls;

/// Returns the limits of `[limits]` and `[performance]`.
pub(crate) fn limits(config: &Config) -> Limits {
    let (limits, performance) = (&config.limits, &config.performance);
    let default = Limits::default();
    Limits {
        head_bytes_max: size(limits.head_bytes_max.into()),
        target_bytes_max: size(limits.target_bytes_max.into()),
        fields_max: usize::from(limits.fields_max),
        body_bytes_max: limits.body_bytes_max,
        buffered_bytes_max: limits.buffered_bytes_max.map_or(default.buffered_bytes_max, size),
        connections_per_address_max: limits.connections_per_address_max,
        requests_per_connection_max: limits.requests_per_connection_max,
        body_bytes_per_second_min: limits.body_bytes_per_second_min,
        send_bytes_per_second_min: limits.send_bytes_per_second_min,
        linger_bytes_max: limits.linger_bytes_max,
        receive_bytes: size(performance.request_buffer_size.into()),
        output_bytes_max: performance.response_buffer_size.into(),
        ..default
    }
}

/// Returns the timeouts of `[timeouts]` and `[performance]`.
pub(crate) fn timeouts(config: &Config) -> Timeouts {
    let (timeouts, performance) = (&config.timeouts, &config.performance);
    Timeouts {
        first_head_ms: ms(performance.connection_timeout),
        idle_ms: ms(performance.keep_alive_timeout),
        head_ms: ms(timeouts.head),
        body_ms: ms(timeouts.body),
        body_grace_ms: ms(timeouts.body_grace),
        write_ms: ms(timeouts.write),
        linger_ms: ms(timeouts.linger),
        drain_idle_ms: ms(timeouts.drain_idle),
        ..Timeouts::default()
    }
}

/// Returns the limits of `[cache]` for each of so many workers; 0: one for each core.
pub(crate) fn cache(cache: &config::Cache, workers: u16) -> CacheLimits {
    if !cache.enabled {
        return CacheLimits { hashed_bytes_max: cache.hashed_bytes_max, ..CacheLimits::none() };
    }
    let share = || CacheLimits::of_memory(usize::from(workers)).cached_bytes_max;
    CacheLimits {
        cached_file_bytes_max: cache.file_bytes_max,
        cached_bytes_max: cache.bytes_max.unwrap_or_else(share),
        cached_files_max: size(cache.entries_max.into()),
        hashed_bytes_max: cache.hashed_bytes_max,
    }
}

/// Returns the symbolic links that are followed.
pub(crate) fn links(symlinks: config::Symlinks) -> Links {
    match symlinks {
        config::Symlinks::Inside => Links::Inside,
        config::Symlinks::Never => Links::Never,
        config::Symlinks::Follow => Links::Follow,
    }
}

pub(crate) fn driver(driver: config::Driver) -> DriverChoice {
    match driver {
        config::Driver::Auto => DriverChoice::Auto,
        config::Driver::Epoll => DriverChoice::Epoll,
        config::Driver::Uring => DriverChoice::Uring,
        config::Driver::Kqueue => DriverChoice::Kqueue,
    }
}

/// Applies `[server]`, `limits.streams_max` and `performance.max_connections` to a server.
pub(crate) fn apply(config: &Config, server: Server) -> Server {
    let section = &config.server;
    let server = server
        .workers(usize::from(section.workers))
        .driver(driver(section.driver))
        .accept_mode(match section.accept {
            config::Accept::Reuseport => AcceptMode::Reuseport,
            config::Accept::Dispatch => AcceptMode::Dispatch,
        })
        .order(match section.order {
            config::Order::Fifo => Order::Fifo,
            config::Order::Lifo => Order::Lifo,
        })
        .tcp(TcpOptions { nodelay: section.tcp_nodelay, keepalive: section.tcp_keepalive })
        .http2(Http2Options {
            prior_knowledge: section.http2_prior_knowledge,
            streams_max: config.limits.streams_max.into(),
        })
        .trusted_proxies(proxies::trusted(section))
        .proxy_protocol(section.proxy_protocol == config::ProxyProtocol::Required)
        .pin(section.pin)
        .backlog(section.backlog)
        .drain_ms(ms(section.drain_timeout));
    let server = match section.client_header {
        config::ClientHeader::None => server,
        config::ClientHeader::XForwardedFor => server.client_header(ClientHeader::XForwardedFor),
        config::ClientHeader::Forwarded => server.client_header(ClientHeader::Forwarded),
    };
    match config.performance.max_connections {
        0 => server,
        connections => server.connections_max(connections),
    }
}

/// A setting that only a restart changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FixedSetting {
    key: &'static str,
    pub(crate) value: String,
}

impl fmt::Display for FixedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` to {}", self.key, self.value)
    }
}

/// Returns the settings that a reload doesn't change, always in the same order. All others are addresses, belong to a site,
/// or are limits and timeouts that [`Reload`](shearwater::Reload) changes.
pub(crate) fn fixed(config: &Config) -> Vec<FixedSetting> {
    let Config { server, performance, limits, log, admin, tls, acme, .. } = config;
    let path = |path: &Option<PathBuf>| {
        path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string())
    };
    // Not its key.
    let account = acme.eab.as_ref().map_or("none", |eab| &eab.kid);
    let statuses: Vec<_> = log.exclude_statuses.iter().map(|class| class.name()).collect();
    let given = |key, value: &dyn fmt::Display| FixedSetting { key, value: value.to_string() };
    let buffered =
        limits.buffered_bytes_max.map_or_else(|| "its default".to_owned(), |bytes| bytes.to_string());
    vec![
        given("server.workers", &server.workers),
        given("server.http2_prior_knowledge", &server.http2_prior_knowledge),
        given("server.tcp_nodelay", &server.tcp_nodelay),
        given("server.tcp_keepalive", &server.tcp_keepalive),
        given("server.trusted_proxies", &server.trusted_proxies.join(", ")),
        given("server.proxy_protocol", &server.proxy_protocol.name()),
        given("server.client_header", &server.client_header.name()),
        given("server.backlog", &server.backlog),
        given("server.driver", &server.driver.name()),
        given("server.accept", &server.accept.name()),
        given("server.order", &server.order.name()),
        given("server.pin", &server.pin),
        given("server.drain_timeout", &format_args!("{:?}", server.drain_timeout)),
        given("performance.max_connections", &performance.max_connections),
        given("performance.request_buffer_size", &performance.request_buffer_size),
        given("limits.head_bytes_max", &limits.head_bytes_max),
        given("limits.target_bytes_max", &limits.target_bytes_max),
        given("limits.fields_max", &limits.fields_max),
        given("limits.buffered_bytes_max", &buffered),
        given("limits.connections_per_address_max", &limits.connections_per_address_max),
        given("limits.requests_per_connection_max", &limits.requests_per_connection_max),
        given("limits.streams_max", &limits.streams_max),
        given("tls.storage", &path(&tls.storage)),
        given("acme.directory", &acme.directory),
        given("acme.email", &acme.email.as_deref().unwrap_or("none")),
        given("acme.ca", &path(&acme.ca)),
        given("acme.eab", &account),
        given("acme.agree_to_terms", &acme.agree_to_terms),
        given("log.access", &log.access.as_deref().unwrap_or("none")),
        given("log.format", &log.format),
        given("log.exclude_paths", &log.exclude_paths.join(", ")),
        given("log.exclude_statuses", &statuses.join(", ")),
        given("admin.listen", &admin.listen.as_ref().map_or_else(|| "none".to_owned(), Address::to_string)),
        given("admin.remote", &admin.remote),
    ]
}

/// Converts a size in memory; one beyond the address space is no limit.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

/// A server with its addresses.
pub(crate) struct Listening {
    pub(crate) server: Server,
    /// All addresses, for reports.
    pub(crate) addresses: Vec<String>,
    /// Those whose connections are by TLS.
    pub(crate) encrypted: Vec<ListenAddress>,
}

impl Listening {
    /// Returns the ports of addresses without TLS.
    pub(crate) fn plain_ports(&self) -> Vec<u16> {
        let encrypted: Vec<String> = self.encrypted.iter().map(ToString::to_string).collect();
        let plain = self.addresses.iter().filter(|address| !encrypted.contains(address));
        plain.filter_map(|address| Some(address.parse::<SocketAddr>().ok()?.port())).collect()
    }
}

/// Returns an address whose connections begin with TLS.
fn with_tls(address: ListenAddress) -> ListenAddress {
    address.tcp().map_or(address, ListenAddress::Tls)
}

/// Returns a server for the addresses of the command line or the file. Adds a line to `overridden` for each address of the file
/// that `--listen` overrides. The address of `--listen` has TLS if a flag gives its site a certificate.
pub(crate) fn listening(
    serve: &Serve,
    by_flags: &FlagSite,
    config: &Config,
    overridden: &mut Vec<String>,
) -> Listening {
    let config::Server { http_port, https_port, .. } = config.server;
    let ports = [(http_port, false), (https_port, true)];
    let ports = ports.into_iter().filter_map(|(port, is_tls)| Some((all_addresses(port?), is_tls)));
    let listens = config.listen.iter().map(|listen| (address(listen), listen.tls));
    let of_file: Vec<(ListenAddress, bool)> = ports.chain(listens).collect();
    let local = tls::default_address(by_flags, config).and_then(|local| local.parse::<SocketAddr>().ok());
    let mut all: Vec<(ListenAddress, bool)> = match (&serve.listen, local) {
        (Some(flag), _) => {
            let names = of_file.iter().map(|(address, _)| address);
            overridden.extend(names.map(|file| format!("--listen {flag} overrides the address {file}")));
            let encrypted = by_flags.is_encrypted().then(|| named(flag)).flatten().map(with_tls);
            let server = encrypted.clone().map_or_else(|| Server::bind(flag), Server::at);
            let server = server.inherited_listeners();
            return Listening {
                server,
                addresses: vec![flag.clone()],
                encrypted: encrypted.into_iter().collect(),
            };
        }
        (None, Some(local)) => of_file.into_iter().chain([(local.into(), true)]).collect(),
        (None, None) => of_file,
    };
    for (address, is_tls) in &mut all {
        if *is_tls {
            *address = with_tls(address.clone());
        }
    }
    let addresses: Vec<String> = all.iter().map(|(address, _)| address.to_string()).collect();
    let encrypted = all.iter().filter(|(_, is_tls)| *is_tls).map(|(address, _)| address.clone()).collect();
    let mut all = all.into_iter().map(|(address, _)| address);
    match all.next() {
        Some(first) => {
            let server = all.fold(Server::at(first), Server::listen_at).inherited_listeners();
            Listening { server, addresses, encrypted }
        }
        None => Listening {
            server: Server::inherited_or(DEFAULT_ADDRESS),
            addresses: vec![DEFAULT_ADDRESS.to_owned()],
            encrypted,
        },
    }
}

/// Parses an address of the command line; `None`: the server reports it.
fn named(flag: &str) -> Option<ListenAddress> {
    match flag.strip_prefix("unix:") {
        Some(path) => Some(ListenAddress::unix(path)),
        None => flag.parse::<SocketAddr>().ok().map(Into::into),
    }
}

fn address(listen: &Listen) -> ListenAddress {
    match (&listen.address, listen.mode) {
        (Address::Unix(path), Some(mode)) => ListenAddress::Unix { path: path.clone(), mode },
        (address, _) => listen_address(address),
    }
}

/// Returns an address of a configuration, with the usual mode of a socket.
pub(crate) fn listen_address(address: &Address) -> ListenAddress {
    match address {
        Address::Tcp(address) => (*address).into(),
        Address::Unix(path) => ListenAddress::unix(path),
    }
}

/// Returns the unspecified address: of IPv6, which includes IPv4, or of IPv4 on systems without IPv6.
fn all_addresses(port: u16) -> ListenAddress {
    match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into(),
        Err(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into(),
    }
}

#[cfg(test)]
mod tests {
    use shearwater::Server;
    use shearwater_config::Config;

    use super::apply;

    #[test]
    fn applies_the_keys_of_http2() {
        let mut config = Config::default();
        let applied = |config: &Config| format!("{:?}", apply(config, Server::bind("127.0.0.1:0")));
        let default = "http2: Http2Options { prior_knowledge: false, streams_max: 100 }";
        assert!(applied(&config).contains(default), "{}", applied(&config));
        (config.server.http2_prior_knowledge, config.limits.streams_max) = (true, 7);
        let changed = "http2: Http2Options { prior_knowledge: true, streams_max: 7 }";
        assert!(applied(&config).contains(changed), "{}", applied(&config));
    }
}
