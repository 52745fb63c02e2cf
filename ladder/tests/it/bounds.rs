//! Bounds of time and of threads.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use testkit::{Client, Program, TestClient, TestFolder};

use crate::{RUNGS, start};

/// Time after which a rung closes a connection on which nothing moves, and the most that its search for them may add.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
const SWEEP: Duration = Duration::from_secs(4);
/// The rung with a thread for each connection, and its bound.
const THREADS_RUNG: usize = 5;
const THREADS_MAX: usize = 1_024;

#[test]
fn connections_on_which_nothing_moves_are_closed_after_the_timeout() {
    let folder = TestFolder::new();
    let rungs: Vec<Program> = (1..=RUNGS).map(|rung| start(rung, &folder)).collect();
    // All at once: each takes as long as the timeout.
    thread::scope(|scope| {
        for (at, program) in rungs.iter().enumerate() {
            scope.spawn(move || {
                let started = Instant::now();
                let mut client = Client::connect(program.address()).expect("the rung accepts");
                client.send("GET / HTTP/1.1\r\nHo").expect("it receives");
                let end = client.rest();
                let elapsed = started.elapsed();
                let allowed = IDLE_TIMEOUT..IDLE_TIMEOUT + SWEEP;
                assert!(allowed.contains(&elapsed), "rung {}: {elapsed:?}, {end:?}", at + 1);
                assert_eq!(TestClient::connect(program.address()).get("/").status, 200);
            });
        }
    });
}

#[test]
fn threads_have_a_bound_beyond_which_clients_are_served_one_by_one() {
    let folder = TestFolder::new();
    let program = start(THREADS_RUNG, &folder);
    let address = program.address();
    let served = || {
        let mut client = TestClient::connect(address);
        assert_eq!(client.get("/").status, 200);
        client
    };
    let clients: Vec<TestClient> = (0..THREADS_MAX).map(|_| served()).collect();
    // A thread that accepts serves this one itself.
    let further = served();
    let accepting = thread::available_parallelism().expect("a number of cores").get();
    assert_eq!(threads(&program), 1 + accepting + THREADS_MAX);
    drop((clients, further));
    drop(served());
}

fn threads(program: &Program) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a number of threads")
}
