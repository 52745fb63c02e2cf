//! Workers within another event loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use shearwater_engine::io::limits::{RECV_BUFFER_BYTES, RECVS_PER_TURN_MAX};
use shearwater_engine::limits::TURNS_PER_POLL_MAX;
use shearwater_engine::{HostedWorker, NextRun};

use crate::harness::unit::{get, head};
use crate::harness::{SimClient, SimWorld};

/// A waker that counts.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs what is due until the worker sleeps.
fn run(world: &mut SimWorld, waker: &Waker) -> NextRun {
    for _ in 0..1000 {
        let next = world.worker.run_due(waker).expect("the simulated driver doesn't break");
        if next != NextRun::Again {
            return next;
        }
    }
    panic!("the worker doesn't come to rest");
}

/// Connects a client that sends bytes, which the worker hasn't seen yet.
fn sending(world: &SimWorld, bytes: impl AsRef<[u8]>) -> SimClient {
    let mut client = world.connect();
    client.send(bytes);
    client
}

#[test]
fn runs_what_is_due_and_then_sleeps() {
    let mut world = SimWorld::default();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    assert!(matches!(run(&mut world, &waker), NextRun::Sleep(_)));
    let mut clients = ["/plain/1", "/later/3", "/later/2"].map(|target| sending(&world, get(target)));
    let NextRun::Sleep(Some(time)) = run(&mut world, &waker) else { panic!("one handler sleeps") };
    assert!(clients[0].text().ends_with(&crate::harness::app::text_of("GET", "/plain/1", b"")));
    assert!(clients[1].text().starts_with("HTTP/1.1 200 "), "it woke itself");
    world.net.advance(time.as_millis() as u64 + 1);
    run(&mut world, &waker);
    assert!(clients[2].text().starts_with("HTTP/1.1 200 "), "after its sleep");
    world.control.stop();
    assert_eq!(run(&mut world, &waker), NextRun::Never);
}

/// A flood of input leaves the other event loop its turn.
#[test]
fn runs_a_bounded_number_of_turns() {
    /// More than two connections can send in so many turns.
    const LEN: usize = TURNS_PER_POLL_MAX * RECVS_PER_TURN_MAX * RECV_BUFFER_BYTES;
    const ALL: u64 = 2 * LEN as u64;
    let mut world = SimWorld::default();
    let waker = Waker::noop();
    run(&mut world, waker);
    let request = head("POST", "/plain/1", &format!("Content-Length: {LEN}\r\n"));
    let _clients = [(); 2].map(|()| sending(&world, [&request[..], &vec![7; LEN]].concat()));
    assert_ne!(world.worker.run_due(waker).expect("it runs"), NextRun::Never);
    let received = world.totals().bytes_received;
    assert!(received > 0 && received <= ALL, "{received} bytes at once");
    run(&mut world, waker);
    assert!(world.totals().bytes_received > ALL, "the rest follows");
}
