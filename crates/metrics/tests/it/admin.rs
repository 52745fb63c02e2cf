//! The admin listener: readiness, what it refuses, and its own limits.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use shearwater::{ListenAddress, Timeouts};
use shearwater_metrics::limits::{
    ADMIN_BODY_BYTES_MAX, ADMIN_CONNECTIONS_MAX, ADMIN_HEAD_BYTES_MAX, ADMIN_REQUESTS_MAX, SITES_COUNTED_MAX,
};
use shearwater_metrics::{Admin, AdminError, AdminOptions, Metrics};
use testkit::{Client, TIMEOUT, TestClient, TestFolder, request, until_refused};

use crate::served::{FREE, on_each_driver};

#[test]
fn is_ready_while_the_server_takes_requests() {
    let metrics = Metrics::new("0");
    let admin = Admin::start(AdminOptions::at(FREE), &metrics).expect("it starts");
    let mut early = TestClient::connect(admin.address().expect("its address"));
    assert_eq!((early.get("/ready").status, early.get("/health").status), (503, 200));
    assert_eq!(early.get("/ready").text(), "starting\n");
    drop(early);
    admin.end();
    on_each_driver(Timeouts::default(), |mut served| {
        let mut admin = served.admin();
        assert_eq!((admin.get("/ready").status, admin.get("/health").status), (200, 200));
        assert_eq!(admin.get("/ready").text(), "serving\n");
        // A download keeps the server from ending.
        let mut client = served.connect();
        client.ask("GET", "/large", &[]).head();
        let running = served.running.take().expect("it serves");
        running.control().drain(60_000);
        assert_eq!((admin.get("/ready").status, admin.get("/health").status), (503, 200), "at once");
        assert_eq!(served.status().server.state, "draining");
        assert_eq!(served.scrape().value("shearwater_ready"), 0.0);
        while !client.data().is_empty() {}
        drop(client);
        running.wait_for_control().expect("it ends");
        assert_eq!((served.admin().get("/ready").status, served.admin().get("/metrics").status), (503, 200));
    });
}

#[test]
fn is_only_read() {
    on_each_driver(Timeouts::default(), |served| {
        for target in ["/metrics", "/health", "/ready", "/status.json", "/status"] {
            let mut admin = served.admin();
            let response = admin.get(target);
            assert_eq!(response.status, 200, "{target}");
            assert_eq!(response.field("Cache-Control"), Some("no-store"));
            assert_eq!(response.field("X-Content-Type-Options"), Some("nosniff"));
            assert_eq!(response.field("Cross-Origin-Resource-Policy"), Some("same-origin"));
            assert_eq!(response.field("Access-Control-Allow-Origin"), None);
            let head = admin.request("HEAD", target, &[]);
            assert_eq!((head.status, &head.body[..]), (200, &b""[..]));
            for method in ["POST", "PUT", "DELETE", "PATCH"] {
                assert_eq!(admin.request(method, target, &[]).status, 405, "{method} {target}");
            }
        }
        assert_eq!(served.admin().get("/none").status, 404);
        assert_eq!(served.admin().get("/").field("Location"), Some("/status"));
        let page = served.admin().get("/status");
        let policy = page.field("Content-Security-Policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"));
    });
}

#[test]
fn refuses_names_of_other_sites() {
    on_each_driver(Timeouts::default(), |served| {
        for (host, status) in [
            ("localhost:1", 200),
            ("127.0.0.1", 200),
            ("[::1]:9180", 200),
            ("rebound.example", 403),
            ("127.0.0.1.x", 403),
        ] {
            let head = format!("GET /status.json HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(served.admin().send(head).response("GET").status, status, "{host}");
        }
    });
}

#[test]
fn refuses_addresses_of_other_machines_unless_allowed() {
    let metrics = Metrics::new("0");
    let any = AdminOptions::at(SocketAddr::from(([0, 0, 0, 0], 0)));
    let error = Admin::start(any.clone(), &metrics).expect_err("other machines can reach it");
    assert!(matches!(&error, AdminError::Remote(address) if address.port() == 0), "{error}");
    let admin = Admin::start(AdminOptions { remote: true, ..any }, &metrics).expect("it is allowed");
    let port = admin.address().expect("its address").port();
    let mut client = TestClient::connect(([127, 0, 0, 1], port).into());
    let head = "GET /health HTTP/1.1\r\nHost: any.example\r\n\r\n";
    assert_eq!(client.send(head).response("GET").status, 200);
    drop(client);
    admin.end();
}

#[test]
fn ends_within_its_time() {
    let admin = Admin::start(AdminOptions::at(FREE), &Metrics::new("0")).expect("it starts");
    let address = admin.address().expect("its address");
    let (mut idle, mut partial) = (TestClient::connect(address), TestClient::connect(address));
    assert_eq!(idle.get("/health").status, 200);
    partial.send("GET /health HT");
    admin.end();
    until_refused(address);
    idle.is_ended();
}

#[test]
fn reports_a_taken_port() {
    let metrics = Metrics::new("0");
    let first = Admin::start(AdminOptions::at(FREE), &metrics).expect("it starts");
    let address = first.address().expect("its address");
    let error = Admin::start(AdminOptions::at(address), &metrics).expect_err("it is taken");
    let expected = format!(
        "admin listener: {address} is taken by another program: choose another port, or end that program"
    );
    assert_eq!(error.to_string(), expected);
    first.end();
}

#[test]
fn listens_on_a_unix_socket() {
    let folder = TestFolder::new();
    let path = folder.at("admin.sock");
    let admin =
        Admin::start(AdminOptions::at(ListenAddress::unix(&path)), &Metrics::new("0")).expect("it starts");
    assert_eq!((admin.path(), admin.address()), (Some(&path), None));
    let stream = UnixStream::connect(&path).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut client = TestClient::new(stream);
    // Only local programs with permission can connect, so any host is right.
    assert_eq!(client.send("GET /health HTTP/1.1\r\nHost: any\r\n\r\n").response("GET").status, 200);
    drop(client);
    admin.end();
}

#[test]
fn connections_that_do_nothing_end_and_block_no_health_check() {
    on_each_driver(Timeouts::default(), |served| {
        // A scrape has 110 KB, and 100 of them are more than the kernel buffers.
        for site in 0..SITES_COUNTED_MAX {
            let _tag = served.metrics.site_tag(&site.to_string());
        }
        let start = Instant::now();
        let held: Vec<_> = (0..ADMIN_CONNECTIONS_MAX)
            .map(|number| {
                let mut client = served.admin();
                match number % 4 {
                    0 => {}
                    1 => {
                        client.send("GET /health HT");
                    }
                    2 => assert_eq!(client.get("/health").status, 200),
                    _ => {
                        set_socket_recv_buffer_size(client.stream(), 4096).expect("a small buffer");
                        for _ in 0..ADMIN_REQUESTS_MAX {
                            client.ask("GET", "/metrics", &[]);
                        }
                    }
                }
                client
            })
            .collect();
        let mut waiting = served.admin();
        assert_eq!(waiting.get("/health").status, 200);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        // The rate of a reader is checked after 5 s, and measured for `ADMIN_WRITE_MS`.
        let until_reset = |client: &TestClient| {
            while client.stream().take_error().expect("its state").is_none() {
                assert!(start.elapsed() < Duration::from_secs(20), "it isn't reset");
                std::thread::yield_now();
            }
        };
        for (number, mut client) in held.into_iter().enumerate() {
            match number % 4 {
                3 => until_reset(&client),
                _ => drop(client.rest()),
            }
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    });
}

#[test]
fn has_small_limits_of_its_own() {
    on_each_driver(Timeouts::default(), |served| {
        let long = format!("X: {}", "x".repeat(ADMIN_HEAD_BYTES_MAX));
        assert_eq!(served.admin().try_send(request("GET", "/health", &[&long])).response("GET").status, 431);
        let body = vec![b'x'; ADMIN_BODY_BYTES_MAX as usize + 1];
        assert_eq!(served.admin().send_body("POST", "/health", &[], &body).status, 413);
        let mut busy = served.admin();
        (1..ADMIN_REQUESTS_MAX).for_each(|_| assert_eq!(busy.get("/health").field("Connection"), None));
        assert_eq!(busy.get("/health").field("Connection"), Some("close"));
        drop(busy);
        let mut held: Vec<_> = (0..ADMIN_CONNECTIONS_MAX).map(|_| served.admin()).collect();
        held.iter_mut().for_each(|client| assert_eq!(client.get("/health").status, 200));
        // Idle connections make room for others.
        assert_eq!(served.admin().get("/health").status, 200);
        drop(held);
    });
}

/// However many clients hold connections, a probe gets its response.
#[test]
fn probes_get_through_beside_active_and_silent_clients() {
    const ACTIVE: usize = ADMIN_CONNECTIONS_MAX + 1;
    on_each_driver(Timeouts::default(), |served| {
        let address = served.admin_address();
        let connect = || Client::connect(address).expect("the kernel accepts it");
        let mut active: Vec<Client> = (0..ACTIVE).map(|_| connect()).collect();
        let _silent: Vec<_> = (0..400).map(|_| connect()).collect();
        for _ in 0..3 {
            // Each asks again and again, as monitors do, by a new connection where the server has closed the last.
            for client in &mut active {
                if client.get("/health").is_err() {
                    *client = connect();
                }
            }
            assert_eq!(served.admin().get("/ready").status, 200);
        }
    });
}
