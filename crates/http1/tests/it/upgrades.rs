//! The protocols that a request offers to change to (RFC 9110 section 7.8).

use shearwater_http1::{HeadLimits, HeadParser, Parsed};

/// What a request with these field lines offers.
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
