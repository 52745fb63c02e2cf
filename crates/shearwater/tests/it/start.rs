//! Startup: addresses, workers, drivers, and error messages.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use shearwater::{
    App, DriverChoice, Error, Request, Response, Running, Server, Service, StartError, Verbosity,
};

use crate::client::Client;
use crate::served::{Served, here};

fn app() -> App {
    App::of(|_: &Request, response: &mut Response| {
        response.text("served");
    })
}

fn refusal(started: Result<Running, Error>) -> Error {
    started.expect_err("it can't start")
}

#[test]
fn an_address_that_is_none_is_told_with_an_example() {
    for bad in ["", "8080", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:70000", "[::1]", "127.0.0.1:-1", "::1"]
    {
        let error = refusal(Server::new(bad).start_app(app()));
        assert!(matches!(&error, Error::Address { given, .. } if given == bad), "{error:?}");
        let sentence = error.to_string();
        assert!(sentence.contains(&format!("{bad:?}")) && sentence.contains("127.0.0.1:8080"), "{sentence}");
    }
}

#[test]
fn a_bad_address_among_good_ones_leaves_nothing_bound() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let error = refusal(Server::new(free.to_string()).listen("nowhere").start_app(app()));
    assert!(matches!(error, Error::Address { .. }));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken_address = taken.local_addr().expect("an address").to_string();
    let error = refusal(Server::new(free.to_string()).listen(taken_address).start_app(app()));
    assert!(matches!(error, Error::Start(StartError::Bind { .. })));
    TcpListener::bind(free).expect("nobody listens there");
}

#[test]
fn a_taken_port_is_told_whoever_has_it() {
    let foreign = TcpListener::bind("127.0.0.1:0").expect("a port");
    let foreign_address = foreign.local_addr().expect("an address");
    let own = [1, 3].map(|workers| Served::of(here().workers(workers), app()));
    for address in own.iter().map(|served| served.address).chain([foreign_address]) {
        for workers in [1, 2] {
            let error = refusal(Server::new(address.to_string()).workers(workers).start_app(app()));
            assert!(matches!(&error, Error::Start(StartError::Bind { .. })), "{error:?}");
            let expected =
                format!("{address} is taken by another program: choose another port, or end that program");
            assert_eq!(error.to_string(), expected);
        }
    }
    assert_eq!(own[1].connect().request("GET", "/", &[]).text(), "served");
}

#[test]
fn an_address_of_another_host_is_refused() {
    let error = refusal(Server::new("192.0.2.1:0").start_app(app()));
    assert!(error.to_string().starts_with("can't listen on 192.0.2.1:0: "), "{error}");
}

#[test]
fn a_driver_that_is_not_there_is_refused_with_what_is() {
    let found = Served::of(here().driver(DriverChoice::Auto), app());
    for (driver, name) in
        [(DriverChoice::Epoll, "epoll"), (DriverChoice::Uring, "uring"), (DriverChoice::Kqueue, "kqueue")]
    {
        match here().driver(driver).start_app(app()) {
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
fn every_address_is_served() {
    let server = here().listen("127.0.0.2:0").listen("127.0.0.1:0").workers(2);
    let running = server.start_app(app()).expect("starts");
    let addresses = running.start_report().addresses.clone();
    let served = Served::running(running);
    assert_eq!(addresses.len(), 3);
    assert_eq!(addresses[0], served.address);
    for address in addresses {
        assert_ne!(address.port(), 0);
        assert_eq!(Client::connect(address).request("GET", "/", &[]).text(), "served");
    }
}

#[test]
fn ipv6_is_served_where_there_is_any() {
    let started = Server::new("[::1]:0").verbosity(Verbosity::Off).start_app(app());
    assert_eq!(started.is_ok(), TcpListener::bind("[::1]:0").is_ok());
    if let Ok(running) = started {
        let served = Served::running(running);
        assert!(served.address.is_ipv6());
        assert_eq!(served.connect().request("GET", "/", &[]).text(), "served");
    }
}

#[test]
fn each_worker_gets_its_own_service() {
    struct Number(usize);
    impl Service for Number {
        fn respond(&self, _: &Request<'_>, response: &mut Response<'_>) {
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
        let running = here().workers(workers).pin(true).start(make).expect("starts");
        assert_eq!(running.start_report().workers, workers);
        let served = Served::running(running);
        for _ in 0..20 {
            let number: usize = served.connect().request("GET", "/", &[]).text().parse().expect("a number");
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
fn what_was_settled_is_told() {
    let running = here().workers(0).backlog(77).start_app(app()).expect("starts");
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

#[test]
fn a_worker_that_can_not_be_made_ends_the_others_and_is_told() {
    struct Never;
    impl Service for Never {
        fn respond(&self, _: &Request<'_>, _: &mut Response<'_>) {}
    }
    let make = |number| if number == 1 { panic!("no service for you") } else { Never };
    let running = here().workers(3).start(make).expect("the threads start");
    let error = running.wait().expect_err("a worker has failed");
    assert_eq!(error.to_string(), "worker 1 has failed: no service for you");
    assert!(matches!(error, Error::Failed(failure) if failure.worker == Some(1)));
}

#[test]
fn the_table_of_descriptors_has_room_from_the_start() {
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
    let running = here().start_app(app()).expect("starts");
    let allowed = running.start_report().descriptors.soft_now;
    let served = Served::running(running);
    assert!(table_entries() >= allowed.min(65_536), "{} of {allowed}", table_entries());
    served.stop();
}
