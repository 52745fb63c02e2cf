//! Routes with immediate responses, with each value of `SERVER_MODE`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::{Json as _, Program};

#[test]
fn serves_pages_and_greetings() {
    let demo = Program::start(&[]);
    assert_eq!(demo.get("/").text(), "Hello, world");
    assert_eq!(demo.get("/plaintext").text(), "Hello, World!");
    assert_eq!(demo.get("/json").json(), json!({ "message": "Hello, World!" }));
    assert_eq!(demo.get("/user/42").text(), "42");
    assert_eq!(demo.get("/user/%C3%A4%20b?x=1").text(), "ä b");
    let welcome = demo.get("/welcome");
    assert_eq!(welcome.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(welcome.text().starts_with("<!doctype html>"));
    let missing = demo.get("/none");
    assert_eq!(
        (missing.status, missing.text()),
        (404, "there is nothing at /none; /welcome lists what there is\n")
    );
    assert_eq!(demo.ask("DELETE", "/json", &[], b"").status, 405);
}

/// Each link and call of the page works.
#[test]
fn serves_every_link_of_the_page() {
    let demo = Program::start(&[]);
    let page = demo.get("/welcome");
    let mut links = 0;
    for part in page.text().split("href=\"").skip(1) {
        let link = part.split('"').next().unwrap();
        if link.starts_with('/') && link != "/events" {
            let status = demo.get(link).status;
            assert!(status == 200 || (link == "/me" && status == 401), "{link}: {status}");
            links += 1;
        }
    }
    assert!(links >= 7, "{links} links");
}

/// Parses a row of the table `world`, whose ids and numbers are 1 to 10,000.
fn world(row: &Value) -> (u64, u64) {
    let field = |name: &str| row[name].as_u64().filter(|value| (1..=10_000).contains(value)).unwrap();
    assert_eq!(row.as_object().unwrap().len(), 2, "{row}");
    (field("id"), field("randomNumber"))
}

fn worlds(demo: &Program, target: &str) -> Vec<(u64, u64)> {
    demo.get(target).json().as_array().unwrap().iter().map(world).collect()
}

/// TechEmpower's rules, with which the suite `techempower` of the lab measures it.
#[test]
fn keeps_the_rules_of_public_benchmarks() {
    let demo = Program::start(&[]);
    for target in ["/plaintext", "/json", "/db", "/queries", "/updates", "/fortunes"] {
        let response = demo.get(target);
        assert!(
            ["server", "date", "content-length"].iter().all(|name| response.field(name).is_some()),
            "{target}"
        );
    }
    world(&demo.get("/db").json());
    for path in ["/queries", "/updates"] {
        let queries = [
            ("", 1),
            ("?queries=", 1),
            ("?queries=foo", 1),
            ("?queries=0", 1),
            ("?queries=2", 2),
            ("?queries=501", 500),
        ];
        for (query, rows) in queries {
            assert_eq!(worlds(&demo, &format!("{path}{query}")).len(), rows, "{path}{query}");
        }
    }
    let updated: BTreeMap<u64, u64> = worlds(&demo, "/updates?queries=500").into_iter().collect();
    let read = (0..10).flat_map(|_| worlds(&demo, "/queries?queries=500"));
    let found: Vec<_> = read.filter(|(id, _)| updated.contains_key(id)).collect();
    assert!(!found.is_empty() && found.iter().all(|(id, number)| updated[id] == *number));
    let fortunes = demo.get("/fortunes");
    assert_eq!(fortunes.field("content-type"), Some("text/html; charset=utf-8"));
    let page = fortunes.text();
    let cells = page.split("<td>").skip(1).filter_map(|cell| cell.split("</td>").next());
    let unescape = |text: &str| text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let messages: Vec<String> =
        cells.skip(1).step_by(2).map(|text| unescape(text).replace("&#39;", "'")).collect();
    let added = "Additional fortune added at request time.";
    let mut expected: Vec<&str> = include_str!("../../src/fortunes.txt").lines().chain([added]).collect();
    expected.sort_unstable();
    assert!(messages == expected && !page.contains("<script>"), "{page}");
    assert_eq!(demo.get("/baseline11?a=13&b=42").text(), "55");
    assert_eq!(demo.ask("POST", "/baseline11?a=13&b=42", &[], b"20").text(), "75");
    assert_eq!(demo.ask("POST", "/baseline11?a=13&b=42", &[], b"x").status, 400);
}

#[test]
fn accepts_only_valid_tokens() {
    let demo = Program::start(&[]);
    let granted = demo.ask_json("POST", "/login", &json!({ "user": "demo", "password": "demo" })).json();
    assert_eq!(granted["expires_in_seconds"], 3600);
    let token = granted["token"].as_str().unwrap();
    for field in [format!("Authorization: Bearer {token}"), format!("Authorization: bearer  {token}")] {
        assert_eq!(demo.ask("GET", "/me", &[&field], b"").json()["user"], "demo");
    }
    let wrong = demo.ask_json("POST", "/login", &json!({ "user": "demo", "password": "demo2" }));
    assert_eq!(wrong.status, 401);
    for field in [
        "X: none",
        "Authorization: Bearer",
        "Authorization: Bearer a.b.c",
        "Authorization: Basic ZGVtbzpkZW1v",
    ] {
        let refused = demo.ask("GET", "/me", &[field], b"");
        assert_eq!((refused.status, refused.field("www-authenticate")), (401, Some("Bearer")), "{field}");
    }
}

#[test]
fn waits_at_least_as_long_as_requested() {
    let demo = Program::start(&[]);
    for path in ["/slow", "/slow-async"] {
        let begun = std::time::Instant::now();
        assert_eq!(demo.get(&format!("{path}?ms=50")).text(), "slept 50 ms\n");
        assert!(begun.elapsed().as_millis() >= 50);
        for wrong in ["", "?ms=soon", "?ms=-1", "?ms=60001"] {
            assert_eq!(demo.get(&format!("{path}{wrong}")).status, 400, "{path}{wrong}");
        }
    }
}

#[test]
fn lists_the_parts_of_an_upload() {
    let demo = Program::start(&[]);
    let form = ["Content-Type: multipart/form-data; boundary=b"];
    let part = |about: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; {about}\r\n\r\n{content}\r\n")
    };
    let body = part("name=\"a\"", "12345")
        + &part("name=\"f\"; filename=\"x.bin\"", &"x".repeat(500_000))
        + "--b--\r\n";
    let told = demo.ask("POST", "/upload", &form, body.as_bytes()).json();
    assert_eq!(
        told,
        json!([
            { "name": "a", "file": null, "type": null, "bytes": 5 },
            { "name": "f", "file": "x.bin", "type": null, "bytes": 500_000 },
        ])
    );
    let most = part("name=\"n\"", "x").repeat(100) + "--b--\r\n";
    assert_eq!(demo.ask("POST", "/upload", &form, most.as_bytes()).json().as_array().unwrap().len(), 100);
    let many = part("name=\"n\"", "x").repeat(101) + "--b--\r\n";
    assert_eq!(demo.ask("POST", "/upload", &form, many.as_bytes()).status, 413);
    assert_eq!(demo.ask("POST", "/upload", &form, b"no form").status, 400);
}

/// Only the application's responses have its middleware's header.
const MARK: &str = "x-content-type-options";

#[test]
fn the_application_responds_to_all_in_standard_mode() {
    let demo = Program::start(&[("SERVER_MODE", "standard")]);
    for path in ["/", "/json", "/plaintext", "/none"] {
        assert_eq!(demo.get(path).field(MARK), Some("nosniff"), "{path}");
    }
}

#[test]
fn fast_routes_precede_the_application_in_performance_mode() {
    let demo = Program::start(&[("SERVER_MODE", "performance")]);
    let (json, plaintext) = (demo.get("/json"), demo.get("/plaintext"));
    assert_eq!((json.json(), json.field(MARK)), (json!({ "message": "Hello, World!" }), None));
    assert_eq!((plaintext.text(), plaintext.field(MARK)), ("Hello, World!", None));
    assert_eq!(plaintext.field("content-type"), Some("text/plain; charset=utf-8"));

    for path in ["/", "/user/7", "/db", "/none", "/json/", "/plaintext/more"] {
        assert_eq!(demo.get(path).field(MARK), Some("nosniff"), "{path}");
    }
    let other = demo.ask("POST", "/json", &[], b"");
    assert_eq!((other.status, other.field(MARK)), (405, Some("nosniff")), "other methods fall through");
    assert_eq!(demo.ask("POST", "/", &[], b"ahoy").text(), "ahoy");
}
