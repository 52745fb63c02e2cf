//! Under a service manager: sockets that it passes, and notifications that it gets.

use std::fmt::Display;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Command;

use rustix::process::Signal;
use testkit::{TIMEOUT, TestClient, TestFolder, until_refused};

use crate::process::{Server, drivers, program, program_after};

/// Takes standard input as the first socket that is passed.
const ONE_SOCKET: &str = "exec 3<&0 </dev/null && export LISTEN_FDS=1 LISTEN_PID=$$";
/// Takes standard input and standard error as the sockets that are passed.
const TWO_SOCKETS: &str =
    "exec 3<&0 4<&2 </dev/null 2>&1 && export LISTEN_FDS=2 LISTEN_FDNAMES=web:admin LISTEN_PID=$$";

fn folder() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("public/index.html", "here");
    folder
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Returns the program with one socket.
fn with_socket(folder: &TestFolder, socket: impl Into<OwnedFd>, arguments: &[&str]) -> Command {
    let mut command = program_after(ONE_SOCKET, folder, arguments);
    command.stdin(socket.into());
    command
}

#[track_caller]
fn assert_serves(address: SocketAddr) {
    let mut client = TestClient::connect_in_clear(address);
    assert_eq!(client.request("GET", "/", &[]).text(), "here");
}

#[test]
fn serves_on_a_socket_that_is_passed() {
    for driver in drivers() {
        for (workers, accept) in [("1", "reuseport"), ("2", "reuseport"), ("2", "dispatch")] {
            let folder = folder();
            let (listener, address) = listener();
            let arguments = ["--driver", driver, "--workers", workers, "--accept", accept];
            let server = Server::of(&mut with_socket(&folder, listener, &arguments));
            assert_eq!(server.address(), address, "{driver}: instead of the default address");
            for _ in 0..4 {
                assert_serves(address);
            }
            server.stop();
            until_refused(address);
        }
    }
}

/// Connections to a socket that only the service manager still has would wait forever.
#[test]
fn a_passed_socket_stays_at_a_reload_and_must_be_configured() {
    for driver in drivers() {
        let folder = folder();
        let (listener, address) = listener();
        let listen = |address: &dyn Display| format!("[[listen]]\naddress = \"{address}\"\n");
        folder.file("site.toml", listen(&address) + &listen(&"127.0.0.2:0"));
        let mut server = Server::of(&mut with_socket(&folder, listener, &["site.toml", "--driver", driver]));
        let mut client = TestClient::connect_in_clear(address);
        assert_eq!(client.get("/").text(), "here");
        folder.file("site.toml", listen(&address));
        server.signal(Signal::HUP);
        let log = server.next_line();
        assert!(log.contains("; no longer on 127.0.0.2:"), "{log}");
        assert_eq!(client.get("/").text(), "here");
        assert_serves(address);
        folder.file("site.toml", listen(&"127.0.0.3:0"));
        server.signal(Signal::HUP);
        let (error, refused) = (server.next_line(), server.next_line());
        let expected = format!(
            "error: the service manager passed a socket at {address}, but the server is configured to listen at 127.0.0.3:0; help: configure the same address in both\n"
        );
        assert_eq!(error, expected);
        assert!(refused.starts_with("shearwater: not reloaded: "), "{refused}");
        assert_serves(address);
    }
}

#[test]
fn connections_wait_for_the_server_to_start() {
    for driver in drivers() {
        let folder = folder();
        let (listener, address) = listener();
        let mut early = TestClient::connect_in_clear(address);
        early.ask("GET", "/", &[]);
        let server = Server::of(&mut with_socket(&folder, listener, &["--driver", driver]));
        assert_eq!(early.response("GET").text(), "here");
        server.stop();
    }
}

#[test]
fn a_passed_socket_takes_the_place_of_its_address() {
    for driver in drivers() {
        let folder = folder();
        let (listener, address) = listener();
        let unix = UnixListener::bind(folder.at("admin")).expect("a socket");
        let configuration = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"{address}\"\n[[listen]]\naddress = \"unix:{}\"\n[[site]]\nroot = \"public\"\n",
            folder.at("admin").display()
        );
        folder.file("site.toml", configuration);
        let arguments = ["site.toml", "--driver", driver];
        let mut command = program_after(TWO_SOCKETS, &folder, &arguments);
        command.stdin(OwnedFd::from(listener)).stderr(OwnedFd::from(unix));
        let server = Server::of(&mut command);
        assert_serves(address);
        assert_ne!(server.address(), address, "other addresses are bound as usual");
        assert_serves(server.address());
        let stream = UnixStream::connect(folder.at("admin")).expect("it listens");
        assert_eq!(TestClient::new(stream).request("GET", "/", &[]).text(), "here");
        server.stop();
        assert!(folder.at("admin").exists(), "the socket's file belongs to the service manager");
    }
}

#[track_caller]
fn assert_fails(mut command: Command, message: &str) {
    let Err((code, output)) = Server::try_start(&mut command) else { panic!("it starts") };
    assert_eq!((code, output.as_str()), (Some(1), format!("error: {message}\n").as_str()));
}

#[test]
fn rejects_sockets_that_it_cant_use() {
    let folder = folder();
    let (listener, address) = listener();
    let message = format!(
        "the service manager passed a socket at {address}, but the server is configured to listen at 127.0.0.1:1; help: configure the same address in both"
    );
    assert_fails(with_socket(&folder, listener, &["--listen", "127.0.0.1:1"]), &message);

    let connected = UnixStream::pair().expect("sockets").0;
    let message = "can't use the inherited listening socket: the socket does not listen";
    assert_fails(with_socket(&folder, connected, &[]), message);

    let line = "exec 3<&- && export LISTEN_FDS=1 LISTEN_PID=$$";
    let message = "can't take the service manager's sockets: LISTEN_FDS announces descriptor 3, but: Bad file descriptor (os error 9)";
    assert_fails(program_after(line, &folder, &[]), message);
    let line = "export LISTEN_FDS=many LISTEN_PID=$$";
    let message = "can't take the service manager's sockets: LISTEN_FDS is no number: \"many\"";
    assert_fails(program_after(line, &folder, &[]), message);
}

#[test]
fn ignores_sockets_of_another_process() {
    let folder = folder();
    let mut command = program(&folder, &["--listen", "127.0.0.1:0"]);
    let server = Server::of(command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1"));
    assert_serves(server.address());
    server.stop();
}

/// Returns the next message.
fn message(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let length = manager.recv(&mut bytes).expect("a message");
    String::from_utf8(bytes[..length].to_vec()).expect("UTF-8")
}

#[test]
fn notifies_the_service_manager() {
    for driver in drivers() {
        let folder = folder();
        let manager = UnixDatagram::bind(folder.at("notify")).expect("a socket");
        manager.set_read_timeout(Some(TIMEOUT)).expect("set");
        let mut command = program(&folder, &["--listen", "127.0.0.1:0", "--driver", driver]);
        command.env("NOTIFY_SOCKET", folder.at("notify")).env("WATCHDOG_USEC", "100000");
        let server = Server::of(&mut command);
        let ready = message(&manager);
        let lines: Vec<&str> = ready.lines().collect();
        assert!(
            matches!(lines[..], ["READY=1", status, "WATCHDOG=1"] if status.starts_with("STATUS=Serving")),
            "{ready}"
        );
        assert_serves(server.address());
        let status = std::iter::repeat_with(|| message(&manager)).find(|message| message.contains("STATUS="));
        assert!(status.is_some_and(|status| status.contains("requests: 1")));
        server.signal(Signal::TERM);
        let last =
            std::iter::repeat_with(|| message(&manager)).find(|message| message.contains("STOPPING=1"));
        assert!(last.is_some_and(|last| last.contains("\nSTATUS=Draining; open connections: ")));
        let (code, _, stderr) = server.end();
        assert_eq!(code, Some(0), "{stderr}");
    }
}

#[test]
fn a_refused_reload_ends_for_the_service_manager() {
    let folder = folder();
    let config = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"public\"\n";
    folder.file("server.toml", config);
    let manager = UnixDatagram::bind(folder.at("notify")).expect("a socket");
    manager.set_read_timeout(Some(TIMEOUT)).expect("set");
    let mut command = program(&folder, &["--config", "server.toml"]);
    let server = Server::of(command.env("NOTIFY_SOCKET", folder.at("notify")));
    assert!(message(&manager).starts_with("READY=1\n"));
    for (text, is_refused) in
        [(config.to_owned(), false), (format!("{config}unknown = 1\n"), true), (config.to_owned(), false)]
    {
        folder.file("server.toml", &text);
        server.signal(Signal::HUP);
        let begin = message(&manager);
        assert!(begin.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{begin}");
        let end = message(&manager);
        assert!(
            end.starts_with("READY=1\nSTATUS=Serving /") && end.contains("/public on 127.0.0.1:"),
            "{end}"
        );
        assert_eq!(end.contains("; last reload refused at ") && end.contains(" GMT"), is_refused, "{end}");
    }
    server.stop();
}

#[test]
fn repeats_what_the_service_manager_did_not_receive() {
    let folder = folder();
    let mut command = program(&folder, &["--listen", "127.0.0.1:0"]);
    let mut server = Server::of(command.env("NOTIFY_SOCKET", folder.at("none")));
    assert_serves(server.address());
    let warning = server.next_line();
    assert!(warning.starts_with("shearwater: can't notify the service manager: No such file"), "{warning}");
    let manager = UnixDatagram::bind(folder.at("none")).expect("a socket");
    manager.set_read_timeout(Some(TIMEOUT)).expect("set");
    let ready = message(&manager);
    assert!(
        ready.starts_with("READY=1\nSTATUS=Serving ") && ready.contains("public on 127.0.0.1:"),
        "{ready}"
    );
    server.stop();
}
