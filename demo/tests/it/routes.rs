//! Routes with immediate responses, with each value of `SERVER_MODE`.

use serde_json::json;

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

#[test]
fn returns_a_row_of_the_database() {
    let demo = Program::start(&[]);
    for _ in 0..20 {
        let row = demo.get("/db").json();
        assert!((1..=10_000).contains(&row["id"].as_u64().unwrap()), "{row}");
        assert!((1..=10_000).contains(&row["randomNumber"].as_u64().unwrap()), "{row}");
    }
}

#[test]
fn serves_the_routes_of_public_benchmarks() {
    let demo = Program::start(&[]);
    let updated = demo.get("/updates?queries=501").json();
    assert_eq!(updated.as_array().unwrap().len(), 500);
    assert_eq!(demo.get("/queries?queries=foo").json().as_array().unwrap().len(), 1);
    let fortunes = demo.get("/fortunes");
    assert_eq!(fortunes.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(fortunes.text().matches("<tr>").count(), 1 + 13);
    assert!(fortunes.text().contains("&lt;script&gt;alert(&quot;"), "{}", fortunes.text());
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
