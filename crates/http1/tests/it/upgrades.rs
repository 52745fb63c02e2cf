//! The protocols that a request offers to change to (RFC 9110 section 7.8).

use shearwater_http1::{HeadLimits, HeadParser, Parsed, is_protocol, is_same_protocol};

/// Returns the protocols that a request with these field lines offers.
fn offered(version: &str, fields: &[&str]) -> Vec<String> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let request = format!("GET / {version}\r\nHost: h\r\n{fields}\r\n");
    let mut parser = HeadParser::new(HeadLimits::default());
    assert_eq!(parser.parse(request.as_bytes()), Ok(Parsed::Complete { head_len: request.len() }));
    let head = parser.head(request.as_bytes());
    head.upgrades().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn names_come_in_order_without_their_versions() {
    for (fields, expected) in [
        (&["Connection: upgrade", "Upgrade: websocket"][..], &["websocket"][..]),
        (&["Connection: keep-alive, Upgrade", "Upgrade: WebSocket"], &["WebSocket"]),
        (&["Upgrade: h2c", "Connection: keep-alive", "Connection: UPGRADE"], &["h2c"]),
        (
            &["Connection: upgrade", "Upgrade: HTTP/2.0, SHTTP/1.3", "Upgrade:\tIRC/6.9 "],
            &["HTTP", "SHTTP", "IRC"],
        ),
        (&["Connection: upgrade", "Upgrade: ,a,, b/1/2 ,"], &["a", "b"]),
        (&["Connection: upgrade", "Upgrade: /1"], &[""]),
        (&["Connection: upgrade", "Upgrade:"], &[]),
    ] {
        assert_eq!(offered("HTTP/1.1", fields), expected, "{fields:?}");
    }
}

#[test]
fn nothing_is_offered_without_the_connection_option_or_in_http_1_0() {
    let whole = ["Connection: upgrade", "Upgrade: websocket"];
    assert_eq!(offered("HTTP/1.0", &whole), [""; 0]);
    for connection in
        ["Connection: keep-alive", "Connection: upgraded", "Connection: up, grade", "X: upgrade"]
    {
        assert_eq!(offered("HTTP/1.1", &[connection, "Upgrade: websocket"]), [""; 0], "{connection}");
    }
    assert_eq!(offered("HTTP/1.1", &["Connection: upgrade"]), [""; 0]);
}

#[test]
fn a_protocol_is_a_token_with_or_without_a_version() {
    for protocol in ["websocket", "HTTP/2.0", "h2c", "a!/~"] {
        assert!(is_protocol(protocol.as_bytes()), "{protocol:?}");
    }
    for other in ["", "/", "/1", "x/", "x/1/2", "web socket", "a,b", "a/b c", "\u{e9}"] {
        assert!(!is_protocol(other.as_bytes()), "{other:?}");
    }
    for (one, other, is_same) in
        [("x", "X/2", true), ("x/1", "x/2", true), ("x", "xy", false), ("", "/1", true), ("x", "", false)]
    {
        assert_eq!(is_same_protocol(one.as_bytes(), other.as_bytes()), is_same, "{one:?} {other:?}");
    }
}
