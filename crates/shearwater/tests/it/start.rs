//! Startup: addresses, workers, drivers, error messages; connections per address.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use shearwater::engine::{BodyPolicy, Head};
use shearwater::{
    AcceptMode, App, DriverChoice, Error, Limits, Reload, Request, Response, Running, Server, Service,
    StartError, Verbosity,
};
use testkit::{TIMEOUT, TestClient, assert_reset};

use crate::served::{Served, drivers, here, served_app, until};

fn refusal(started: Result<Running, Error>) -> Error {
    started.expect_err("it can't start")
}

#[test]
fn rejects_invalid_addresses_with_an_example() {
    for bad in ["", "8080", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:70000", "[::1]", "127.0.0.1:-1", "::1"]
    {
        let error = refusal(Server::bind(bad).start(served_app()));
        assert!(matches!(&error, Error::Address { given, .. } if given == bad), "{error:?}");
        let sentence = error.to_string();
        assert!(sentence.contains(&format!("{bad:?}")) && sentence.contains("127.0.0.1:8080"), "{sentence}");
    }
}

#[test]
fn binds_nothing_if_one_address_is_bad() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let error = refusal(Server::bind(free.to_string()).listen("nowhere").start(served_app()));
    assert!(matches!(error, Error::Address { .. }));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken_address = taken.local_addr().expect("an address").to_string();
    let error = refusal(Server::bind(free.to_string()).listen(taken_address).start(served_app()));
    assert!(matches!(error, Error::Start(StartError::Bind { .. })));
    TcpListener::bind(free).expect("nobody listens there");
}

#[test]
fn reports_a_taken_port() {
    let foreign = TcpListener::bind("127.0.0.1:0").expect("a port");
    let foreign_address = foreign.local_addr().expect("an address");
    let own = [1, 3].map(|workers| Served::of(here().workers(workers), served_app()));
    for address in own.iter().map(|served| served.address).chain([foreign_address]) {
        for workers in [1, 2] {
            let error = refusal(Server::bind(address.to_string()).workers(workers).start(served_app()));
            assert!(matches!(&error, Error::Start(StartError::Bind { .. })), "{error:?}");
            let expected =
                format!("{address} is taken by another program: choose another port, or end that program");
            assert_eq!(error.to_string(), expected);
            // What a `main` that returns it prints.
            assert_eq!(format!("{error:?}"), expected);
        }
    }
    assert_eq!(own[1].connect().get("/").text(), "served");
}

#[test]
fn rejects_an_address_of_another_host() {
    let error = refusal(Server::bind("192.0.2.1:0").start(served_app()));
    assert!(error.to_string().starts_with("can't listen on 192.0.2.1:0: "), "{error}");
}

#[test]
fn rejects_an_unavailable_driver() {
    let found = Served::of(here().driver(DriverChoice::Auto), served_app());
    for (driver, name) in
        [(DriverChoice::Epoll, "epoll"), (DriverChoice::Uring, "uring"), (DriverChoice::Kqueue, "kqueue")]
    {
        match here().driver(driver).start(served_app()) {
            Ok(running) => {
                let start_report = running.start_report().clone();
                let _served = Served::running(running);
                assert_eq!((start_report.driver, start_report.driver_reason.as_str()), (name, "as asked"));
            }
            Err(error) => {
                assert!(matches!(error, Error::Start(StartError::Driver { .. })));
                assert_ne!(found.driver, name, "it was there a moment ago");
                let sentence = error.to_string();
                assert!(sentence.starts_with(&format!("driver {name} isn't there: ")), "{sentence}");
                assert!(sentence.ends_with(&format!("; --driver auto takes {}", found.driver)), "{sentence}");
            }
        }
    }
}

#[test]
fn listens_on_every_address() {
    if testkit::tls::skips("its server is in clear") {
        return;
    }
    let server = here().listen("127.0.0.2:0").listen("127.0.0.1:0").workers(2);
    let running = server.start(served_app()).expect("starts");
    let addresses = running.start_report().addresses.clone();
    let served = Served::running(running);
    assert_eq!(addresses.len(), 3);
    assert_eq!(addresses[0], served.address);
    for address in addresses {
        assert_ne!(address.port(), 0);
        assert_eq!(TestClient::connect(address).get("/").text(), "served");
    }
}

#[test]
fn listens_on_ipv6_if_available() {
    if testkit::tls::skips("its server is in clear") {
        return;
    }
    let started =
        Server::bind("[::1]:0").http2(crate::local::http2()).verbosity(Verbosity::Off).start(served_app());
    assert_eq!(started.is_ok(), TcpListener::bind("[::1]:0").is_ok());
    if let Ok(running) = started {
        let served = Served::running(running);
        assert!(served.address.is_ipv6());
        assert_eq!(served.connect().get("/").text(), "served");
    }
}

#[test]
fn creates_one_service_per_worker() {
    struct Number(usize);
    impl Service for Number {
        fn respond(&self, _: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
            response.text(&self.0.to_string());
        }
    }
    for workers in [1, 2, 5] {
        let made = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&made);
        let make = move |number| {
            seen.lock().expect("unpoisoned").push(number);
            Number(number)
        };
        let running = here().workers(workers).pin(true).start_service(make).expect("starts");
        assert_eq!(running.start_report().workers, workers);
        let served = Served::running(running);
        for _ in 0..20 {
            let number: usize = served.connect().get("/").text().parse().expect("a number");
            assert!(number < workers);
        }
        let totals = served.stop();
        assert_eq!((totals.requests, totals.connections_accepted), (20, 20));
        let mut made = made.lock().expect("unpoisoned").clone();
        made.sort_unstable();
        assert_eq!(made, (0..workers).collect::<Vec<_>>());
    }
}

#[test]
fn start_report_holds_the_settings() {
    let running = here().workers(0).backlog(77).start(served_app()).expect("starts");
    let start_report = running.start_report().clone();
    let _served = Served::running(running);
    assert!(start_report.workers >= 1);
    assert_eq!(start_report.backlog, 77);
    assert!(start_report.descriptors.soft_now >= start_report.descriptors.soft_before);
    assert!(start_report.connections_max >= start_report.workers);
    assert!((1 << 20..=256 << 20).contains(&start_report.buffered_bytes_max));
    assert!(!start_report.driver_reason.is_empty());
    assert!(["epoll", "kqueue", "uring"].contains(&start_report.driver));
}

/// A service that panics when it is freed, if it should.
struct Fragile(bool);

impl Service for Fragile {
    fn body_policy(&self, _: &Head<'_>) -> BodyPolicy {
        BodyPolicy::Buffer { bytes_max: 1 }
    }

    fn respond(&self, _: &shearwater::engine::Request<'_>, _: &mut Response<'_>) {}
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.0, "it is fragile");
    }
}

#[test]
fn a_service_that_cannot_be_made_fails_the_start() {
    let make = |number| if number == 1 { panic!("no service for you") } else { Fragile(false) };
    for driver in drivers() {
        for mode in [AcceptMode::Reuseport, AcceptMode::Dispatch] {
            let server = here().driver(driver).accept_mode(mode).workers(3);
            let error = refusal(server.start_service(make));
            let expected = "can't make the service of worker 1: the function that makes it panicked (no service for you)";
            assert_eq!(error.to_string(), expected);
            assert!(matches!(error, Error::Start(StartError::Service { worker: 1, .. })));
        }
    }
}

#[test]
fn reports_a_failed_worker_and_ends_the_others() {
    for driver in drivers() {
        for mode in [AcceptMode::Reuseport, AcceptMode::Dispatch] {
            let server = here().driver(driver).accept_mode(mode).workers(3);
            let running = server.start_service(|_| Fragile(true)).expect("starts");
            let mut client = TestClient::connect(running.address());
            client.ask("POST", "/", &["Content-Length: 1", "Expect: 100-continue"]);
            assert_eq!(client.head().status, 100, "the request has begun");
            let reloading = running.control().reload(Reload::new(|_, _: &Fragile| Fragile(false)));
            reloading.expect("it serves").wait(TIMEOUT).expect("every worker takes it");
            // The worker frees its old service with the request.
            client.send("x");
            let error = running.wait().expect_err("a worker has failed");
            assert!(error.to_string().ends_with(" has failed: it is fragile"), "{error}");
            assert!(matches!(error, Error::Failed(failure) if failure.worker.is_some()));
        }
    }
}

#[test]
fn grows_the_descriptor_table_at_startup() {
    let status_of = || std::fs::read_to_string("/proc/self/status");
    if status_of().is_err() {
        println!("skipped: this system doesn't tell the size of the table");
        return;
    }
    let table_entries = || -> u64 {
        let status = status_of().expect("this process has a status");
        let line =
            status.lines().find_map(|line| line.strip_prefix("FDSize:")).expect("the size of its table");
        line.trim().parse().expect("a number")
    };
    let running = here().start(served_app()).expect("starts");
    let allowed = running.start_report().descriptors.soft_now;
    let served = Served::running(running);
    assert!(table_entries() >= allowed.min(65_536), "{} of {allowed}", table_entries());
    served.stop();
}

fn limited_per_address(server: Server) -> Served {
    let limits = Limits { connections_per_address_max: 2, ..Limits::default() };
    Served::of(server.limits(limits), App::new().fallback(|_: &Request, _: &mut Response| {}))
}

#[track_caller]
fn responded(client: &mut TestClient) {
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn limits_connections_per_address() {
    let served = limited_per_address(here());
    let (mut first, mut second) = (served.connect(), served.connect());
    responded(&mut first);
    responded(&mut second);
    assert_reset(served.address);
    first.end_sending().is_ended();
    drop(first);
    until("the close is counted", || served.control.totals().connections_closed >= 2);
    responded(&mut served.connect());
    drop(second);
    assert_eq!(served.stop().connections_refused, 1);
}

#[test]
fn counts_both_forms_of_an_ipv4_address_as_one() {
    if testkit::tls::skips("its server is in clear") {
        return;
    }
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: this system has no IPv6");
        return;
    }
    let both_kinds = here().listen("[::]:0");
    let served = limited_per_address(both_kinds);
    let [plain, mapped] = served.addresses[..] else { panic!("two listeners") };
    let mapped_v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, mapped.port()));
    let mapped = SocketAddr::from((Ipv4Addr::LOCALHOST, mapped.port()));
    let mut clients = [plain, mapped].map(TestClient::connect);
    clients.iter_mut().for_each(responded);
    assert_reset(plain);
    assert_reset(mapped);
    // Another address has its own count.
    let mut others = [mapped_v6; 2].map(TestClient::connect);
    others.iter_mut().for_each(responded);
    assert_reset(mapped_v6);
    drop((clients, others));
    assert_eq!(served.stop().connections_refused, 3);
}
