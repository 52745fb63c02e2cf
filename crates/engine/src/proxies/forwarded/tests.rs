//! Headers as proxies and forgers write them, and the client that they name.

use std::net::SocketAddr;

use super::{ClientHeader, FORWARDED_ENTRIES_MAX, TrustedProxies, client, is_secure};

fn named(header: ClientHeader, lines: &[&str]) -> String {
    let trusted = TrustedProxies::new(["10.0.0.0/8", "2001:db8:1::/48"]).expect("valid networks");
    let found =
        client(lines.iter().map(|line| line.as_bytes()), header, &trusted).map(|client| client.address);
    found.map_or("-".to_owned(), |found| match found.port() {
        0 => found.ip().to_string(),
        _ => found.to_string(),
    })
}

#[track_caller]
fn assert_named(header: ClientHeader, cases: &[(&[&str], &str)]) {
    for (lines, expected) in cases {
        assert_eq!(named(header, lines), *expected, "{lines:?}");
    }
}

#[test]
fn the_last_untrusted_address_is_the_client() {
    assert_named(
        ClientHeader::XForwardedFor,
        &[
            (&["192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1, 10.0.0.2"], "192.0.2.1"),
            (&["198.51.100.9,192.0.2.1\t,  10.0.0.2 , 10.0.0.3"], "192.0.2.1"),
            (&["198.51.100.9", "192.0.2.1", "10.0.0.2"], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1", "10.0.0.2"], "192.0.2.1"),
            (&["2001:db8:2::1, 2001:db8:1::5"], "2001:db8:2::1"),
            // What is left of the client may be anything.
            (&["unknown, , <script>, 192.0.2.1"], "192.0.2.1"),
            (&["10.0.0.9, 192.0.2.1, 10.0.0.2"], "192.0.2.1"),
        ],
    );
}

#[test]
fn the_first_address_is_the_client_if_all_are_trusted() {
    assert_named(
        ClientHeader::XForwardedFor,
        &[(&["10.0.0.1, 10.0.0.2"], "10.0.0.1"), (&["10.0.0.1"], "10.0.0.1")],
    );
    assert_named(ClientHeader::Forwarded, &[(&["for=10.0.0.1, for=10.0.0.2"], "10.0.0.1")]);
}

#[test]
fn reads_addresses_with_and_without_ports() {
    assert_named(
        ClientHeader::XForwardedFor,
        &[
            (&["192.0.2.1:4711"], "192.0.2.1:4711"),
            (&["[2001:db8:2::1]"], "2001:db8:2::1"),
            (&["[2001:db8:2::1]:4711"], "[2001:db8:2::1]:4711"),
            (&["192.0.2.1:_p"], "-"),
            (&["::ffff:10.0.0.1, 192.0.2.7, ::ffff:10.0.0.1"], "192.0.2.7"),
        ],
    );
}

#[test]
fn the_walk_ends_at_an_entry_that_is_no_address() {
    let bad = [
        "",
        "unknown",
        "_hidden",
        "-",
        "localhost",
        "192.0.2",
        "192.0.2.1.",
        "192.0.2.01",
        "192.0.2.1:",
        "192.0.2.1:x",
        "192.0.2.1:65536",
        "192.0.2.1:_",
        "192.0.2.1:_p+",
        "192.0.2.1:p",
        "192.0.2.1 10",
        "192.0.2.1/24",
        "2001:db8::1:x",
        "[2001:db8::1",
        "2001:db8::1]",
        "[2001:db8::1]x",
        "[2001:db8::1]:",
        "[192.0.2.1]",
        "fe80::1%eth0",
        "\"192.0.2.1\"",
        "\u{661}92.0.2.1",
        "192.0.2.1\r",
        "192.0.2.1\0",
    ];
    for entry in bad {
        let names = |header, line: &str| named(header, &[line]);
        // White space around an address isn't part of it.
        let unless_blank =
            |expected: &str| if entry.trim() == entry { expected } else { "192.0.2.1" }.to_owned();
        let (own, of_next) = (format!("192.0.2.9, {entry}"), format!("192.0.2.9, {entry}, 10.0.0.2"));
        assert_eq!(names(ClientHeader::XForwardedFor, &own), unless_blank("-"), "{entry:?}");
        assert_eq!(names(ClientHeader::XForwardedFor, &of_next), unless_blank("10.0.0.2"), "{entry:?}");
        let own = format!("for=192.0.2.9, for=\"{entry}\"");
        assert_eq!(names(ClientHeader::Forwarded, &own), "-", "{entry:?}");
        assert_eq!(names(ClientHeader::Forwarded, &format!("{own}, for=10.0.0.2")), "10.0.0.2", "{entry:?}");
    }
    assert_named(ClientHeader::XForwardedFor, &[(&[], "-"), (&[""], "-"), (&["192.0.2.1", ""], "-")]);
}

#[test]
fn the_last_value_of_a_protocol_header_counts() {
    for (lines, expected) in [
        (&["https"][..], true),
        (&["HTTPS "], true),
        (&["http, https"], true),
        (&["http", "https"], true),
        (&["https, http"], false),
        (&["https", "http"], false),
        (&["https,"], false),
        (&["https://"], false),
        (&["wss"], false),
        (&[""], false),
        (&[], false),
    ] {
        assert_eq!(is_secure(lines.iter().map(|line| line.as_bytes())), expected, "{lines:?}");
    }
}

#[test]
fn the_protocol_of_an_element_is_that_of_its_client() {
    let trusted = TrustedProxies::new(["10.0.0.0/8"]).expect("a valid network");
    for (line, expected) in [
        ("for=192.0.2.1;proto=https", true),
        ("Proto=\"HTTPS\";for=192.0.2.1", true),
        ("for=192.0.2.1;proto=https, for=10.0.0.2;proto=http", true),
        ("for=192.0.2.1;proto=http, for=10.0.0.2;proto=https", false),
        ("for=6.6.6.6;proto=https, for=192.0.2.1", false),
        ("for=6.6.6.6;proto=https, proto=http", false),
        ("proto=https", false),
        ("for=192.0.2.1", false),
    ] {
        let found = client([line.as_bytes()].into_iter(), ClientHeader::Forwarded, &trusted);
        assert_eq!(found.is_some_and(|client| client.is_secure), expected, "{line}");
    }
}

#[test]
fn reads_the_elements_of_rfc_7239() {
    assert_named(
        ClientHeader::Forwarded,
        &[
            (&["for=192.0.2.1"], "192.0.2.1"),
            (&["For=192.0.2.1"], "192.0.2.1"),
            (&["for=\"192.0.2.1\""], "192.0.2.1"),
            (&["for=\"192.0.2.1:4711\""], "192.0.2.1:4711"),
            (&["for=\"[2001:db8:2::1]:4711\""], "[2001:db8:2::1]:4711"),
            (&["for=\"[2001:db8:2::1]\""], "2001:db8:2::1"),
            (&["for=192.0.2.1;proto=https;by=203.0.113.43"], "192.0.2.1"),
            (&["by=203.0.113.43; proto=https ;for=192.0.2.1;"], "192.0.2.1"),
            (&["for=198.51.100.9, for=192.0.2.1;host=\"a,b;for=1\", for=10.0.0.2"], "192.0.2.1"),
            (&["for=198.51.100.9", "for=192.0.2.1", "for=\"10.0.0.2\""], "192.0.2.1"),
            (&["for=192.0.2.1;x=\"\\\"\""], "192.0.2.1"),
            (&[",for=192.0.2.1,,"], "192.0.2.1"),
            (&["for=192.0.2.1, for=10.0.0.2;for_=x"], "192.0.2.1"),
            (&["for=\"192.0.2.1:_p\""], "192.0.2.1"),
            (&["for=\"[2001:db8:2::1]:_P.1_-\""], "2001:db8:2::1"),
            (&["proto=https"], "-"),
            (&["for=192.0.2.1, proto=https"], "-"),
            (&["for=unknown"], "-"),
            (&["for=\"_gazonk\""], "-"),
            (&["for=192.0.2.1;for=192.0.2.2"], "-"),
            (&["for=2001:db8:2::1"], "-"),
            (&["for=\"192.0.2.1"], "-"),
            (&["for=\"192.0.2.1\\"], "-"),
            (&["for=192.0.2.1 192.0.2.2"], "-"),
            (&["for =192.0.2.1"], "-"),
            (&["for= 192.0.2.1"], "-"),
            (&["for="], "-"),
            (&["for"], "-"),
            (&["=192.0.2.1"], "-"),
            (&["192.0.2.1"], "-"),
        ],
    );
}

/// A client writes lines, or the beginning of one, and the trusted proxy appends its address (192.0.2.1).
#[test]
fn a_client_writes_nothing_that_hides_or_changes_its_address() {
    let beginnings = [
        "for=6.6.6.6",
        "for=6.6.6.6;x=\"",
        "for=\"6.6.6.6",
        "for=\"6.6.6.6\\",
        "for=6.6.6.6,",
        "for=6.6.6.6;",
        "for=",
        "for=6.6.6.6;for",
        "\"",
        "for=6.6.6.6;x=\"\\",
        "x=\"\\\"",
        "x=\\\"",
        "\\",
        "6.6.6.6",
        "6.6.6.6,",
        "unknown",
        ", ,",
        "for=6.6.6.6;x=\"\",y=\"",
        "",
    ];
    let appended = [
        "for=192.0.2.1",
        "for=\"192.0.2.1\"",
        "for=\"192.0.2.1:80\";proto=\"https\"",
        "proto=http;for=192.0.2.1",
        "for=192.0.2.1;host=\"a,b\\\",for=1\\\\\"",
    ];
    let more = FORWARDED_ENTRIES_MAX + 1;
    for beginning in beginnings {
        let joined = format!("{}, ", [beginning].repeat(more).join(", "));
        for own in appended {
            for lines in [
                vec![&*format!("{beginning}, {own}")],
                vec![&*format!("{joined}{own}")],
                vec![beginning, own],
                [vec![beginning; more], vec![own]].concat(),
            ] {
                let found = named(ClientHeader::Forwarded, &lines);
                assert!(matches!(&*found, "192.0.2.1" | "192.0.2.1:80"), "{lines:?}: {found}");
            }
        }
        for lines in [
            vec![&*format!("{beginning}, 192.0.2.1")],
            vec![&*format!("{joined}192.0.2.1")],
            vec![beginning, "192.0.2.1"],
            [vec![beginning; more], vec!["192.0.2.1"]].concat(),
        ] {
            assert_eq!(named(ClientHeader::XForwardedFor, &lines), "192.0.2.1", "{lines:?}");
        }
    }
}

#[test]
fn reads_a_bounded_number_of_entries() {
    let list = |count: usize, entry: &str| vec![entry; count].join(", ");
    for (trusted, expected) in [(FORWARDED_ENTRIES_MAX - 1, "192.0.2.1"), (FORWARDED_ENTRIES_MAX, "10.0.0.2")]
    {
        let long = format!("192.0.2.1, {}", list(trusted, "10.0.0.2"));
        assert_eq!(named(ClientHeader::XForwardedFor, &[&long]), expected);
        let long = format!("for=192.0.2.1, {}", list(trusted, "for=10.0.0.2"));
        assert_eq!(named(ClientHeader::Forwarded, &[&long]), expected);
        let lines = [vec!["192.0.2.1"], vec!["10.0.0.2"; trusted]].concat();
        assert_eq!(named(ClientHeader::XForwardedFor, &lines), expected, "in lines of their own");
    }
}

#[test]
fn any_bytes_name_an_address_or_nothing() {
    let mut random = fastrand::Rng::with_seed(24);
    let pieces: [&[u8]; 16] = [
        b"for=",
        b"\"",
        b",",
        b";",
        b" ",
        b"192.0.2.1",
        b"10.0.0.1",
        b"[2001:db8::1]",
        b":80",
        b"\\",
        b"=",
        b"by=x",
        b"\xFF",
        b"\t",
        b"unknown",
        b"0",
    ];
    let trusted = TrustedProxies::new(["10.0.0.0/8"]).expect("a network");
    for _ in 0..20_000 {
        let line: Vec<u8> =
            (0..random.usize(..14)).flat_map(|_| pieces[random.usize(..pieces.len())]).copied().collect();
        for header in [ClientHeader::XForwardedFor, ClientHeader::Forwarded] {
            let found: Option<SocketAddr> =
                client([&line[..]].into_iter(), header, &trusted).map(|client| client.address);
            let text = line.escape_ascii().to_string();
            let is_written = |found: SocketAddr| text.contains(&found.ip().to_string());
            assert!(found.is_none_or(is_written), "{text}: {found:?}");
            let appended = [&line[..], b",for=192.0.2.7;by=\"x,\\\"\""].concat();
            let own: &[u8] = if header == ClientHeader::Forwarded { &appended } else { b"192.0.2.7" };
            let found = client([&line[..], own].into_iter(), header, &trusted);
            assert_eq!(
                found.map(|found| found.address.to_string()).as_deref(),
                Some("192.0.2.7:0"),
                "{text}"
            );
        }
    }
}
