//! Real signals to a server process: the first drains, the second stops, and afterwards their previous effects are
//! restored.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::{env, thread};

use rustix::process::Signal;
use shearwater::{App, Call, Request, Response, Verbosity};

use crate::client::Client;
use crate::process::{self, Process};
use crate::served::here;

/// Runs the server, if this is the child process.
#[test]
fn process() {
    if !process::is_this() {
        return;
    }
    let (order, ordered) = sync_channel(1);
    let mut app = App::new();
    app.get("/drain", move |_: &Request, response: &mut Response| {
        order.send(()).expect("the process waits for it");
        response.text("drains");
    });
    app.get("/", |_: &Request, response: &mut Response| {
        response.text("answered");
    });
    app.get_async("/never", async |call: &mut Call| {
        call.sleep(Duration::from_secs(86_400)).await;
    });
    let server = here().verbosity(Verbosity::Off).drain_ms(86_400_000).handle_signals();
    let running = server.start_app(app).expect("starts");
    process::serves(running.address());
    let control = running.control();
    thread::spawn(move || ordered.recv().map(|()| control.drain(86_400_000)));
    running.wait().expect("ends normally");
    process::has_ended();
}

/// A client whose request gets no response.
fn waiting(process: &Process) -> Client {
    let mut client = Client::connect(process.address);
    assert_eq!(client.request("GET", "/", &[]).text(), "answered");
    client.ask("GET", "/never", &[]);
    client
}

#[test]
fn a_signal_after_the_end_ends_the_process_as_before() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut process = Process::start("signals::process");
        process.signal(signal);
        process.server_ended();
        process.signal(signal);
        assert_eq!(process.end().signal(), Some(signal.as_raw()), "{signal:?}");
    }
}

#[test]
fn a_signal_that_was_ignored_is_ignored_again_afterwards() {
    let program = env::current_exe().expect("this program is a file");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$0\" \"$@\""]).arg(program);
    let mut process = Process::of(&mut command, "signals::process");
    process.signal(Signal::INT);
    process.server_ended();
    process.signal(Signal::INT);
    process.signal(Signal::TERM);
    assert_eq!(process.end().signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn the_first_signal_drains_and_the_second_stops() {
    let mut process = Process::start("signals::process");
    let _client = waiting(&process);
    process.signal(Signal::INT);
    process.until_refused();
    process.signal(Signal::INT);
    process.server_ended();
}

/// A signal during a drain that the program started stops the server.
#[test]
fn a_signal_during_a_drain_that_the_program_has_ordered_stops() {
    let mut process = Process::start("signals::process");
    let _client = waiting(&process);
    assert_eq!(Client::connect(process.address).request("GET", "/drain", &[]).text(), "drains");
    process.until_refused();
    process.signal(Signal::INT);
    process.server_ended();
}
