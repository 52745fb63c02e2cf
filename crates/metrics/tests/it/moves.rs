//! Each metric moves as it should, on each driver.

use std::time::Instant;

use shearwater::{App, Limits, MessageLevel, Server, Timeouts, Verbosity};
use shearwater_metrics::document::Level;
use shearwater_metrics::limits::EARLY_MESSAGES_MAX;
use shearwater_metrics::{CacheCounts, CompressionCounts, LogCounts, Metrics};
use testkit::http2::frame::{self, Frame};
use testkit::http2::request_fields;
use testkit::{TIMEOUT, request};

use crate::served::on_each_driver;

#[test]
fn counts_requests_by_method_and_class() {
    on_each_driver(Timeouts::default(), |served| {
        let mut client = served.connect();
        for (method, target, status) in [
            ("GET", "/", 200),
            ("HEAD", "/", 200),
            ("GET", "/none", 404),
            ("POST", "/", 303),
            ("DELETE", "/", 405),
        ] {
            assert_eq!(client.request(method, target, &[]).status, status, "{method} {target}");
        }
        assert_eq!(served.connect().request("GET", "/panic", &[]).status, 500);
        assert_eq!(served.connect().request("GET", "/invalid", &[]).status, 500);
        assert_eq!(served.connect().send("GET / HTTP/1.1\r\n\r\n").response("GET").status, 400);
        // Pipelined.
        let both = [request("GET", "/", &[]), request("GET", "/", &[])].concat();
        client.send(both);
        (0..2).for_each(|_| assert_eq!(client.response("GET").status, 200));
        let scraped = served.until(|scraped| scraped.sum("shearwater_requests_total") >= 10.0);
        for (method, class, count) in [
            ("GET", "2xx", 3.0),
            ("HEAD", "2xx", 1.0),
            ("GET", "4xx", 2.0),
            ("POST", "3xx", 1.0),
            ("DELETE", "4xx", 1.0),
            ("GET", "5xx", 2.0),
            ("GET", "none", 0.0),
        ] {
            assert_eq!(scraped.requests(method, class), count, "{method} {class}");
        }
        for name in ["request_duration_seconds", "request_first_byte_seconds"] {
            assert_eq!(scraped.value(&format!("shearwater_{name}_count")), 10.0);
        }
        assert_eq!(scraped.value("shearwater_request_ends_total{end=\"complete\"}"), 10.0);
        assert_eq!(scraped.value("shearwater_handler_panics_total"), 1.0);
        assert_eq!(scraped.value("shearwater_handler_errors_total"), 1.0);
        assert!(scraped.value("shearwater_request_duration_seconds_sum") > 0.0);
        let status = served.status();
        assert_eq!((status.requests.total, status.requests.by_class["5xx"]), (10, 2));
        assert_eq!((status.requests.by_method["GET"], status.faults["handler_panics"]), (7, 1));
        assert_eq!((status.duration_seconds.count, status.ends["complete"]), (10, 10));
        drop(client);
    });
}

#[test]
fn counts_connections_and_bytes() {
    on_each_driver(Timeouts::default(), |served| {
        let mut client = served.connect();
        // io_uring counts the bytes of a send in the next turn.
        (0..2).for_each(|_| drop(client.get("/")));
        let scraped = served.scrape();
        assert_eq!(scraped.value("shearwater_connections"), 1.0);
        assert_eq!(scraped.value("shearwater_connections_accepted_total"), 1.0);
        assert!(scraped.value("shearwater_received_bytes_total") >= request("GET", "/", &[]).len() as f64);
        let sent = served.until(|scraped| scraped.value("shearwater_sent_bytes_total") > 0.0);
        assert!(sent.value("shearwater_sent_bytes_total") < 1000.0);
        drop(client);
        let scraped = served.until(|scraped| scraped.value("shearwater_connections_closed_total") == 1.0);
        assert_eq!(scraped.value("shearwater_connections"), 0.0);
        let connections = served.status().connections.expect("known");
        assert_eq!((connections.open, connections.accepted, connections.closed), (0, 1, 1));
    });
}

#[test]
fn counts_responses_in_flight_and_disconnected_clients() {
    on_each_driver(Timeouts::default(), |served| {
        let sending = "shearwater_connections_in_state{state=\"sending\"}";
        let mut client = served.connect();
        client.ask("GET", "/large", &[]).head();
        served.until(|scraped| scraped.value(sending) == 1.0);
        drop(client);
        let scraped = served
            .until(|scraped| scraped.value("shearwater_request_ends_total{end=\"disconnected\"}") == 1.0);
        assert_eq!(scraped.requests("GET", "2xx"), 1.0);
        served.until(|scraped| scraped.value(sending) == 0.0);
        // A request that isn't complete.
        let mut client = served.connect();
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
        let unfinished = "shearwater_connections_in_state{state=\"unfinished\"}";
        served.until(|scraped| scraped.value(unfinished) == 1.0);
        client.send("cde").response("POST");
        served.until(|scraped| scraped.value(unfinished) == 0.0);
    });
}

#[test]
fn counts_connections_and_ends_of_http2() {
    on_each_driver(Timeouts::default(), |served| {
        assert_eq!(served.status().http2, None);
        let mut client = served.connect_by_http2();
        let stream = client.send("GET", "/", &[], b"").expect("it is sent");
        assert_eq!(client.response(stream).expect("a response").status, 200);
        // An idle connection has no unfinished request.
        let unfinished = "shearwater_connections_in_state{state=\"unfinished\"}";
        served.until(|scraped| scraped.value(unfinished) == 0.0);
        let stream = client.send("GET", "/large", &[], b"").expect("it is sent");
        client.head(stream).expect("a head");
        served.until(|scraped| scraped.value(unfinished) == 1.0);
        client.session().reset(stream, frame::CANCEL);
        // Its content is longer than it says.
        let fields = [("content-length", "1")];
        let stream = client.session().begin(&request_fields("http", "POST", "/", &fields));
        client.session().send_data(stream, b"two", true);
        client.flush().expect("it is sent");
        assert!(client.response(stream).is_err());
        let scraped = served.until(|scraped| scraped.value("shearwater_http2_resets_received_total") == 1.0);
        for (name, count) in [
            ("shearwater_http2_connections_open", 1.0),
            ("shearwater_http2_connections_total", 1.0),
            ("shearwater_http2_requests_total", 3.0),
            ("shearwater_http2_resets_sent_total{code=\"PROTOCOL_ERROR\"}", 1.0),
            ("shearwater_http2_goaways_sent_total{code=\"PROTOCOL_ERROR\"}", 0.0),
        ] {
            assert_eq!(scraped.value(name), count, "{name}");
        }
        // A frame of a stream that hasn't begun.
        client.session().push(&Frame::data(99, b"", true));
        assert_eq!(client.end().expect("its end").map(|(_, code)| code), Some(1));
        let code = "shearwater_http2_goaways_sent_total{code=\"PROTOCOL_ERROR\"}";
        let scraped = served.until(|scraped| scraped.value("shearwater_http2_connections_open") == 0.0);
        assert_eq!((scraped.value(code), scraped.sum("shearwater_http2_goaways_sent_total")), (1.0, 1.0));
        let http2 = served.status().http2.expect("there was a connection");
        assert_eq!((http2.open, http2.connections, http2.requests), (0, 1, 3));
        assert_eq!((http2.resets_sent["PROTOCOL_ERROR"], http2.goaways_sent.len()), (1, 1));
    });
}

#[test]
fn counts_timeouts_and_limits() {
    let timeouts = Timeouts { head_ms: 100, first_head_ms: 100, ..Timeouts::default() };
    on_each_driver(timeouts, |served| {
        assert_eq!(served.connect().send("GET / HT").response("GET").status, 408);
        let long = format!("X: {}", "x".repeat(Limits::default().head_bytes_max));
        let head = request("GET", "/", &[&long]);
        assert_eq!(served.connect().try_send(head).response("GET").status, 431);
        let scraped = served.until(|scraped| scraped.sum("shearwater_requests_total") >= 2.0);
        assert_eq!(scraped.value("shearwater_limit_hits_total{limit=\"first_head_ms\"}"), 1.0);
        assert_eq!(scraped.value("shearwater_limit_hits_total{limit=\"head_bytes_max\"}"), 1.0);
        assert_eq!(scraped.requests("GET", "4xx"), 2.0);
    });
}

#[test]
fn counts_sites_by_their_tags() {
    on_each_driver(Timeouts::default(), |served| {
        let mut client = served.connect();
        for target in ["/one", "/one", "/two", "/"] {
            client.get(target);
        }
        let scraped = served.until(|scraped| scraped.sum("shearwater_requests_total") >= 4.0);
        let of = |site: &str| {
            scraped.value(&format!("shearwater_site_requests_total{{site=\"{site}\",class=\"2xx\"}}"))
        };
        assert_eq!((of("one"), of("two")), (2.0, 1.0));
        let bytes = scraped.value("shearwater_site_sent_bytes_total{site=\"two\"}");
        assert!((50.0..500.0).contains(&bytes), "{bytes}");
        let status = served.status();
        assert_eq!(
            status.sites.iter().map(|site| (&site.name[..], site.requests)).collect::<Vec<_>>(),
            [("one", 2), ("two", 1), ("three", 0), ("four", 0)]
        );
    });
}

#[test]
fn deferred_and_failed_responses_keep_their_tag() {
    on_each_driver(Timeouts::default(), |served| {
        let mut client = served.connect();
        assert_eq!((client.get("/three/late").status, client.get("/four").text()), (200, "four"));
        assert_eq!(client.get("/three/panic").status, 500);
        // A rejected request has no site.
        assert_eq!(served.connect().send("GET /three/late HTTP/1.1\r\n\r\n").response("GET").status, 400);
        let scraped = served.until(|scraped| scraped.sum("shearwater_requests_total") >= 4.0);
        assert_eq!(scraped.value("shearwater_site_requests_total{site=\"four\",class=\"2xx\"}"), 1.0);
        for (class, count) in [("2xx", 1.0), ("4xx", 0.0), ("5xx", 1.0)] {
            let key = format!("shearwater_site_requests_total{{site=\"three\",class=\"{class}\"}}");
            assert_eq!(scraped.value(&key), count, "{class}");
        }
    });
}

#[test]
fn takes_counts_of_other_parts_of_the_program() {
    on_each_driver(Timeouts::default(), |served| {
        assert!(!served.scrape().families.contains_key("shearwater_log_lines"), "unknown counts are absent");
        let destination = "a.log".to_owned();
        let counts = LogCounts { destination, written: 7, dropped: 3, is_failing: true };
        served.metrics.set_log(move || counts.clone());
        served.metrics.set_cache(|| CacheCounts { files: 1, bytes: 2, hits: 3, misses: 4 });
        let (bytes, done, bytes_in, bytes_out, evictions, rejections) = (5, 6, 7, 8, 9, 10);
        let counts = CompressionCounts { bytes, done, bytes_in, bytes_out, evictions, rejections };
        served.metrics.set_compression(move || counts);
        served.metrics.set_configuration("site.toml");
        served.metrics.count_reload(Ok(()));
        served.metrics.count_reload(Err("error: one\n"));
        let scraped = served.scrape();
        for (key, value) in [
            ("shearwater_log_lines_total{result=\"written\"}", 7.0),
            ("shearwater_log_lines_total{result=\"dropped\"}", 3.0),
            ("shearwater_log_failing", 1.0),
            ("shearwater_cache_files", 1.0),
            ("shearwater_cache_bytes", 2.0),
            ("shearwater_cache_hits_total", 3.0),
            ("shearwater_cache_misses_total", 4.0),
            ("shearwater_compression_cache_bytes", 5.0),
            ("shearwater_compressions_total", 6.0),
            ("shearwater_compression_in_bytes_total", 7.0),
            ("shearwater_compression_out_bytes_total", 8.0),
            ("shearwater_compression_cache_evictions_total", 9.0),
            ("shearwater_compression_rejections_total", 10.0),
            ("shearwater_reloads_total{result=\"done\"}", 1.0),
            ("shearwater_reloads_total{result=\"refused\"}", 1.0),
        ] {
            assert_eq!(scraped.value(key), value, "{key}");
        }
        assert!(scraped.value("shearwater_last_reload_timestamp_seconds") > 1e9);
        assert!(scraped.value("process_start_time_seconds") > 1e9);
        let status = served.status();
        assert!(status.log.as_ref().is_some_and(|log| log.failing));
        assert_eq!(
            status.configuration.last_outcome.and_then(|last| last.errors).as_deref(),
            Some("error: one\n")
        );
        assert_eq!(status.log.map(|log| (log.destination, log.dropped)), Some(("a.log".to_owned(), 3)));
        assert_eq!(status.cache.map(|cache| cache.misses), Some(4));
        assert_eq!((status.configuration.reloads, status.configuration.reloads_refused), (1, 1));
        assert_eq!(status.configuration.file.as_deref(), Some("site.toml"));
    });
}

#[test]
fn keeps_messages_to_the_operator() {
    on_each_driver(Timeouts::default(), |mut served| {
        let mut client = served.connect();
        let mut admin = served.admin();
        // Its messages arrive while something waits for its end.
        let running = served.running.take().expect("it serves");
        let control = running.control();
        let waiting = std::thread::spawn(move || running.wait_for_control());
        assert_eq!(client.get("/panic").status, 500);
        let start = Instant::now();
        let message = loop {
            if let Some(message) = served.status().messages.pop() {
                break message;
            }
            assert!(start.elapsed() < TIMEOUT, "it never comes to that");
        };
        assert!(message.level == "error" && message.text.contains("as the test wants it"), "{message:?}");
        served.metrics.message(MessageLevel::Warning, "of the \u{202e}program\n");
        control.drain(1000);
        waiting.join().expect("no panic").expect("it ends");
        let texts: Vec<_> = served.status().messages.into_iter().map(|message| message.text).collect();
        assert!(texts.contains(&"of the \\u{202e}program\\n".to_owned()), "{texts:?}");
        assert!(texts.iter().any(|text| text.starts_with("draining")), "{texts:?}");
        let _ = served.metrics.site_tag("a\u{2066}site");
        let raw = admin.get("/status.json").text().to_owned();
        assert!(raw.contains("\"a\\u2066site\"") && !raw.contains(['\u{202e}', '\u{2066}']), "{raw}");
        assert_eq!(admin.get("/ready").status, 503);
    });
}

#[test]
fn messages_from_before_the_start_are_kept() {
    let metrics = Metrics::new("0");
    for number in 0..=EARLY_MESSAGES_MAX {
        metrics.message(MessageLevel::Error, number.to_string());
    }
    let server = Server::bind("127.0.0.1:0").workers(1).verbosity(Verbosity::Off);
    let running = server.start(App::new()).expect("it starts");
    metrics.serving(&running);
    let texts: Vec<_> = running.control().messages().into_iter().map(|message| message.text).collect();
    let expected: Vec<_> = (0..EARLY_MESSAGES_MAX).map(|number| number.to_string()).collect();
    assert_eq!(texts, expected);
    running.control().stop();
    running.wait_for_control().expect("it ends");
}

#[test]
fn the_verdict_blames_the_server_for_its_own_errors_alone() {
    on_each_driver(Timeouts::default(), |served| {
        assert_eq!(served.connect().request("BREW", "/", &[]).status, 501);
        assert_eq!(served.connect().send("GET / HTTP/2.0\r\nHost: h\r\n\r\n").response("GET").status, 505);
        served.until(|scraped| scraped.sum("shearwater_requests_total") >= 2.0);
        let status = served.status();
        assert_eq!((status.verdict.level, status.requests.unsupported), (Level::Ok, 2));
        assert_eq!(served.connect().get("/panic").status, 500);
        served.until(|scraped| scraped.sum("shearwater_requests_total") >= 3.0);
        let verdict = served.status().verdict;
        assert!(
            verdict.headline.starts_with("33 % of the responses (1 of 3) were 5xx in the last "),
            "{verdict:?}"
        );
        let found: Vec<&str> = verdict.findings.iter().map(|finding| finding.check.as_str()).collect();
        assert_eq!((verdict.level, &found[..2]), (Level::Trouble, &["5xx", "Faults"][..]));
        // A second later it is in the history.
        let start = Instant::now();
        while served.status().history.requests.is_empty() {
            assert!(start.elapsed() < TIMEOUT, "no second is recorded");
        }
        assert!(served.status().rates.is_some());
    });
}
