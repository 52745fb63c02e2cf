//! Another process takes the place of a server, or fails to.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use shearwater::{App, HandOverError, Running, Successor};
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::process;
use crate::served::{here, text};

const TEST: &str = "successor::process";
/// The Unix-domain socket of the process.
const SOCKET: &str = "SHEARWATER_TEST_SOCKET";

/// Starts a server of a TCP address and a Unix-domain socket.
fn start(answer: &'static str, socket: &Path) -> Running {
    let mut app = App::new();
    app.get("/", text(answer));
    let server = here().workers(2).listen(format!("unix:{}", socket.display())).drain_ms(5_000).take_over();
    server.start_app(app).expect("it starts")
}

/// Runs the new server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let socket = std::env::var_os(SOCKET).expect("a path");
    start("new", Path::new(&socket)).wait().expect("it ends in order");
}

#[test]
fn another_process_takes_over() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    let address = running.address();
    let mut kept = TestClient::connect(address);
    assert_eq!(kept.get("/").text(), "old");
    let mut command = process::command(TEST, &[(SOCKET, &socket)]);
    command.stdout(std::process::Stdio::null());
    let number = running.hand_over(Successor::new(command)).expect("it serves");
    let again = running.hand_over(Successor::new(Command::new("true"))).expect_err("it drains");
    assert_eq!(again.to_string(), "the server is stopping");
    kept.is_ended();
    running.wait_for_control().expect("it ends in order");
    assert!(socket.exists(), "it belongs to the new process");
    for _ in 0..8 {
        assert_eq!(TestClient::connect(address).get("/").text(), "new");
    }
    testkit::process::signal(number, Signal::TERM).expect("it serves");
    let start = Instant::now();
    while socket.exists() {
        assert!(start.elapsed() < TIMEOUT, "it has not ended");
        std::thread::yield_now();
    }
}

#[test]
fn a_process_that_does_not_serve_changes_nothing() {
    let folder = TestFolder::new();
    let running = start("old", &folder.at("socket"));
    let mut late = Command::new("sleep");
    late.arg("60");
    let start = Instant::now();
    let error = running.hand_over(Successor::new(late).patience(Duration::from_millis(100)));
    assert!(matches!(error, Err(HandOverError::Late(_))), "{error:?}");
    assert!(start.elapsed() < TIMEOUT, "it was killed");
    let error = running.hand_over(Successor::new(Command::new("false"))).expect_err("it exits");
    assert_eq!(error.to_string(), "the new process ended before it served (exit status: 1)");
    let mut other = Command::new("sh");
    other.args(["-c", "exec sleep 60 </dev/null"]);
    let error = running.hand_over(Successor::new(other)).expect_err("it closes the channel");
    assert_eq!(error.to_string(), "the new process doesn't take over listeners, and was killed");
    let missing = folder.at("missing");
    let error = running.hand_over(Successor::new(Command::new(&missing))).expect_err("it isn't there");
    assert!(error.to_string().starts_with(&format!("can't start {}: ", missing.display())), "{error}");
    for _ in 0..4 {
        assert_eq!(TestClient::connect(running.address()).get("/").text(), "old");
    }
    assert!(!running.control().is_ending() && folder.at("socket").exists());
    running.control().stop();
    running.wait_for_control().expect("it ends in order");
    assert!(!folder.at("socket").exists());
}
