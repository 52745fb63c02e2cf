//! Workers in tokio runtimes of their own: what stays on the worker, and the end of what was spawned.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use shearwater::{Error, StartError, Verbosity};
use shearwater_tower::{Running, bind_each};
use testkit::{TIMEOUT, TestClient, until_refused};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::local::local_server;
use crate::served::{Served, drivers, here, runtime, surrounding};

fn name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// A value that isn't `Send`, in a task of the worker.
async fn local() -> String {
    let task = spawn_local(async {
        let count = Rc::new(Cell::new(0));
        let other = Rc::clone(&count);
        spawn_local(async move { other.set(other.get() + 1) }).await.expect("it ends");
        format!("{} on {}", count.get(), name())
    });
    task.await.expect("it ends")
}

/// Tells its thread when it is dropped.
struct OnDrop(SyncSender<String>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        // A test that has ended doesn't receive.
        drop(self.0.send(name()));
    }
}

#[test]
fn makes_each_service_within_the_runtime_of_its_worker() {
    for driver in drivers() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let make = async move |worker: usize| {
            count.fetch_add(1, Ordering::Relaxed);
            let spawned = tokio::spawn(async { name() }).await.expect("it ends");
            let here = spawn_local(async { name() }).await.expect("it ends");
            tokio::time::sleep(Duration::from_millis(1)).await;
            let text = format!("{worker} {spawned} {here}");
            Router::new().route("/made", get(move || async move { text })).route("/local", get(local))
        };
        let serve = bind_each("127.0.0.1:0", make).server(|_| local_server());
        let served = Served::of(serve.workers(2).verbosity(Verbosity::Off).driver(driver));
        assert_eq!(made.load(Ordering::Relaxed), 2);
        for _ in 0..8 {
            let mut client = served.connect();
            let text = client.get("/made").text().to_owned();
            let worker = text.split(' ').next().expect("a number").to_owned();
            assert_eq!(text, format!("{worker} worker-{worker} worker-{worker}"));
            assert_eq!(client.get("/local").text(), format!("1 on worker-{worker}"));
        }
    }
}

#[test]
fn reports_a_service_that_cannot_be_made() {
    let make = async |_| -> Router { panic!("the database is asleep") };
    match bind_each("127.0.0.1:0", make).workers(2).verbosity(Verbosity::Off).start().err() {
        Some(Error::Start(StartError::Service { message, .. })) => {
            assert_eq!(message, "the database is asleep");
        }
        other => panic!("{other:?}"),
    }
}

#[derive(Clone)]
struct Spawning {
    release: Arc<Notify>,
    dropped: SyncSender<String>,
}

/// Responds at once; what it has spawned waits for its release.
async fn spawning(State(state): State<Spawning>) -> &'static str {
    let on_drop = OnDrop(state.dropped);
    tokio::spawn(async move {
        state.release.notified().await;
        drop(on_drop);
    });
    "spawned"
}

fn spawned(drain_ms: u64) -> (Running, Arc<Notify>, Receiver<String>) {
    let (dropped, drops) = sync_channel(8);
    let release = Arc::new(Notify::new());
    let state = Spawning { release: Arc::clone(&release), dropped };
    let router = Router::new().route("/", get(spawning)).with_state(state);
    // One that runs forever holds nothing up.
    let make = async move |_| {
        tokio::spawn(std::future::pending::<()>());
        router.clone()
    };
    let serve = bind_each("127.0.0.1:0", make).server(|_| local_server()).workers(1);
    let running = serve.drain_ms(drain_ms).verbosity(Verbosity::Off).start().expect("starts");
    assert_eq!(TestClient::connect(running.address()).get("/").text(), "spawned");
    (running, release, drops)
}

#[test]
fn a_drain_waits_for_spawned_tasks() {
    let (running, release, drops) = spawned(86_400_000);
    running.drain();
    until_refused(running.address());
    assert!(drops.recv_timeout(Duration::from_millis(50)).is_err(), "it still waits");
    release.notify_one();
    runtime().block_on(running.ended()).expect("ends normally");
    assert_eq!(drops.recv_timeout(TIMEOUT).expect("it has ended"), "worker-0");
}

#[test]
fn spawned_tasks_are_dropped_at_the_deadline_and_by_a_stop() {
    for stops in [false, true] {
        let (running, _release, drops) = spawned(if stops { 86_400_000 } else { 50 });
        running.drain();
        if stops {
            until_refused(running.address());
            running.control().stop();
        }
        let control = running.control();
        runtime().block_on(running.ended()).expect("ends normally");
        assert_eq!(drops.recv_timeout(TIMEOUT).expect("it is dropped"), "worker-0");
        let messages: Vec<_> = control.messages().into_iter().map(|message| message.text).collect();
        let dropped = "worker 0 has dropped spawned tasks that hadn't ended: 1";
        assert!(messages.iter().any(|message| message == dropped), "{messages:?}");
    }
}

/// Ends a task when it is dropped, as pools end those of their connections.
struct Pool(Arc<Notify>);

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn connecting(State(pool): State<Arc<Pool>>) -> &'static str {
    let ended = Arc::clone(&pool.0);
    tokio::spawn(async move { ended.notified().await });
    "connected"
}

#[test]
fn a_drain_waits_for_no_task_that_ends_with_the_service() {
    if surrounding().is_some() {
        return;
    }
    let router = Router::new().route("/", get(connecting)).with_state(Arc::new(Pool(Arc::default())));
    let running = here(router).workers(2).drain_ms(86_400_000).start().expect("starts");
    assert_eq!(TestClient::connect(running.address()).get("/").text(), "connected");
    running.drain();
    runtime().block_on(running.ended()).expect("ends normally");
}

#[test]
fn graceful_shutdown_completes_within_the_runtime() {
    if surrounding().is_some() {
        return;
    }
    let signal = tokio::time::sleep;
    let router = Router::new().route("/", get(async || "served"));
    let serve = here(router).with_graceful_shutdown(async move { signal(Duration::from_millis(20)).await });
    serve.run().expect("ends normally");
}
