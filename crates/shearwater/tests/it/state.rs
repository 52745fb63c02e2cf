//! State: shared by all workers, or local to each.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use shearwater::{AcceptMode, App, Request, Response};

use crate::served::{Served, here};

struct Name(&'static str);

#[test]
fn state_is_found_by_its_type_in_every_kind_of_route() {
    let mut app = App::new();
    app.state(Name("shared")).state(AtomicU32::new(0)).local(|_| Name("own")).local(|_| Rc::new(7u8));
    let show = |request: &Request, response: &mut Response| {
        let count = request.state::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
        let (shared, own) = (request.state::<Name>().0, request.local::<Name>().0);
        response.text(&format!("{shared} {own} {} {count}", request.local::<Rc<u8>>()));
    };
    app.get("/exact", show);
    app.get("/of/{name}", show);
    app.scope("/else", |app| {
        app.fallback(show);
    });
    app.before(move |request: &Request, response: &mut Response| match request.path() {
        "/before" => {
            show(request, response);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    let served = Served::app(app);
    let mut client = served.connect();
    for (count, target) in ["/exact", "/of/x", "/else/x", "/before"].into_iter().enumerate() {
        let response = client.request("GET", target, &[]);
        assert_eq!(
            (response.status, response.text()),
            (200, format!("shared own 7 {count}").as_str()),
            "{target}"
        );
    }
}

#[test]
fn state_that_there_is_not_costs_the_request() {
    let mut app = App::new();
    app.state(1u8).local(|_| 1u16);
    app.get("/state", |request: &Request, _: &mut Response| assert_eq!(*request.state::<u16>(), 1));
    app.get("/local", |request: &Request, _: &mut Response| assert_eq!(*request.local::<u8>(), 1));
    app.get("/both", |request: &Request, response: &mut Response| {
        response.text(&format!("{} {}", request.state::<u8>(), request.local::<u16>()));
    });
    let served = Served::app(app);
    for (target, status) in [("/state", 500), ("/local", 500), ("/both", 200)] {
        assert_eq!(served.connect().request("GET", target, &[]).status, status, "{target}");
    }
}

/// A worker's counter, and the thread that made it.
struct Own {
    worker: usize,
    made_on: ThreadId,
    count: Cell<u32>,
}

#[test]
fn each_worker_has_its_own_made_on_its_own_thread() {
    const WORKERS: usize = 3;
    let made = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&made);
    let mut app = App::new();
    app.local(move |worker| {
        noted.lock().expect("not poisoned").push(worker);
        Own { worker, made_on: thread::current().id(), count: Cell::new(0) }
    });
    app.get("/", |request: &Request, response: &mut Response| {
        let own: &Own = request.local();
        assert_eq!(own.made_on, thread::current().id());
        own.count.set(own.count.get() + 1);
        response.text(&format!("{} {}", own.worker, own.count.get()));
    });
    // One acceptor distributes connections round-robin, so each worker gets one.
    let served = Served::of(here().workers(WORKERS).accept_mode(AcceptMode::Dispatch), app);
    let mut clients: Vec<_> = (0..WORKERS).map(|_| served.connect()).collect();
    for round in 1..=2 {
        let mut responses: Vec<_> =
            clients.iter_mut().map(|client| client.request("GET", "/", &[]).text().to_owned()).collect();
        responses.sort();
        assert_eq!(responses, (0..WORKERS).map(|worker| format!("{worker} {round}")).collect::<Vec<_>>());
    }
    let mut made = made.lock().expect("not poisoned").clone();
    made.sort_unstable();
    assert_eq!(made, [0, 1, 2]);
}
