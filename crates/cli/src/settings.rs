//! Sections of the configuration as options of the server and its parts.

use std::time::Duration;

use shearwater::{AcceptMode, DriverChoice, Limits, Order, Server, TcpOptions, Timeouts, Verbosity};
use shearwater_config::{self as config, Config, Level};
use shearwater_files::CacheLimits;

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

/// Returns the limits of `[cache]`.
pub(crate) fn cache(cache: &config::Cache) -> CacheLimits {
    if !cache.enabled {
        return CacheLimits::none();
    }
    CacheLimits {
        cached_file_bytes_max: cache.file_bytes_max,
        cached_bytes_max: cache.bytes_max,
        cached_files_max: size(cache.entries_max.into()),
    }
}

/// Applies `[server]`, `[logging]` and `performance.max_connections` to a server.
pub(crate) fn apply(config: &Config, server: Server) -> Server {
    let section = &config.server;
    let server = server
        .workers(usize::from(section.workers))
        .driver(match section.driver {
            config::Driver::Auto => DriverChoice::Auto,
            config::Driver::Epoll => DriverChoice::Epoll,
            config::Driver::Uring => DriverChoice::Uring,
            config::Driver::Kqueue => DriverChoice::Kqueue,
        })
        .accept_mode(match section.accept {
            config::Accept::Reuseport => AcceptMode::Reuseport,
            config::Accept::Dispatch => AcceptMode::Dispatch,
        })
        .order(match section.order {
            config::Order::Fifo => Order::Fifo,
            config::Order::Lifo => Order::Lifo,
        })
        .tcp(TcpOptions { nodelay: section.tcp_nodelay, keepalive: section.tcp_keepalive })
        .trusted_gateway(section.trusted_gateway)
        .pin(section.pin)
        .backlog(section.backlog)
        .drain_ms(ms(section.drain_timeout))
        .verbosity(match config.logging.level {
            Level::Off => Verbosity::Off,
            Level::Error => Verbosity::Error,
            Level::Warn => Verbosity::Warn,
            Level::Info => Verbosity::Info,
            Level::Debug => Verbosity::Debug,
        });
    match config.performance.max_connections {
        0 => server,
        connections => server.connections_max(connections),
    }
}

/// Converts a size in memory; one beyond the address space is no limit.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
