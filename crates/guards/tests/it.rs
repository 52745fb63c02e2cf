//! Guards in an app, with a driven clock.

#![cfg(test)]

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shearwater::testing::{TestResponse, Tested};
use shearwater::{App, Request, Response, buffered, guard, post};
use shearwater_guards::limits::{FAILURE_EVERY, FAILURES_MAX, VERIFIED_FOR};
use shearwater_guards::{BasicAuth, Clock, Rate, RateLimit, Users};

fn users(password: &str) -> Users {
    let hash = bcrypt::hash(password, 4).expect("a hash");
    Users::parse(&format!("ann:{hash}\nbob:{hash}\n")).expect("users")
}

/// An app that serves `users` a page, and their bodies.
fn guarded(auth: BasicAuth) -> Tested {
    let app = App::new()
        .with(guard(move |request, response| auth.check(request, response)))
        .route(
            "/",
            shearwater::get(|_: &Request, response: &mut Response| {
                response.text("page");
            }),
        )
        .route(
            "/",
            post(buffered(100, |_: &Request, body: &[u8], response: &mut Response| {
                response.body(body);
            })),
        );
    Tested::new(app).expect("valid routes")
}

fn get(tested: &mut Tested, credentials: &str) -> TestResponse {
    let encoded = STANDARD.encode(credentials);
    tested.ask(format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {encoded}\r\n\r\n"))
}

#[test]
fn serves_users_only() {
    let mut tested = guarded(BasicAuth::new(users("secret"), "St\"aff"));
    let none = tested.get("/");
    assert_eq!(none.status, 401);
    assert_eq!(none.field("WWW-Authenticate"), Some("Basic realm=\"St aff\", charset=\"UTF-8\""));
    for (credentials, status) in [
        ("ann:secret", 200),
        ("bob:secret", 200),
        ("ann:Secret", 401),
        ("ann:", 401),
        ("nobody:secret", 401),
        (":secret", 401),
        ("ann", 401),
        ("ann:secret", 200),
    ] {
        assert_eq!(get(&mut tested, credentials).status, status, "{credentials}");
    }
    for value in ["Basic", "Basic ", "Basic !", "Bearer YW5uOnNlY3JldA==", "Basic YW5uOnNlY3JldA=", ""] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {value}\r\n\r\n");
        assert_eq!(tested.ask(request).status, 401, "{value}");
    }
    let long = STANDARD.encode(format!("ann:{}", "x".repeat(1000)));
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {long}\r\n\r\n");
    assert_eq!(tested.ask(request).status, 401);
    let encoded = STANDARD.encode("ann:secret");
    let body = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: basic {encoded}\r\nContent-Length: 3\r\n\r\nabc"
    );
    assert_eq!(tested.ask(body).text(), "abc");
}

#[test]
fn an_address_waits_after_wrong_passwords() {
    let clock = Clock::stopped();
    let mut tested = guarded(BasicAuth::with_clock(users("secret"), "Staff", clock.clone()));
    for _ in 0..FAILURES_MAX + 5 {
        assert_eq!(get(&mut tested, "ann:secret").status, 200, "right ones don't count");
    }
    for number in 0..FAILURES_MAX {
        assert_eq!(get(&mut tested, &format!("ann:{number}")).status, 401);
    }
    let waits = get(&mut tested, "ann:wrong");
    assert_eq!((waits.status, waits.field("Retry-After")), (429, Some("6")));
    assert_eq!(get(&mut tested, "ann:secret").status, 200, "it was verified before");
    assert_eq!(get(&mut tested, "bob:secret").status, 429, "it wasn't");
    clock.advance(FAILURE_EVERY);
    assert_eq!(get(&mut tested, "ann:wrong").status, 401);
    assert_eq!(get(&mut tested, "ann:wrong").status, 429);
}

#[test]
fn verified_credentials_expire_and_outlast_a_reload_of_the_same_users() {
    let clock = Clock::stopped();
    let users = users("secret");
    let auth = BasicAuth::with_clock(users.clone(), "Staff", clock.clone());
    let mut tested = guarded(auth.clone());
    assert_eq!(get(&mut tested, "ann:secret").status, 200);
    // Uses up what may be verified, so that only cached credentials pass.
    (0..FAILURES_MAX).for_each(|number| assert_eq!(get(&mut tested, &format!("ann:{number}")).status, 401));

    let same = BasicAuth::with_clock(users, "Staff", clock.clone()).continuing(&auth);
    let mut reloaded = guarded(same);
    assert_eq!(get(&mut reloaded, "ann:secret").status, 200);
    assert_eq!(get(&mut reloaded, "bob:secret").status, 429);
    let changed = BasicAuth::with_clock(self::users("other"), "Staff", clock.clone()).continuing(&auth);
    assert_eq!(get(&mut guarded(changed), "ann:secret").status, 401);

    clock.advance(VERIFIED_FOR);
    (0..FAILURES_MAX).for_each(|number| assert_eq!(get(&mut tested, &format!("ann:{number}")).status, 401));
    assert_eq!(get(&mut tested, "ann:secret").status, 429, "forgotten, and the address has to wait");
}

#[test]
fn reads_a_file() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    writeln!(file, "ann:{}", bcrypt::hash("secret", 4).expect("a hash")).expect("a write");
    let mut tested = guarded(BasicAuth::open(file.path(), "Staff").expect("users"));
    assert_eq!(get(&mut tested, "ann:secret").status, 200);
    writeln!(file, "bob:$apr1$x$y").expect("a write");
    let error = BasicAuth::open(file.path(), "Staff").expect_err("refused");
    assert_eq!(error.line, Some(2));
    assert!(BasicAuth::open("/nonexistent", "Staff").expect_err("missing").line.is_none());
}

#[test]
fn limits_requests() {
    let clock = Clock::stopped();
    let rate = Rate { requests: 10, per: Duration::from_secs(60), burst: 3 };
    let limit = RateLimit::with_clock(rate, clock.clone()).expect("a rate");
    let same = RateLimit::with_clock(rate, clock.clone()).expect("a rate").continuing(&limit);
    let app = App::new().with(guard(move |request, response| limit.check(request, response))).route(
        "/",
        shearwater::get(|_: &Request, response: &mut Response| {
            response.text("page");
        }),
    );
    let mut tested = Tested::new(app).expect("valid routes");
    let mut statuses = || [0; 5].map(|_| tested.get("/").status);
    assert_eq!(statuses(), [200, 200, 200, 429, 429]);
    clock.advance(Duration::from_secs(12));
    assert_eq!(statuses(), [200, 200, 429, 429, 429]);
    let limited = tested.get("/");
    assert_eq!(limited.field("Retry-After"), Some("6"));

    let app = App::new().with(guard(move |request, response| same.check(request, response)));
    assert_eq!(Tested::new(app).expect("valid routes").get("/").status, 429, "the table is kept");
    for wrong in
        [Rate { requests: 0, ..rate }, Rate { burst: 0, ..rate }, Rate { per: Duration::ZERO, ..rate }]
    {
        assert!(RateLimit::new(wrong).is_err(), "{wrong:?}");
    }
}
