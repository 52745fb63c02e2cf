//! More passwords than may wait. On its own: the queue belongs to the process.

#![cfg(test)]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shearwater::testing::Tested;
use shearwater::{App, Request, Response, get, guard};
use shearwater_guards::limits::{FAILURES_MAX, VERIFY_WAIT_MAX, VERIFY_WAITING_MAX};
use shearwater_guards::{BasicAuth, Clock, Users};

/// Each app has an allowance of its own, and all share one queue.
const APPS: usize = 10;

#[test]
fn passwords_wait_for_a_bounded_time() {
    // Expensive enough that the threads finish few of them before the clock moves.
    let hash = bcrypt::hash("secret", 9).expect("a hash");
    let users = Users::parse(&format!("ann:{hash}\n")).expect("users");
    let clock = Clock::stopped();
    let mut apps: Vec<Tested> = (0..APPS)
        .map(|_| {
            let auth = BasicAuth::with_clock(users.clone(), "Staff", clock.clone());
            let app = App::new().with(guard(move |request, response| auth.check(request, response))).route(
                "/",
                get(|_: &Request, response: &mut Response| {
                    response.text("page");
                }),
            );
            Tested::new(app).expect("valid routes")
        })
        .collect();
    let mut clients = Vec::new();
    for app in &mut apps {
        for number in 0..FAILURES_MAX {
            let credentials = STANDARD.encode(format!("ann:{number}"));
            let mut client = app.connect();
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {credentials}\r\n\r\n"));
            clients.push(client);
        }
        app.settle();
    }
    let mut responses: Vec<_> = clients.iter_mut().filter_map(|client| client.response()).collect();
    let refused = responses.iter().filter(|response| response.status == 503).count();
    // A thread that hasn't begun has taken none from the queue. What was verified meanwhile has made room.
    let most = APPS * FAILURES_MAX as usize - VERIFY_WAITING_MAX;
    assert!((1..=most).contains(&refused), "{refused}");
    clock.advance(VERIFY_WAIT_MAX);
    apps.iter_mut().for_each(Tested::settle_offloaded);
    responses.extend(clients.iter_mut().filter_map(|client| client.response()));
    let mut statuses = BTreeMap::new();
    responses.iter().for_each(|response| *statuses.entry(response.status).or_insert(0) += 1);
    assert_eq!(responses.len(), APPS * FAILURES_MAX as usize, "{statuses:?}");
    assert!(statuses.keys().all(|status| [401, 503].contains(status)), "{statuses:?}");
    assert!(statuses[&503] > refused, "those that had waited for too long: {statuses:?}");
    let late = responses.iter().filter(|response| response.status == 503);
    assert!(late.into_iter().all(|response| response.field("Retry-After") == Some("1")));
}
