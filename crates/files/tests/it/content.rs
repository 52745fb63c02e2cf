//! Content and headers of files of any size, for each method.

use std::fs::{self, File};

use shearwater_io::limits::SEND_BYTES_PER_TURN_MAX;

use crate::site::TestSite;

/// Bytes sent in one turn.
const SHARE: usize = SEND_BYTES_PER_TURN_MAX as usize;

/// Returns bytes that depend on their position.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 ^ (index / 65_536) as u8).collect()
}

#[test]
fn sends_files_of_any_size() {
    let site = TestSite::new();
    let mut client = site.connect();
    for len in [0, 1, 2, 4095, 65_535, 65_536, 65_537, SHARE - 1, SHARE, SHARE + 1, 2 * SHARE, 3_000_000] {
        let content = bytes(len);
        site.file("f.bin", &content);
        let response = client.get("/f.bin");
        assert_eq!((response.status, response.body.len()), (200, len));
        assert!(response.body == content, "the bytes of {len} differ");
    }
}

#[test]
fn sends_pipelined_files_in_order() {
    let site = TestSite::new();
    let contents = [bytes(300_000), Vec::new(), bytes(3), bytes(1_000_000)];
    for (number, content) in contents.iter().enumerate() {
        site.file(format!("{number}.bin"), content);
    }
    let mut client = site.connect();
    for _ in 0..3 {
        for number in 0..contents.len() {
            client.ask("GET", &format!("/{number}.bin"), &[]);
        }
        client.ask("HEAD", "/0.bin", &[]).ask("GET", "/none", &[]);
    }
    for _ in 0..3 {
        for content in &contents {
            assert!(client.response("GET").body == *content);
        }
        assert_eq!(client.response("HEAD").field("Content-Length"), Some("300000"));
        assert_eq!(client.response("GET").status, 404);
    }
}

#[test]
fn starts_a_5_gib_file_and_survives_a_disconnect() {
    const LEN: u64 = 5 * 1024 * 1024 * 1024 + 1;
    let site = TestSite::new();
    File::create(site.at("sparse.bin")).expect("a file").set_len(LEN).expect("a sparse file");
    let mut client = site.connect();
    let expected = LEN.to_string();
    assert_eq!(client.request("HEAD", "/sparse.bin", &[]).field("Content-Length"), Some(expected.as_str()));
    client.ask("GET", "/sparse.bin", &[]);
    assert_eq!(client.head().field("Content-Length"), Some(expected.as_str()));
    let mut read_bytes = 0;
    while read_bytes < 1024 * 1024 {
        let piece = client.data();
        assert!(!piece.is_empty() && piece.iter().all(|&byte| byte == 0));
        read_bytes += piece.len();
    }
    drop(client);
    site.file("after", "still here");
    assert_eq!(site.get("/after"), (200, b"still here".to_vec()));
}

#[test]
fn head_has_the_headers_of_get() {
    let site = TestSite::new();
    site.file("f.txt", "text")
        .file("empty.css", "")
        .file("dir/index.html", "<p>")
        .link("out", "../outside/canary");
    let mut client = site.connect();
    for target in ["/f.txt", "/empty.css", "/dir/", "/dir", "/none", "/out", "/%zz"] {
        let mut get = client.get(target);
        let mut head = client.request("HEAD", target, &[]);
        get.body.clear();
        for response in [&mut get, &mut head] {
            response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
        }
        assert_eq!(head, get, "{target}");
    }
    assert_eq!(client.request("HEAD", "/f.txt", &[]).field("Content-Length"), Some("4"));
}

#[test]
fn media_type_follows_from_the_name() {
    let site = TestSite::new();
    let mut client = site.connect();
    for (name, expected) in [
        ("a.html", "text/html; charset=utf-8"),
        ("a.tar.gz", "application/gzip"),
        ("a.unknown", "application/octet-stream"),
        ("d.html/a", "application/octet-stream"),
    ] {
        site.file(name, "content");
        let response = client.get(&format!("/{name}"));
        assert_eq!((response.status, response.field("Content-Type")), (200, Some(expected)), "{name}");
    }
    site.file("index.html", "content");
    assert_eq!(client.get("/").field("Content-Type"), Some("text/html; charset=utf-8"));
}

#[test]
fn serves_the_present_files_without_a_cache() {
    let site = TestSite::new();
    let mut client = site.connect();
    let mut get = |target: &str| {
        let response = client.get(target);
        (response.status, String::from_utf8(response.body).expect("text"))
    };
    assert_eq!(get("/f.txt"), (404, "Not Found\n".to_owned()));
    site.file("f.txt", "first");
    assert_eq!(get("/f.txt"), (200, "first".to_owned()));
    site.file("f.txt", "second, longer");
    assert_eq!(get("/f.txt"), (200, "second, longer".to_owned()));
    site.file("new.txt", "third");
    fs::rename(site.at("new.txt"), site.at("f.txt")).expect("replaced");
    assert_eq!(get("/f.txt"), (200, "third".to_owned()));
    fs::remove_file(site.at("f.txt")).expect("removed");
    assert_eq!(get("/f.txt"), (404, "Not Found\n".to_owned()));
    site.file("f.txt/index.html", "a folder");
    assert_eq!(get("/f.txt").0, 301);
}

#[test]
fn sends_a_removed_file_whole() {
    const LEN: usize = 32 * 1024 * 1024;
    let site = TestSite::new();
    let content = bytes(LEN);
    site.file("f.bin", &content);
    let mut client = site.connect();
    client.ask("GET", "/f.bin", &["Connection: close"]).head();
    fs::remove_file(site.at("f.bin")).expect("removed");
    assert!(client.rest() == content);
}

#[test]
fn closes_short_when_a_file_is_truncated() {
    const LEN: usize = 64 * 1024 * 1024;
    let site = TestSite::new();
    site.file("f.bin", bytes(LEN)).file("after", "still here");
    let mut client = site.connect();
    assert_eq!(client.ask("GET", "/f.bin", &[]).head().field("Content-Length"), Some("67108864"));
    File::options().write(true).open(site.at("f.bin")).expect("a file").set_len(0).expect("cut");
    // The client detects it only by the end of the connection, or the reset of its stream.
    let (body, is_cut) = client.body_or_cut();
    assert!(is_cut && body.len() < LEN);
    assert_eq!(site.get("/after"), (200, b"still here".to_vec()));
}

#[test]
fn sends_more_files_in_a_turn_than_stay_open() {
    let site = TestSite::cached();
    // More than `OPEN_FILES_MAX` of the engine.
    let files = 48;
    for number in 0..files {
        site.file(format!("{number}.bin"), bytes(100_000 + number));
    }
    // Each twice in a row, then all again: reused, and opened again.
    let order: Vec<usize> = (0..2 * files).map(|index| index / 2).chain(0..files).collect();
    let requests = order.iter().map(|number| format!("GET /{number}.bin HTTP/1.1\r\nHost: a\r\n\r\n"));
    let mut client = site.connect();
    client.send(requests.collect::<String>());
    for number in order {
        assert!(client.response("GET").body == bytes(100_000 + number), "{number}");
    }
}

const ALLOW: Option<&str> = Some("GET, HEAD, OPTIONS");

#[test]
fn rejects_other_methods() {
    let site = TestSite::new();
    site.file("f.txt", "content");
    let mut client = site.connect();
    for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get", "PROPFIND"] {
        let form = if matches!(method, "BREW" | "get" | "PROPFIND") { (501, None) } else { (405, ALLOW) };
        for target in ["/f.txt", "/", "/none"] {
            let response = client.ask(method, target, &["Content-Length: 4"]).send("body").response(method);
            assert_eq!((response.status, response.field("Allow")), form, "{method} {target}");
        }
    }
    assert_eq!(client.get("/f.txt").text(), "content");
}

#[test]
fn options_lists_the_methods() {
    let site = TestSite::new();
    site.file("f.txt", "content");
    let mut client = site.connect();
    for target in ["/f.txt", "/", "*"] {
        let response = client.request("OPTIONS", target, &[]);
        assert_eq!((response.status, response.field("Allow")), (204, ALLOW), "{target}");
    }
}

#[test]
fn get_with_a_body_discards_it() {
    let site = TestSite::new();
    site.file("f.txt", "content");
    let mut client = site.connect();
    client.ask("GET", "/f.txt", &["Content-Length: 100000"]).send(vec![b'x'; 100_000]);
    assert_eq!(client.response("GET").text(), "content");
    assert_eq!(client.get("/f.txt").text(), "content");
    client.end_sending().is_ended();
}
