//! Settings: each takes effect, and an invalid one is one sentence and exit status 2.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use serde_json::json;

use crate::program::{Json as _, Program, refused};

#[track_caller]
fn assert_refused(output: &Output, sentence: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.as_ref()), (Some(2), format!("demo: {sentence}\n").as_str()));
    assert!(output.stdout.is_empty(), "it said that it listens");
}

#[test]
fn reports_invalid_settings_in_one_sentence() {
    for (name, value, sentence) in [
        ("SERVER_MODE", "fast", "SERVER_MODE is `fast`, and should be `standard` or `performance`"),
        ("PORT", "x", "PORT is `x`, and should be a number from 0 to 65535"),
        ("LISTEN", "x", "LISTEN is `x`, and should be an address with a port, such as 0.0.0.0:3000"),
        ("JWT_SECRET", "", "JWT_SECRET is empty, so anybody could sign tokens"),
        (
            "DATABASE_URL",
            "mysql://x",
            "DATABASE_URL is `mysql://x`, which is not SQLite: it should be `sqlite::memory:` or `sqlite:PATH`",
        ),
    ] {
        assert_refused(&refused(&[(name, value)]), sentence);
    }
    assert_refused(
        &refused(&[("SERVER_MODE", OsStr::from_bytes(b"\xff"))]),
        "SERVER_MODE is not valid UTF-8",
    );
}

#[test]
fn reports_an_address_or_database_that_cannot_be_opened() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = refused(&[("LISTEN", &address)]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with(&format!("demo: {address} is taken by another program")), "{said}");

    let output = refused(&[("PORT", "0"), ("DATABASE_URL", "sqlite:no/such/folder/demo.db")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("demo: cannot open sqlite:no/such/folder/demo.db: "), "{said}");
    assert_eq!(said.lines().count(), 1);
}

/// Rows persist between runs.
#[test]
fn keeps_a_database_in_a_file() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("demo-{}.db", std::process::id()));
    drop(std::fs::remove_file(&path));
    let url = format!("sqlite:{}", path.display());
    let demo = Program::start(&[("DATABASE_URL", &url)]);
    assert!(demo.banner.contains(&url), "{}", demo.banner);
    let row = demo.get("/db").json();
    demo.terminate();
    assert!(demo.wait().status.success());

    let kept = rusqlite::Connection::open(&path).unwrap();
    let number: u32 = kept
        .query_row("SELECT number FROM world WHERE id = ?1", [row["id"].as_i64().unwrap()], |row| row.get(0))
        .unwrap();
    assert_eq!(row["randomNumber"], number);
    kept.execute("UPDATE world SET number = 7", []).unwrap();
    drop(kept);

    let again = Program::start(&[("DATABASE_URL", &url)]);
    assert_eq!(again.get("/db").json()["randomNumber"], 7);
    drop(again);
    std::fs::remove_file(&path).unwrap();
}

/// A token stays valid after a restart only with the same secret.
#[test]
fn tokens_are_valid_for_their_secret_only() {
    let secret = [("JWT_SECRET", "a secret of more than thirty-two bytes")];
    let login = |demo: &Program| {
        let body = json!({ "user": "demo", "password": "demo" });
        let granted = demo.ask_json("POST", "/login", &body).json();
        format!("Authorization: Bearer {}", granted["token"].as_str().unwrap())
    };
    let token = login(&Program::start(&secret));
    assert_eq!(Program::start(&secret).ask("GET", "/me", &[&token], b"").status, 200);
    assert_eq!(Program::start(&[]).ask("GET", "/me", &[&token], b"").status, 401);
}

#[test]
fn warns_about_weak_secrets() {
    for (settings, note) in [
        (&[][..], "JWT_SECRET is not set: a random one is used, and tokens end with this process"),
        (
            &[("JWT_SECRET", "short")],
            "JWT_SECRET is shorter than 32 bytes, which is good enough for a demonstration only",
        ),
    ] {
        let demo = Program::start(settings);
        assert_eq!(demo.get("/").status, 200);
        demo.terminate();
        let end = demo.wait();
        assert!(end.status.success());
        assert_eq!(end.stdout, format!("demo: {note}\n"));
    }
}

#[test]
fn listen_sets_the_whole_address() {
    let demo = Program::start(&[("LISTEN", "0.0.0.0:0")]);
    assert!(demo.addr.ip().is_unspecified(), "{}", demo.banner);
    let output = refused(&[("LISTEN", "127.0.0.1:0"), ("PORT", "0")]);
    assert_refused(&output, "PORT and LISTEN are both set; set one of them");
}
