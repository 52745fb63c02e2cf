//! The form of responses: fields that the server adds, omits or reserves.

use crate::harness::app::text_of;
use crate::harness::unit::head;
use crate::harness::waiting::ANNOUNCED_BYTES;
use crate::harness::{ExpectedResponse, Setting, Unit, World};

/// Sends all of it at once and checks the responses; then the client sends a FIN.
#[track_caller]
fn ask(world: &mut World, request: impl AsRef<[u8]>, responses: &[ExpectedResponse]) {
    let mut client = world.connect();
    client.send(request);
    world.settle();
    client.assert_got(responses);
    client.peer.finish();
    world.end();
    client.assert_closed();
}

#[test]
fn bodies_are_left_out_where_http_has_none() {
    let mut world = World::default();
    let units = [Unit::head(1), Unit::no_content(2), Unit::not_modified(3), Unit::get(4)];
    ask(&mut world, Unit::stream(&units), &Unit::responses(&units));
    let big = Unit::new(head("HEAD", "/big", ""), ExpectedResponse::big().bodyless());
    ask(&mut world, &big.bytes, &[big.response]);
    let file = Unit::new(head("HEAD", "/file", ""), ExpectedResponse::file().bodyless());
    ask(&mut world, &file.bytes, &[file.response]);
}

#[test]
fn a_205_is_empty_whatever_its_handler_has_written() {
    for method in ["GET", "HEAD"] {
        let mut world = World::default();
        let mut response = ExpectedResponse::text("205 Reset Content", "");
        ask(&mut world, head(method, "/status/1?205", ""), std::slice::from_ref(&response));
        response.fields = "Content-Type: text/plain\r\nETag: \"1\"\r\n";
        ask(&mut world, head(method, "/prebuilt?205", ""), std::slice::from_ref(&response));
        response.fields = "";
        let bodies = ["/big?205", "/file?205", "/stream-status/0?205", "/stream-status/1?205"];
        for target in bodies {
            let units = [Unit::new(head(method, target, ""), response.clone()), Unit::get(2)];
            ask(&mut world, Unit::stream(&units), &Unit::responses(&units));
        }
    }
}

#[test]
fn http_1_0_keeps_its_connection_where_the_end_is_known() {
    let mut world = World::default();
    let kept = "HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    for (line, status, length) in [
        ("HEAD /stream/0", "200 OK", None),
        ("HEAD /stream/1", "200 OK", None),
        ("HEAD /announced/1?3", "200 OK", Some(ANNOUNCED_BYTES as usize)),
        ("GET /stream-status/1?204", "204 No Content", None),
        ("GET /stream-status/1?205", "205 Reset Content", Some(0)),
        ("GET /stream-status/1?304", "304 Not Modified", None),
    ] {
        let mut response = ExpectedResponse::bytes(b"").connection("keep-alive");
        (response.status, response.length) = (status, length);
        let units = [Unit::new(format!("{line} {kept}"), response), Unit::http10(2, true)];
        ask(&mut world, Unit::stream(&units), &Unit::responses(&units));
    }
}

#[test]
fn a_refused_head_gets_no_body_either() {
    let mut world = World::default();
    let expectation = ExpectedResponse::refusal(
        "417 Expectation Failed",
        "The only expectation known here is 100-continue.",
    );
    ask(&mut world, head("HEAD", "/plain/1", "Expect: more\r\n"), &[expectation.bodyless()]);
    let large = head("HEAD", "/plain/1", "Content-Length: 99999999999\r\n");
    ask(&mut world, large, &[ExpectedResponse::too_large().bodyless()]);
    ask(&mut world, head("HEAD", "/panic/1", ""), &[ExpectedResponse::failed().bodyless()]);
    let panics = head("HEAD", "/policy-panics/1", "Content-Length: 3\r\n");
    ask(&mut world, panics, &[ExpectedResponse::failed().bodyless()]);
    let mut client = world.connect();
    client.send(head("HEAD", "/buffer/1", "Content-Length: 3\r\n"));
    world.settle();
    client.peer.finish();
    world.settle();
    client.assert_got(&[ExpectedResponse::incomplete().bodyless()]);
    let mut client = world.connect();
    client.send(head("HEAD", "/buffer/1", "Content-Length: 3\r\n"));
    world.end();
    client.assert_got(&[ExpectedResponse::timeout().bodyless()]);
    // The next request of a connection that has sent a `HEAD` is no `HEAD`.
    let units = [Unit::head(1), Unit::malformed(2)];
    ask(&mut world, Unit::stream(&units), &Unit::responses(&units));
}

#[test]
fn a_head_that_is_refused_before_it_is_complete_gets_no_body() {
    let long = "x".repeat(65_536);
    let refused = [
        ("HEAD /plain/1 HTTP/1.1\r\nHost: a\r\nX-Bad : b\r\n\r\n".to_owned(), "400 Bad Request"),
        ("HEAD  /plain/1 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "400 Bad Request"),
        ("HEAD /\0".to_owned(), "400 Bad Request"),
        ("\r\nHEAD / HTTP/1.1\r\n\r\n".to_owned(), "400 Bad Request"),
        (format!("HEAD /{long} HTTP/1.1\r\n"), "414 URI Too Long"),
        (format!("HEAD / HTTP/1.1\r\nX: {long}\r\n"), "431 Request Header Fields Too Large"),
        ("HEAD / HTTP/2.0\r\n".to_owned(), "505 HTTP Version Not Supported"),
    ];
    for (request, status) in &refused {
        for cut in [0, 1, 5, request.len() - 1] {
            let mut world = World::default();
            let mut client = world.connect();
            client.send(&request[..cut]);
            world.settle();
            client.send(&request[cut..]);
            world.settle();
            let got = String::from_utf8_lossy(client.read()).into_owned();
            let (about, what) = (&request[..request.len().min(30)], format!("cut at {cut}: {got:?}"));
            assert!(got.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{about:?} {what}");
            assert!(
                got.contains("\r\nContent-Length: ") && !got.contains("\r\nContent-Length: 0\r\n"),
                "{what}"
            );
            assert!(got.ends_with("\r\n\r\n"), "{about:?} {what}");
            client.assert_closed();
        }
    }
}

#[test]
fn a_head_that_never_gets_complete_gets_no_body() {
    let cases =
        [("HEAD ", true), ("HEAD /plain", true), ("\r\nHEAD /", true), ("HEAD / HTTP/1.1\r\nHost", true)];
    for (start, is_head) in cases.into_iter().chain([("HEAD", false), ("HEADER /", false), ("head /", false)])
    {
        let form = |response: ExpectedResponse| if is_head { response.bodyless() } else { response };
        let mut world = World::default();
        let mut client = world.connect();
        client.send(start);
        world.settle();
        client.peer.finish();
        world.settle();
        client.assert_got(&[form(ExpectedResponse::incomplete())]);
        // After another request and in two pieces.
        let mut client = world.connect();
        client.send(Unit::get(1).bytes);
        client.send(&start[..2]);
        world.settle();
        client.send(&start[2..]);
        world.end();
        client.assert_got(&[Unit::get(1).response, form(ExpectedResponse::timeout())]);
    }
}

#[test]
fn an_response_left_alone_is_an_empty_200() {
    let mut world = World::default();
    let mut response = ExpectedResponse::text("200 OK", "");
    response.fields = "";
    ask(&mut world, head("GET", "/empty", ""), &[response]);
}

#[test]
fn an_response_encoded_before_is_like_any_other() {
    let mut world = World::default();
    let mut response = ExpectedResponse::bytes(b"encoded before\n");
    response.fields = "Content-Type: text/plain\r\nETag: \"1\"\r\n";
    ask(&mut world, head("GET", "/prebuilt", ""), std::slice::from_ref(&response));
    ask(&mut world, head("HEAD", "/prebuilt", ""), &[response.clone().bodyless()]);
    ask(&mut world, head("GET", "/prebuilt", "Connection: close\r\n"), &[response.clone().last()]);
    let kept = b"GET /prebuilt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    ask(&mut world, kept, &[response.clone().connection("keep-alive")]);
    for (query, status) in [("204", "204 No Content"), ("304", "304 Not Modified")] {
        response.status = status;
        ask(&mut world, head("GET", &format!("/prebuilt?{query}"), ""), &[response.clone().lengthless()]);
    }
    response.status = "404 Not Found";
    ask(&mut world, head("GET", "/prebuilt?404", ""), std::slice::from_ref(&response));
    ask(&mut world, head("GET", "/prebuilt?text", ""), &[ExpectedResponse::text("403 Forbidden", "no")]);
    response.status = "200 OK";
    response.fields = "Content-Type: text/css\r\nETag: \"1\"\r\nX-Own: 1\r\n";
    ask(&mut world, head("GET", "/prebuilt?type", ""), &[response]);
}

#[test]
fn a_handler_may_not_set_what_is_the_servers_own() {
    let mut world = World::default();
    for name in ["Connection", "content-length", "DATE", "Transfer-Encoding", "no(token", ""] {
        ask(&mut world, head("GET", &format!("/field?{name}"), ""), &[ExpectedResponse::failed()]);
    }
    ask(&mut world, head("GET", "/value", ""), &[ExpectedResponse::failed()]);
    assert_eq!(world.totals().handler_errors, 7);
    assert_eq!(world.totals().requests, 7);
    assert_eq!(world.told().len(), 1, "the operator is told once");
}

#[test]
fn a_status_that_is_none_is_a_500() {
    let mut world = World::default();
    for status in ["100", "101", "199", "600"] {
        ask(&mut world, head("GET", &format!("/status?{status}"), ""), &[ExpectedResponse::failed()]);
    }
    assert_eq!(world.totals().handler_panics, 4);
}

#[test]
fn http_1_0_is_told_how_its_connection_goes_on() {
    let mut world = World::default();
    let units = [Unit::http10(1, true), Unit::http10(2, true), Unit::http10(3, false)];
    ask(&mut world, Unit::stream(&units), &Unit::responses(&units));
}

#[test]
fn http_1_1_is_told_only_of_the_end() {
    let mut world = World::default();
    let units = [Unit::get(1), Unit::closing(2)];
    ask(&mut world, Unit::stream(&units), &Unit::responses(&units));
    let target = "/plain/3";
    let close = head("GET", target, "Connection: keep-alive, Close\r\n");
    ask(&mut world, close, &[ExpectedResponse::text("200 OK", text_of("GET", target, b"")).last()]);
}

#[test]
fn a_later_minor_version_is_1_1() {
    let mut world = World::default();
    let request = b"GET /plain/1 HTTP/1.7\r\nHost: a\r\n\r\n";
    ask(&mut world, request, &[Unit::get(1).response]);
}

#[test]
fn what_is_not_done_here_is_refused() {
    let mut world = World::default();
    let connect =
        ExpectedResponse::refusal("501 Not Implemented", "CONNECT is not implemented: this is no proxy.");
    ask(&mut world, b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nGET / HTTP/1.1\r\n", &[connect]);
    let version =
        ExpectedResponse::refusal("505 HTTP Version Not Supported", "The major version of HTTP is not 1.");
    ask(&mut world, b"GET / HTTP/2.0\r\n\r\n", &[version]);
    let expectation = ExpectedResponse::refusal(
        "417 Expectation Failed",
        "The only expectation known here is 100-continue.",
    );
    ask(&mut world, head("GET", "/", "Expect: 100-continue, more\r\n"), &[expectation]);
}

#[test]
fn a_target_of_another_scheme_is_misdirected() {
    let refusal = ExpectedResponse::refusal(
        "421 Misdirected Request",
        "The scheme of the target is not served on this connection.",
    );
    let mut world = World::default();
    for target in
        ["https://example.org/plain/1", "ftp://example.org/plain/1", "HTTPS://example.org", "httpx://a/"]
    {
        for method in ["GET", "POST", "OPTIONS"] {
            ask(&mut world, head(method, target, ""), std::slice::from_ref(&refusal));
        }
        ask(&mut world, head("HEAD", target, ""), &[refusal.clone().bodyless()]);
        let expecting = head("POST", target, "Expect: 100-continue\r\nContent-Length: 3\r\n");
        ask(&mut world, expecting, std::slice::from_ref(&refusal));
    }
    for target in ["http://example.org/plain/1", "HTTP://other.example/plain/1"] {
        ask(
            &mut world,
            head("GET", target, ""),
            &[ExpectedResponse::text("200 OK", text_of("GET", target, b""))],
        );
    }
}

#[test]
fn a_trusted_gateway_may_send_https_targets() {
    let mut world = World::new(Setting { trusted_gateway: true, ..Setting::default() });
    for target in ["https://example.org/plain/1", "Https://example.org/plain/1", "http://example.org/plain/1"]
    {
        ask(
            &mut world,
            head("GET", target, ""),
            &[ExpectedResponse::text("200 OK", text_of("GET", target, b""))],
        );
    }
    let refusal = ExpectedResponse::refusal(
        "421 Misdirected Request",
        "The scheme of the target is not served on this connection.",
    );
    ask(&mut world, head("GET", "ftp://example.org/plain/1", ""), &[refusal]);
}

#[test]
fn the_date_follows_the_clock() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(&Unit::get(1).bytes);
    world.settle();
    world.net.advance(2000);
    client.send(&Unit::get(2).bytes);
    world.settle();
    let got = String::from_utf8_lossy(client.read()).into_owned();
    let dates: Vec<&str> = got.lines().filter(|line| line.starts_with("Date: ")).collect();
    assert_eq!(dates, ["Date: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Sun, 06 Nov 1994 08:49:39 GMT"]);
}

#[test]
fn the_peers_address_is_told() {
    let mut world = World::default();
    let client = world.connect();
    let address = ExpectedResponse::text("200 OK", format!("{:?}", Some(client.peer.address())));
    let mut client = client;
    client.send(head("GET", "/peer", ""));
    world.settle();
    client.assert_got(&[address]);
}
