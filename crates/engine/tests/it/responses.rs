//! The form of responses: fields that the server adds, omits or reserves.

use crate::harness::handlers::ANNOUNCED_BYTES;
use crate::harness::unit::{get, head};
use crate::harness::{ExpectedResponse, Setting, SimWorld, Unit};

/// Asserts that these requests, sent at once, get their responses.
#[track_caller]
fn assert_pipelined(world: &mut SimWorld, units: &[Unit]) {
    world.assert_responds([Unit::stream(units)], &Unit::responses(units));
}

/// Asserts the response to each request, each on its own connection.
#[track_caller]
fn assert_each(
    world: &mut SimWorld,
    exchanges: impl IntoIterator<Item = (impl AsRef<[u8]>, ExpectedResponse)>,
) {
    for (request, response) in exchanges {
        world.assert_responds([request], &[response]);
    }
}

fn unknown_expectation() -> ExpectedResponse {
    ExpectedResponse::refusal("417 Expectation Failed", "The only expectation known here is 100-continue.")
}

fn misdirected() -> ExpectedResponse {
    let sentence = "The scheme of the target is not served on this connection.";
    ExpectedResponse::refusal("421 Misdirected Request", sentence)
}

/// Returns a response without a body and without a type.
fn empty(status: &'static str, length: Option<usize>) -> ExpectedResponse {
    ExpectedResponse { status, length, ..ExpectedResponse::bytes(b"") }
}

#[test]
fn omits_bodies_where_http_has_none() {
    let mut world = SimWorld::default();
    let units = [Unit::plain("HEAD", 1), Unit::no_content(2), Unit::not_modified(3), Unit::get(4)];
    assert_pipelined(&mut world, &units);
    let big = (head("HEAD", "/big", ""), ExpectedResponse::big().bodyless());
    let file = (head("HEAD", "/file", ""), ExpectedResponse::file().bodyless());
    assert_each(&mut world, [big, file]);
}

#[test]
fn a_205_is_empty_whatever_its_handler_has_written() {
    for method in ["GET", "HEAD"] {
        let mut world = SimWorld::default();
        let response = empty("205 Reset Content", Some(0));
        let text = ExpectedResponse::text("205 Reset Content", "");
        let prebuilt =
            ExpectedResponse { fields: "Content-Type: text/plain\r\nETag: \"1\"\r\n", ..response.clone() };
        assert_each(
            &mut world,
            [(head(method, "/status/1?205", ""), text), (head(method, "/prebuilt?205", ""), prebuilt)],
        );
        for target in ["/big?205", "/file?205", "/stream-status/0?205", "/stream-status/1?205"] {
            let first = Unit::new(head(method, target, ""), response.clone());
            assert_pipelined(&mut world, &[first, Unit::get(2)]);
        }
    }
}

#[test]
fn keeps_http_1_0_connections_where_the_end_is_known() {
    let mut world = SimWorld::default();
    for (line, status, length) in [
        ("HEAD /stream/0", "200 OK", None),
        ("HEAD /stream/1", "200 OK", None),
        ("HEAD /announced/1?3", "200 OK", Some(ANNOUNCED_BYTES as usize)),
        ("GET /stream-status/1?204", "204 No Content", None),
        ("GET /stream-status/1?205", "205 Reset Content", Some(0)),
        ("GET /stream-status/1?304", "304 Not Modified", None),
    ] {
        let request = format!("{line} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let first = Unit::new(request, empty(status, length).connection("keep-alive"));
        assert_pipelined(&mut world, &[first, Unit::http10(2, true)]);
    }
}

#[test]
fn a_rejected_head_request_gets_no_body() {
    let mut world = SimWorld::default();
    let request = |target: &str, fields: &str| head("HEAD", target, fields);
    let too_large = request("/plain/1", "Content-Length: 99999999999\r\n");
    let policy_panics = request("/policy-panics/1", "Content-Length: 3\r\n");
    let exchanges = [
        (request("/plain/1", "Expect: more\r\n"), unknown_expectation()),
        (too_large, ExpectedResponse::too_large()),
        (request("/panic/1", ""), ExpectedResponse::failed()),
        (policy_panics, ExpectedResponse::failed()),
    ];
    assert_each(&mut world, exchanges.map(|(request, response)| (request, response.bodyless())));
    for is_finished in [true, false] {
        let mut client = world.send(request("/buffer/1", "Content-Length: 3\r\n"));
        let response = match is_finished {
            true => {
                client.peer.finish();
                ExpectedResponse::incomplete()
            }
            false => ExpectedResponse::timeout(),
        };
        world.end();
        client.assert_got(&[response.bodyless()]);
    }
    // The next request of a connection that has sent a `HEAD` is no `HEAD`.
    assert_pipelined(&mut world, &[Unit::plain("HEAD", 1), Unit::malformed(2)]);
}

#[test]
fn a_head_request_that_is_rejected_before_it_is_complete_gets_no_body() {
    let long = "x".repeat(65_536);
    for (request, status) in [
        ("HEAD /plain/1 HTTP/1.1\r\nHost: a\r\nX-Bad : b\r\n\r\n".to_owned(), "400 Bad Request"),
        ("HEAD  /plain/1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "400 Bad Request"),
        ("HEAD /\0".to_owned(), "400 Bad Request"),
        ("\r\nHEAD / HTTP/1.1\r\n\r\n".to_owned(), "400 Bad Request"),
        (format!("HEAD /{long} HTTP/1.1\r\n"), "414 URI Too Long"),
        (format!("HEAD / HTTP/1.1\r\nX: {long}\r\n"), "431 Request Header Fields Too Large"),
        ("HEAD / HTTP/2.0\r\n".to_owned(), "505 HTTP Version Not Supported"),
    ] {
        for cut in [0, 1, 5, request.len() - 1] {
            let mut client = SimWorld::default().send_pieces([&request[..cut], &request[cut..]]);
            let text = client.text();
            let about = format!("{:?} cut at {cut}: {text:?}", &request[..request.len().min(30)]);
            assert!(text.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{about}");
            let is_empty = text.contains("\r\nContent-Length: 0\r\n");
            assert!(text.contains("\r\nContent-Length: ") && !is_empty, "{about}");
            assert!(text.ends_with("\r\n\r\n"), "{about}");
            client.assert_closed();
        }
    }
}

#[test]
fn a_head_request_that_is_never_completed_gets_no_body() {
    for (start, is_head) in [
        ("HEAD ", true),
        ("HEAD /plain", true),
        ("\r\nHEAD /", true),
        ("HEAD / HTTP/1.1\r\nHost", true),
        ("HEAD", false),
        ("HEADER /", false),
        ("head /", false),
    ] {
        let form = |response: ExpectedResponse| if is_head { response.bodyless() } else { response };
        let mut world = SimWorld::default();
        let mut client = world.send(start);
        client.peer.finish();
        world.settle();
        client.assert_got(&[form(ExpectedResponse::incomplete())]);
        // After another request and in two pieces.
        let first = [&Unit::get(1).bytes, &start.as_bytes()[..2]].concat();
        let mut client = world.send_pieces([&first[..], &start.as_bytes()[2..]]);
        world.end();
        client.assert_got(&[Unit::get(1).response, form(ExpectedResponse::timeout())]);
    }
}

#[test]
fn an_untouched_response_is_an_empty_200() {
    assert_each(&mut SimWorld::default(), [(get("/empty"), empty("200 OK", Some(0)))]);
}

#[test]
fn a_prebuilt_response_is_like_any_other() {
    let fields = "Content-Type: text/plain\r\nETag: \"1\"\r\n";
    let response = ExpectedResponse { fields, ..ExpectedResponse::bytes(b"encoded before\n") };
    let with_status = |status| ExpectedResponse { status, ..response.clone() };
    let css = "Content-Type: text/css\r\nETag: \"1\"\r\nX-Own: 1\r\n";
    let kept = b"GET /prebuilt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec();
    assert_each(
        &mut SimWorld::default(),
        [
            (get("/prebuilt"), response.clone()),
            (head("HEAD", "/prebuilt", ""), response.clone().bodyless()),
            (head("GET", "/prebuilt", "Connection: close\r\n"), response.clone().last()),
            (kept, response.clone().connection("keep-alive")),
            (get("/prebuilt?204"), with_status("204 No Content").lengthless()),
            (get("/prebuilt?304"), with_status("304 Not Modified").lengthless()),
            (get("/prebuilt?404"), with_status("404 Not Found")),
            (get("/prebuilt?text"), ExpectedResponse::text("403 Forbidden", "no")),
            (get("/prebuilt?type"), ExpectedResponse { fields: css, ..response.clone() }),
        ],
    );
}

#[test]
fn rejects_fields_that_are_the_servers_own() {
    let mut world = SimWorld::default();
    let names = ["Connection", "content-length", "DATE", "Transfer-Encoding", "no(token", ""];
    let targets = names.map(|name| format!("/field?{name}")).into_iter().chain(["/value".to_owned()]);
    assert_each(&mut world, targets.map(|target| (get(&target), ExpectedResponse::failed())));
    assert_eq!(world.totals().handler_errors, 7);
    assert_eq!(world.totals().requests, 7);
    assert_eq!(world.notices().len(), 1, "reported once");
}

#[test]
fn an_invalid_status_becomes_a_500() {
    let mut world = SimWorld::default();
    let targets = ["100", "101", "199", "600"].map(|status| format!("/status?{status}"));
    assert_each(&mut world, targets.map(|target| (get(&target), ExpectedResponse::failed())));
    assert_eq!(world.totals().handler_panics, 4);
}

/// HTTP/1.0 clients learn each time whether the connection stays open, later ones only of its end.
#[test]
fn says_whether_the_connection_stays_open() {
    let mut world = SimWorld::default();
    assert_pipelined(&mut world, &[Unit::http10(1, true), Unit::http10(2, true), Unit::http10(3, false)]);
    assert_pipelined(&mut world, &[Unit::get(1), Unit::closing(2)]);
    let close = head("GET", "/plain/3", "Connection: keep-alive, Close\r\n");
    let later_version = b"GET /plain/1 HTTP/1.7\r\nHost: a\r\n\r\n".to_vec();
    assert_each(&mut world, [(close, Unit::get(3).response.last()), (later_version, Unit::get(1).response)]);
}

#[test]
fn rejects_what_is_not_implemented() {
    let refusal = ExpectedResponse::refusal;
    let connect = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nGET / HTTP/1.1\r\n".to_vec();
    let no_proxy = refusal("501 Not Implemented", "CONNECT is not implemented: this is no proxy.");
    let version = refusal("505 HTTP Version Not Supported", "The major version of HTTP is not 1.");
    assert_each(
        &mut SimWorld::default(),
        [
            (connect, no_proxy),
            (b"GET / HTTP/2.0\r\n\r\n".to_vec(), version),
            (head("GET", "/", "Expect: 100-continue, more\r\n"), unknown_expectation()),
        ],
    );
}

/// A trusted proxy may send `https` targets.
#[test]
fn misdirects_targets_of_another_scheme() {
    let is_served = |target: &str, is_trusted: bool| {
        let target = target.to_ascii_lowercase();
        target.starts_with("http:") || is_trusted && target.starts_with("https:")
    };
    for (proxies, is_trusted) in [(&[][..], false), (&["10.0.0.0/8"], false), (&["127.0.0.0/8"], true)] {
        let mut world = SimWorld::new(Setting::trusting(proxies, false));
        for target in [
            "http://example.org/plain/1",
            "HTTP://other.example/plain/1",
            "https://example.org/plain/1",
            "Https://example.org/plain/1",
            "ftp://example.org/plain/1",
            "httpx://a/",
        ] {
            let expecting = head("POST", target, "Expect: 100-continue\r\nContent-Length: 3\r\n");
            let exchanges = match is_served(target, is_trusted) {
                true => vec![(get(target), ExpectedResponse::ok("GET", target, b""))],
                false => vec![
                    (get(target), misdirected()),
                    (head("POST", target, ""), misdirected()),
                    (head("OPTIONS", target, ""), misdirected()),
                    (head("HEAD", target, ""), misdirected().bodyless()),
                    (expecting, misdirected()),
                ],
            };
            assert_each(&mut world, exchanges);
        }
    }
}

#[test]
fn the_date_follows_the_clock() {
    let mut world = SimWorld::default();
    let mut client = world.send(&Unit::get(1).bytes);
    world.net.advance(2000);
    world.feed(&mut client, &Unit::get(2).bytes);
    let text = client.text();
    let dates: Vec<&str> = text.lines().filter(|line| line.starts_with("Date: ")).collect();
    assert_eq!(dates, ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Sun, 06 Nov 1994 08:49:39 GMT"]);
}

#[test]
fn handlers_know_the_peers_address() {
    let mut world = SimWorld::default();
    let mut client = world.send(get("/peer"));
    let address = format!("{:?}", Some(client.peer.address()));
    client.assert_got(&[ExpectedResponse::text("200 OK", address)]);
}
