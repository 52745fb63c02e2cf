//! `[server]`: threads, the driver, the accept queue, the end.

use shearwater::{AcceptMode, DriverChoice, Order, Server, TcpOptions};
use shearwater_config as config;

use crate::args::{self, Serve};

/// Puts what flags say in place of what the file says, and tells what they have replaced.
pub(crate) fn replace(serve: &Serve, server: &mut config::Server) -> Vec<String> {
    let default = config::Server::default();
    let mut replaced = Vec::new();
    let mut tell = |flag: String, key: &str, file: String, is_default: bool| {
        if serve.config.is_some() && !is_default {
            replaced.push(format!("{flag} in place of server.{key} = {file}"));
        }
    };
    if let Some(workers) = serve.workers.filter(|&workers| workers != server.workers) {
        tell(
            format!("--workers {workers}"),
            "workers",
            server.workers.to_string(),
            server.workers == default.workers,
        );
        server.workers = workers;
    }
    if let Some(driver) = serve.driver.map(chosen).filter(|&driver| driver != server.driver) {
        let names = (name(driver), name(server.driver));
        tell(
            format!("--driver {}", names.0),
            "driver",
            format!("{:?}", names.1),
            server.driver == default.driver,
        );
        server.driver = driver;
    }
    if let Some(accept) = serve.accept.map(asked).filter(|&accept| accept != server.accept) {
        let names = (mode(accept), mode(server.accept));
        tell(
            format!("--accept {}", names.0),
            "accept",
            format!("\"{}\"", names.1),
            server.accept == default.accept,
        );
        server.accept = accept;
    }
    if let Some(drain_s) = serve.drain.filter(|&drain_s| drain_s != server.drain_s) {
        tell(
            format!("--drain {drain_s}"),
            "drain_s",
            server.drain_s.to_string(),
            server.drain_s == default.drain_s,
        );
        server.drain_s = drain_s;
    }
    server.pin |= serve.pin;
    replaced
}

/// Puts the section into a server that will listen somewhere.
pub(crate) fn apply(section: &config::Server, server: Server) -> Server {
    server
        .workers(usize::from(section.workers))
        .driver(choice(section.driver))
        .accept_mode(mode(section.accept))
        .order(order(section.order))
        .tcp(TcpOptions { nodelay: section.tcp_nodelay, keepalive: section.tcp_keepalive })
        .trusted_gateway(section.trusted_gateway)
        .pin(section.pin)
        .backlog(section.backlog)
        .drain_ms(u64::from(section.drain_s) * 1000)
}

fn choice(driver: config::Driver) -> DriverChoice {
    match driver {
        config::Driver::Auto => DriverChoice::Auto,
        config::Driver::Epoll => DriverChoice::Epoll,
        config::Driver::Uring => DriverChoice::Uring,
        config::Driver::Kqueue => DriverChoice::Kqueue,
    }
}

fn mode(accept: config::Accept) -> AcceptMode {
    match accept {
        config::Accept::Reuseport => AcceptMode::Reuseport,
        config::Accept::Dispatch => AcceptMode::Dispatch,
    }
}

fn order(order: config::Order) -> Order {
    match order {
        config::Order::Fifo => Order::Fifo,
        config::Order::Lifo => Order::Lifo,
    }
}

fn asked(accept: args::Accept) -> config::Accept {
    match accept {
        args::Accept::Reuseport => config::Accept::Reuseport,
        args::Accept::Dispatch => config::Accept::Dispatch,
    }
}

fn chosen(driver: args::Driver) -> config::Driver {
    match driver {
        args::Driver::Auto => config::Driver::Auto,
        args::Driver::Epoll => config::Driver::Epoll,
        args::Driver::Uring => config::Driver::Uring,
        args::Driver::Kqueue => config::Driver::Kqueue,
    }
}

fn name(driver: config::Driver) -> &'static str {
    match driver {
        config::Driver::Auto => "auto",
        config::Driver::Epoll => "epoll",
        config::Driver::Uring => "uring",
        config::Driver::Kqueue => "kqueue",
    }
}
