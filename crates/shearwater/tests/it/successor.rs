//! Another process takes the place of a server, or fails to.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use shearwater::engine::handed_state;
use shearwater::{
    App, HandOverError, ListenAddress, Response, Running, Server, Service, StartError, Successor, Verbosity,
    get,
};
use shearwater_io::limits::HANDED_STATE_BYTES_MAX;
use shearwater_io::socket_channel::{SocketChannel, take_standard_input};
use testkit::{TIMEOUT, TestClient, TestFolder};

use crate::process;
use crate::served::{connect_unix, here, text};

const TEST: &str = "successor::process";

/// The Unix-domain socket of the process, and how it behaves.
const SOCKET: &str = "SHEARWATER_TEST_SOCKET";
const MODE: &str = "SHEARWATER_TEST_MODE";

/// Returns a server of a TCP address and a Unix-domain socket.
fn server(socket: &Path) -> Server {
    here().workers(2).listen(format!("unix:{}", socket.display())).drain_ms(5_000)
}

fn app(answer: &'static str) -> App {
    App::new().route("/", get(text(answer)))
}

fn start(answer: &'static str, socket: &Path) -> Running {
    server(socket).take_over().start(app(answer)).expect("it starts")
}

/// Runs the new server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let socket = PathBuf::from(std::env::var_os(SOCKET).expect("a path"));
    let running = match std::env::var(MODE).unwrap_or_default().as_str() {
        "early" => server(&socket).take_over_listeners().start(app("too early")).expect("it starts"),
        "ended" => {
            let started = server(&socket).take_over().handle_signals().start(app("too late"));
            let error = started.expect_err("a signal ends it");
            assert!(error.to_string().ends_with(": a signal asks this one to end"), "{error}");
            return;
        }
        "later" => return serve_with_a_later_server(&socket),
        "elsewhere" => {
            let server = server(&elsewhere(&socket)).take_over().handle_signals();
            server.start(app("new")).expect("it starts")
        }
        "handed" => {
            let state = handed_state().expect("well-formed").expect("bytes of the old process");
            assert_eq!(handed_state().expect("well-formed"), None, "taken once");
            let text: &'static str = String::from_utf8(state).expect("UTF-8").leak();
            start(text, &socket)
        }
        mode @ ("dies" | "hangs") => fail_after_ready(mode),
        _ => start("new", &socket),
    };
    running.wait().expect("it ends in order");
}

/// Serves at the TCP address. The server of the Unix-domain socket takes it before that, and starts after it.
fn serve_with_a_later_server(socket: &Path) {
    struct Later;
    impl Service for Later {
        fn respond(&self, _: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
            response.text("later");
        }
    }
    let (taken, has_taken) = sync_channel(1);
    let (began, has_begun) = sync_channel(1);
    let has_begun = Mutex::new(has_begun);
    let make = move |_| {
        taken.send(()).expect("the other server waits");
        has_begun.lock().expect("no panic before").recv().expect("the other server starts");
        Later
    };
    std::thread::scope(|scope| {
        let later = Server::at(ListenAddress::unix(socket)).verbosity(Verbosity::Off).workers(1).take_over();
        let later = scope.spawn(move || later.start_service(make));
        has_taken.recv().expect("it takes the socket");
        let first = here().workers(2).take_over().start(app("new")).expect("it starts");
        began.send(()).expect("the later server waits");
        let _later = later.join().expect("no panic").expect("it starts");
        first.wait().expect("it ends in order");
    });
}

/// Returns the Unix-domain socket of a new process that has another one.
fn elsewhere(socket: &Path) -> PathBuf {
    socket.with_extension("new")
}

/// Receives the listeners and permission to accept, and doesn't accept.
fn fail_after_ready(mode: &str) -> ! {
    let mut channel = SocketChannel::from(take_standard_input().expect("a channel"));
    let mut next = || channel.receive().expect("well-formed").expect("a message");
    let passed: Vec<_> = std::iter::from_fn(|| next().socket).collect();
    channel.send(b"ready", None::<&OwnedFd>).expect("sent");
    let permitted = channel.receive().expect("well-formed").expect("a message");
    assert!(passed.len() > 1 && permitted.text == b"serve");
    if mode == "dies" {
        std::process::exit(3);
    }
    loop {
        std::thread::park();
    }
}

/// Writes the number of the process into a file, and runs a command.
const BEGIN_AND_RUN: &str = r#"echo $$ > "$0.new" && mv "$0.new" "$0" && exec "$@""#;

/// A new process, killed when dropped.
struct NewProcess(u32);

impl Drop for NewProcess {
    fn drop(&mut self) {
        // It may have ended.
        drop(testkit::process::signal(self.0, Signal::KILL));
    }
}

/// Returns the test's process as the successor.
fn successor(socket: &Path) -> Successor {
    successor_in("", socket)
}

fn successor_in(mode: &str, socket: &Path) -> Successor {
    let mut command = process::command(TEST, &[(SOCKET, socket), (MODE, Path::new(mode))]);
    command.stdout(Stdio::null());
    Successor::new(command)
}

#[track_caller]
fn until(is_there: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < TIMEOUT, "it never comes to that");
        std::thread::yield_now();
    }
}

#[test]
fn another_process_takes_over() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    let address = running.address();
    let mut kept = TestClient::connect(address);
    assert_eq!(kept.get("/").text(), "old");
    let new = NewProcess(running.hand_over(successor(&socket)).expect("it serves"));
    let again = running.hand_over(Successor::new(Command::new("true"))).expect_err("it drains");
    assert_eq!(again.to_string(), "the server is stopping");
    kept.is_ended();
    running.wait_for_control().expect("it ends in order");
    assert!(socket.exists(), "it belongs to the new process");
    for _ in 0..8 {
        assert_eq!(TestClient::connect(address).get("/").text(), "new");
    }
    testkit::process::signal(new.0, Signal::TERM).expect("it serves");
    until(|| !socket.exists());
}

#[test]
fn bytes_of_the_program_are_handed_over() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    let refused = running.hand_over(successor(&socket).hand(vec![0; HANDED_STATE_BYTES_MAX + 1]));
    assert!(matches!(refused, Err(HandOverError::State { bytes }) if bytes == HANDED_STATE_BYTES_MAX + 1));
    assert_eq!(TestClient::connect(running.address()).get("/").text(), "old");
    let state = "x".repeat(HANDED_STATE_BYTES_MAX);
    let new = successor_in("handed", &socket).hand(state.clone().into_bytes());
    assert!(!format!("{new:?}").contains("120"), "they may be secret");
    let _new = NewProcess(running.hand_over(new).expect("it serves"));
    let address = running.address();
    running.wait_for_control().expect("it ends in order");
    assert_eq!(TestClient::connect(address).get("/").text(), state);
}

/// A filter on a socket that both have would keep connections from the new process, too.
#[test]
fn addresses_stay_while_another_process_takes_over() {
    let folder = TestFolder::new();
    let (socket, file) = (folder.at("socket"), folder.at("number"));
    let running = start("old", &socket);
    let (address, control) = (running.address(), running.control());
    let new = process::command(TEST, &[(SOCKET, &socket)]);
    let mut begun = Command::new("sh");
    begun.args(["-c", BEGIN_AND_RUN]).arg(&file).arg(new.get_program()).args(new.get_args());
    begun.envs(new.get_envs().filter_map(|(name, value)| Some((name, value?))));
    begun.stdout(Stdio::null()).stderr(Stdio::null());
    let (changed, _new) = std::thread::scope(|scope| {
        let handing = scope.spawn(|| Successor::new(begun).start(&control));
        until(|| file.exists());
        let changed = control.change_addresses(&[ListenAddress::unix(folder.at("other"))]);
        let new = NewProcess(handing.join().expect("no panic").expect("it serves"));
        control.drain(1000);
        until(|| TestClient::connect(address).get("/").text() == "new");
        (changed.map(drop), new)
    });
    assert!(matches!(changed, Err(StartError::Ending)), "{changed:?}");
    assert!(!folder.at("other").exists());
    running.wait_for_control().expect("it ends in order");
}

#[test]
fn a_process_that_fails_after_it_was_ready_changes_nothing() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    for (mode, expected) in [
        ("dies", "the new process ended before it served (exit status: 3)"),
        ("hangs", "the new process didn't serve within 5 s, and was killed"),
    ] {
        let error = running.hand_over(successor_in(mode, &socket)).expect_err("it doesn't serve");
        assert_eq!(error.to_string(), expected);
        assert!(!running.control().is_ending() && !running.control().has_passed_listeners());
        for _ in 0..8 {
            assert_eq!(TestClient::connect(running.address()).get("/").text(), "old");
        }
    }
    running.control().stop();
    running.wait_for_control().expect("it ends in order");
    assert!(!socket.exists(), "it belongs to the old process again");
}

#[test]
fn a_signal_ends_a_process_that_waits_for_permission() {
    let folder = TestFolder::new();
    let (mut channel, there) = SocketChannel::pair().expect("descriptors");
    channel.set_patience(Some(TIMEOUT)).expect("set");
    let mut command = process::command(TEST, &[(SOCKET, &folder.at("socket")), (MODE, Path::new("ended"))]);
    command.stdout(Stdio::null()).stdin(there).env("SHEARWATER_PREDECESSOR", std::process::id().to_string());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    channel.send(b"end", None::<&OwnedFd>).expect("sent");
    let ready = channel.receive().expect("well-formed").expect("a message");
    assert_eq!(ready.text, b"ready");
    testkit::process::signal(child.id(), Signal::TERM).expect("it waits");
    assert!(channel.receive().expect("well-formed").is_none(), "it has not accepted");
    assert!(child.wait().expect("a child").success());
    assert!(!folder.at("socket").exists());
}

#[test]
fn a_process_that_is_not_ready_accepts_nothing() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    let control = running.control();
    let early = successor_in("early", &socket).timeout(Duration::from_secs(2));
    std::thread::scope(|scope| {
        let handing = scope.spawn(|| early.start(&control));
        while !handing.is_finished() {
            assert_eq!(TestClient::connect(running.address()).get("/").text(), "old");
        }
        let error = handing.join().expect("no panic");
        assert!(matches!(error, Err(HandOverError::Late(_))), "{error:?}");
    });
    assert_eq!(TestClient::connect(running.address()).get("/").text(), "old");
    assert!(socket.exists());
    running.control().stop();
    running.wait_for_control().expect("it ends in order");
}

#[test]
fn a_drain_ends_the_attempt_and_its_process() {
    let folder = TestFolder::new();
    let running = start("old", &folder.at("socket"));
    let file = folder.at("number");
    let mut late = Command::new("sh");
    late.args(["-c", BEGIN_AND_RUN]).arg(&file).args(["sleep", "60"]);
    let control = running.control();
    std::thread::scope(|scope| {
        let handing = scope.spawn(|| Successor::new(late).start(&control));
        until(|| file.exists());
        control.drain(0);
        let error = handing.join().expect("no panic").expect_err("the server ends");
        assert_eq!(error.to_string(), "the server is stopping");
    });
    running.wait_for_control().expect("it ends in order");
    let number = std::fs::read_to_string(file).expect("a number").trim().parse().expect("a number");
    until(|| testkit::process::has_ended(number));
}

#[test]
fn a_file_of_another_program_stays() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    std::fs::remove_file(&socket).expect("it is there");
    let _other = UnixListener::bind(&socket).expect("a socket");
    let mode = || std::fs::metadata(&socket).expect("it is there").permissions().mode();
    let before = mode();
    let new = NewProcess(running.hand_over(successor(&socket)).expect("it serves"));
    running.wait_for_control().expect("it ends in order");
    testkit::process::signal(new.0, Signal::TERM).expect("it serves");
    until(|| testkit::process::has_ended(new.0));
    assert_eq!(mode(), before);
}

#[test]
fn a_later_server_of_the_new_process_accepts_too() {
    let folder = TestFolder::new();
    let socket = folder.at("socket");
    let running = start("old", &socket);
    let address = running.address();
    let _new = NewProcess(running.hand_over(successor_in("later", &socket)).expect("it serves"));
    running.wait_for_control().expect("it ends in order");
    assert_eq!(TestClient::connect(address).get("/").text(), "new");
    assert_eq!(connect_unix(&socket).get("/").text(), "later");
}

#[test]
fn the_file_of_a_socket_that_the_new_process_drops_is_removed() {
    let folder = TestFolder::new();
    for is_replaced in [false, true] {
        let socket = folder.at("socket");
        let running = start("old", &socket);
        let other = is_replaced.then(|| {
            std::fs::remove_file(&socket).expect("it is there");
            UnixListener::bind(&socket).expect("a socket")
        });
        let new = NewProcess(running.hand_over(successor_in("elsewhere", &socket)).expect("it serves"));
        until(|| elsewhere(&socket).exists() && socket.exists() == is_replaced);
        running.wait_for_control().expect("it ends in order");
        testkit::process::signal(new.0, Signal::TERM).expect("it serves");
        until(|| !elsewhere(&socket).exists());
        assert_eq!(socket.exists(), is_replaced);
        drop(other);
    }
}

#[test]
fn a_process_that_does_not_serve_changes_nothing() {
    let folder = TestFolder::new();
    let running = start("old", &folder.at("socket"));
    let mut late = Command::new("sleep");
    late.arg("60");
    let start = Instant::now();
    let error = running.hand_over(Successor::new(late).timeout(Duration::from_millis(100)));
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
