//! Reports that clients can provoke: each kind once a second, with a count, and on one line.

use shearwater_engine::Notice;
use shearwater_engine::limits::REPORT_KINDS_MAX;

use crate::harness::app::ON_PURPOSE;
use crate::harness::unit::head;
use crate::harness::{Unit, World};

/// Sends each request on a separate connection.
fn ask(world: &mut World, targets: &[&str]) {
    for target in targets {
        let mut client = world.connect();
        client.send(head("GET", target, ""));
        client.peer.finish();
        world.settle();
    }
}

/// Returns request, suppressed count and file of each reported panic.
fn panics(world: &World) -> Vec<(String, u64, String)> {
    let panic = |notice| match notice {
        Notice::HandlerPanicked { worker: 0, request, message, place, left_out } if message == ON_PURPOSE => {
            let place = place.expect("the hook has seen it");
            let file = place.split(':').next().expect("a file").to_owned();
            (request.expect("a request"), left_out, file)
        }
        other => panic!("{other}"),
    };
    world.told().into_iter().map(panic).collect()
}

#[test]
fn each_place_that_panics_is_reported_once_a_second_with_request_and_count() {
    let mut world = World::default();
    let app = || "crates/engine/tests/it/harness/app.rs".to_owned();
    ask(&mut world, &["/panic/1", "/panic/2", "/panic/3", "/panic/4", "/half-panic/5"]);
    let first = [("GET /panic/1".to_owned(), 0, app()), ("GET /half-panic/5".to_owned(), 0, app())];
    assert_eq!(panics(&world), first);
    world.pass(900);
    assert_eq!(panics(&world), []);
    world.pass(200);
    assert_eq!(panics(&world), [("GET /panic/2".to_owned(), 2, app())]);
    world.pass(5000);
    assert_eq!(panics(&world), [], "there were no more");
    ask(&mut world, &["/panic/6"]);
    assert_eq!(panics(&world), [("GET /panic/6".to_owned(), 0, app())]);
    assert_eq!(world.totals().handler_panics, 6);
}

#[test]
fn panics_in_bodies_and_behind_responses_are_reported_alike() {
    let mut world = World::default();
    for unit in [
        Unit::new(
            head("POST", "/policy-panics/1", "Content-Length: 1\r\n"),
            crate::harness::ExpectedResponse::failed(),
        ),
        Unit::post("pulled-panics", 2, 500),
    ] {
        let mut client = world.connect();
        client.send(&unit.bytes);
        client.peer.finish();
        world.settle();
    }
    let requests: Vec<_> = panics(&world).into_iter().map(|(request, _, _)| request).collect();
    assert_eq!(requests, ["POST /policy-panics/1", "POST /pulled-panics/2"]);
}

#[test]
fn left_out_faults_are_reported_at_the_end() {
    let mut world = World::default();
    ask(&mut world, &["/panic/1", "/panic/2", "/panic/3"]);
    assert_eq!(panics(&world).len(), 1);
    world.control.stop();
    world.run();
    let told = world.told();
    let Some(Notice::HandlerPanicked { left_out: 1, .. }) = told.last() else { panic!("{told:?}") };
}

#[test]
fn a_worker_sleeps_until_the_second_is_over() {
    let mut world = World::default();
    ask(&mut world, &["/panic/1", "/panic/2"]);
    assert_eq!(panics(&world).len(), 1);
    let began_ms = world.net.now_ms();
    world.turn();
    assert!((900..=1000).contains(&(world.net.now_ms() - began_ms)), "{}", world.net.now_ms());
    assert_eq!(panics(&world).len(), 1);
}

#[test]
fn files_are_reported_by_their_error_and_the_response_goes_out_as_it_is() {
    let mut world = World::default();
    let mut client = world.connect();
    client.send(head("GET", "/file-fails/1", ""));
    world.settle();
    assert!(client.read().starts_with(b"HTTP/1.1 403 Forbidden\r\n"));
    client.send(Unit::get(1).bytes);
    world.settle();
    assert!(client.read().windows(12).filter(|got| got.starts_with(b"HTTP/1.1 ")).count() == 2, "it goes on");
    ask(&mut world, &["/file-fails/2", "/file-fails/3", "/file-fails/4?input/output+error"]);
    world.pass(1100);
    let lines: Vec<_> = world.told().iter().map(ToString::to_string).collect();
    let line = |path, error, more| {
        format!(
            "worker 0: can't send \"/srv/file-fails/{path}\\nforged\": {error}; its client got a 403{more}"
        )
    };
    assert_eq!(
        lines,
        [
            line(1, "permission denied", ""),
            line(4, "input/output+error", ""),
            line(2, "permission denied", " (1 more like it)")
        ]
    );
    let totals = world.totals();
    assert_eq!((totals.handler_panics, totals.handler_errors, totals.responses_4xx), (0, 0, 4));
}

#[test]
fn no_text_of_a_client_ends_a_line() {
    let notice = Notice::HandlerPanicked {
        worker: 0,
        request: Some("GET /\u{2028}".to_owned()),
        message: "bad \"x\"\nshearwater: forged\u{1b}[2K\u{202e}".to_owned(),
        place: Some("a.rs:1:2".to_owned()),
        left_out: 7,
    };
    let message = r#"bad "x"\nshearwater: forged\u{1b}[2K\u{202e}"#;
    let line = format!(r"worker 0: GET /\u{{2028}}: a handler panicked ({message}) at a.rs:1:2; ");
    let rest = "its client got a 500, or what had been sent by then (7 more like it)";
    assert_eq!(notice.to_string(), line + rest);
}

#[test]
fn a_bounded_number_of_kinds_is_reported() {
    let mut world = World::default();
    let targets: Vec<_> = (0..REPORT_KINDS_MAX + 3).map(|kind| format!("/file-fails/1?{kind}")).collect();
    let targets: Vec<_> = targets.iter().map(String::as_str).collect();
    ask(&mut world, &targets);
    assert_eq!((world.told().len(), world.totals().hit_notices), (REPORT_KINDS_MAX, 3));
    world.pass(1100);
    ask(&mut world, &targets[REPORT_KINDS_MAX..]);
    assert_eq!((world.told().len(), world.totals().hit_notices), (3, 3));
}

#[test]
fn a_long_message_is_cut() {
    let mut world = World::default();
    ask(&mut world, &[&format!("/panic/{}", "x".repeat(5000))]);
    let told = panics(&world);
    assert!(told[0].0.starts_with("GET /panic/xx") && told[0].0.chars().count() == 513, "{told:?}");
}
