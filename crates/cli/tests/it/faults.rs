//! Faults of the machine: the server serves, the operator hears of each once, with what to do, and of its end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::{TIMEOUT, TestFolder};

use crate::access_log::lines_of;
use crate::process::{Server, drivers, has_proc, program, program_after};

/// Longest acceptable time of a response.
const LONGEST: Duration = Duration::from_secs(1);

fn with_site() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "hello");
    folder
}

/// Sends requests, which must all succeed, until the next line on standard error, and returns that.
#[track_caller]
fn serve_until_message(server: &mut Server) -> String {
    let mut client = server.connect();
    for _ in 0..100 {
        let start = Instant::now();
        assert_eq!(client.get("/").text(), "hello");
        assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
    }
    server.next_line()
}

#[track_caller]
fn expect(line: &str, beginning: &str, end: &str) {
    assert!(line.starts_with(beginning) && line.ends_with(end), "{line:?}");
}

/// A file system of 64 KiB in a mount namespace of the server's own.
#[test]
fn a_full_disk_is_reported_until_it_has_space() {
    let unshare = ["--user", "--map-root-user", "--mount", "true"];
    let is_allowed = Command::new("unshare").args(unshare).status().is_ok_and(|status| status.success());
    if !is_allowed || !has_proc() {
        println!("skipped: no mount namespace");
        return;
    }
    for driver in drivers() {
        let folder = with_site();
        fs::create_dir(folder.at("logs")).expect("a folder");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        let script = "mount -t tmpfs -o size=64k none logs && head -c 60k /dev/zero > logs/filler && exec \"$0\" \"$@\"";
        command.args([script, env!("CARGO_BIN_EXE_shearwater"), "site", "--listen", "127.0.0.1:0"]);
        command.args(["--driver", driver, "--log", "logs/access.log"]).current_dir(folder.path());
        let output = || std::process::Stdio::piped();
        command.stdin(std::process::Stdio::null()).stdout(output()).stderr(output());
        let mut server = Server::of(&mut command);
        let line = serve_until_message(&mut server);
        expect(
            &line,
            "shearwater: can't write the access log logs/access.log: ",
            "; help: free space on its file system\n",
        );
        // Seen from here, the server's files are beneath its root.
        let inside = format!("/proc/{}/root{}", server.pid().as_raw_nonzero(), folder.at("logs").display());
        fs::remove_file(format!("{inside}/filler")).expect("it can be removed");
        assert_eq!(server.next_line(), "shearwater: the access log logs/access.log is written again\n");
        let started = Instant::now();
        while fs::read_to_string(format!("{inside}/access.log")).map_or(0, |text| text.lines().count()) < 100
        {
            assert!(started.elapsed() < TIMEOUT, "its lines are kept");
            std::thread::yield_now();
        }
        let (_, stderr) = server.stop();
        assert!(!stderr.contains("access log"), "{stderr}");
    }
}

#[test]
fn a_log_folder_that_is_gone_is_reported_until_it_is_back() {
    for driver in drivers() {
        let folder = with_site();
        fs::create_dir(folder.at("logs")).expect("a folder");
        let mut server = Server::start(&folder, &["site", "--driver", driver, "--log", "logs/access.log"]);
        fs::remove_dir_all(folder.at("logs")).expect("it is there");
        // The file is looked for once a second.
        let done = Arc::new(AtomicBool::new(false));
        let (mut client, is_done) = (server.connect(), Arc::clone(&done));
        let client = std::thread::spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(client.get("/").text(), "hello");
            }
        });
        let line = server.next_line();
        expect(
            &line,
            "shearwater: can't write the access log logs/access.log: No such file",
            "; help: create its folder\n",
        );
        fs::create_dir(folder.at("logs")).expect("a folder");
        assert_eq!(server.next_line(), "shearwater: the access log logs/access.log is written again\n");
        done.store(true, Ordering::Relaxed);
        client.join().expect("every response arrived");
        let (_, stderr) = server.stop();
        assert!(!stderr.contains("access log"), "{stderr}");
        assert!(!lines_of(&folder.at("logs/access.log")).is_empty());
    }
}

/// The reader of a pipe takes a batch of 4 KiB in 50 ms.
#[test]
fn a_slow_log_delays_no_response() {
    const REQUESTS: usize = 400;
    for driver in drivers() {
        let folder = with_site();
        let made = Command::new("mkfifo").arg(folder.at("pipe")).status();
        assert!(made.expect("mkfifo").success());
        let path = folder.at("pipe");
        let reader = std::thread::spawn(move || {
            let mut pipe = File::open(path).expect("it is opened for writing");
            let (mut text, mut batch) = (Vec::new(), [0; 4096]);
            loop {
                match pipe.read(&mut batch).expect("bytes") {
                    0 => return String::from_utf8(text).expect("UTF-8"),
                    count => text.extend_from_slice(&batch[..count]),
                }
                // Time passes, and that is all that a slow disk does.
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        let mut server = Server::start(&folder, &["site", "--driver", driver, "--log", "pipe"]);
        let agent = format!("User-Agent: {}", "x".repeat(400));
        let mut client = server.connect();
        let mut longest = Duration::ZERO;
        for _ in 0..REQUESTS {
            let start = Instant::now();
            assert_eq!(client.request("GET", "/", &[&agent]).text(), "hello");
            longest = longest.max(start.elapsed());
        }
        // 200 KiB take the reader 2.5 s. A worker that waited for it would be this slow.
        assert!(longest < LONGEST, "{longest:?}");
        drop(client);
        // The end waits up to 2 s for the reader: wait for all lines before.
        let started = Instant::now();
        loop {
            server.signal(Signal::USR1);
            let mut line = server.next_line();
            while !line.contains("access log: ") || line.contains("can't write") {
                line = server.next_line();
            }
            if line.contains(&format!("access log: {REQUESTS} lines written, 0 dropped")) {
                break;
            }
            assert!(started.elapsed() < TIMEOUT, "{line}");
        }
        server.stop();
        assert_eq!(reader.join().expect("no panic").lines().count(), REQUESTS);
    }
}

#[test]
fn an_unreadable_configuration_changes_nothing() {
    const REFUSED: &str = "shearwater: not reloaded: what was served before is still served\n";
    for driver in drivers() {
        let folder = with_site();
        let good = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[site]]\nroot = \"site\"\n";
        folder.file("site.toml", good);
        let mut server = Server::of(&mut program(&folder, &["site.toml", "--driver", driver]));
        let mut client = server.connect();
        let path = folder.at("site.toml");
        let faults: [(&str, &dyn Fn(), &str); 4] = [
            ("removed", &|| (), "error: no such file: site.toml\n"),
            ("a folder", &|| fs::create_dir(&path).expect("a folder"), "error: site.toml is a folder\n"),
            (
                "a pipe",
                &|| assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success()),
                "error: site.toml is a pipe, not a file\n",
            ),
            ("not text", &|| fs::write(&path, b"a = \xff").expect("written"), "error: file is not UTF-8\n"),
        ];
        for (fault, make, expected) in faults {
            drop(fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)));
            make();
            server.signal(Signal::HUP);
            let mut log = String::new();
            while !log.ends_with(REFUSED) {
                log.push_str(&server.next_line());
            }
            assert!(log.starts_with(expected), "{fault}: {log}");
            assert_eq!(log.matches(REFUSED).count(), 1, "{fault}: {log}");
            assert_eq!(client.get("/").text(), "hello");
        }
        drop(fs::remove_file(&path));
        folder.file("site.toml", good);
        server.signal(Signal::HUP);
        assert!(server.next_line().starts_with("shearwater: reloaded site.toml: "));
    }
}

/// Connections beyond the descriptors wait, and are served when others close.
#[test]
fn used_up_descriptors_are_reported_until_some_are_free() {
    const CLIENTS: usize = 300;
    for driver in drivers() {
        let folder = with_site();
        let arguments = ["site", "--workers", "1", "--listen", "127.0.0.1:0", "--driver", driver];
        let mut server = Server::of(&mut program_after("ulimit -n 200", &folder, &arguments));
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            // Asks at once: those that stay silent while others wait are closed.
            let mut client = server.connect();
            client.ask("GET", "/", &[]);
            clients.push(client);
        }
        let line = server.next_line();
        expect(&line, "shearwater: worker 0 accepts no connections for now: ", "; new ones wait\n");
        assert!(line.contains("raise the limit: ulimit -n"), "{line}");
        let mut served = 0;
        for mut client in clients {
            assert_eq!(client.response("GET").text(), "hello");
            served += 1;
        }
        assert_eq!(served, CLIENTS);
        // The end is reported with the first connection after a second without trouble.
        let started = Instant::now();
        let mut has_ended = false;
        while !has_ended && started.elapsed() < TIMEOUT {
            assert_eq!(server.connect().get("/").text(), "hello");
            server.signal(Signal::USR1);
            let mut line = server.next_line();
            while !line.starts_with("shearwater: so far ") {
                assert!(!line.contains("accepts no connections"), "once: {line}");
                has_ended |= line == "shearwater: worker 0 accepts connections again\n";
                line = server.next_line();
            }
        }
        assert!(has_ended);
    }
}

/// More clients than descriptors download a file each, at once: requests wait for files, and sends for connections.
#[test]
fn requests_wait_for_descriptors() {
    const CLIENTS: usize = 200;
    const BYTES: usize = 8_000_000; // more than two sockets take
    let folder = with_site();
    for number in 0..CLIENTS {
        let file = File::create(folder.at(format!("site/{number}.bin"))).expect("a file");
        file.set_len(BYTES as u64).expect("a file system with holes");
    }
    let settings = format!("[performance]\nmax_connections = {}\n[[site]]\nroot = \"site\"\n", 2 * CLIENTS);
    folder.file("d.toml", settings);
    for driver in drivers() {
        for limit in [64, 128] {
            let arguments = ["-c", "d.toml", "--workers", "1", "--listen", "127.0.0.1:0", "--driver", driver];
            let server = Server::of(&mut program_after(&format!("ulimit -n {limit}"), &folder, &arguments));
            // Otherwise connections wait in the kernel's queue until others close.
            let are_all_held = server.banner.contains(&format!("up to {} connections", 2 * CLIENTS));
            let all_have_asked = Barrier::new(CLIENTS);
            let download = |number: usize| {
                let mut client = server.connect();
                client.ask("GET", &format!("/{number}.bin"), &[]);
                if are_all_held {
                    all_have_asked.wait();
                }
                let response = client.response("GET");
                ((response.status, response.body.len()), are_all_held.then_some(client))
            };
            thread::scope(|scope| {
                let download = &download;
                let clients: Vec<_> =
                    (0..CLIENTS).map(|number| scope.spawn(move || download(number))).collect();
                // Idle connections are there until the end.
                let all: Vec<_> =
                    clients.into_iter().map(|client| client.join().expect("a response")).collect();
                let found = all.iter().map(|(found, _)| *found);
                let others: Vec<_> = found.filter(|found| *found != (200, BYTES)).collect();
                assert!(others.is_empty(), "{driver} {limit}: {}: {others:?}", others.len());
            });
        }
    }
}

/// Another process has a lease on a file, as file servers do, and is asked to give it back.
#[test]
fn a_request_waits_for_the_end_of_a_lease() {
    const HOLDER: &str = "import fcntl, os, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
signal.sigwait([signal.SIGIO])
sys.stdin.readline()
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)";
    for driver in drivers() {
        let folder = with_site();
        let arguments = ["site", "--workers", "1", "--listen", "127.0.0.1:0", "--driver", driver];
        let server = Server::of(&mut program(&folder, &arguments));
        let mut python = Command::new("python3");
        python.args(["-c", HOLDER, "site/index.html"]).current_dir(folder.path());
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut holder) = python.spawn() else {
            println!("skipped: there is no python3");
            return;
        };
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut line).expect("text");
        if line != "held\n" {
            println!("skipped: this file system has no leases");
            return;
        }
        let (mut waiting, mut other) = (server.connect(), server.connect());
        waiting.ask("GET", "/", &[]);
        assert_eq!(other.get("/none").status, 404, "others don't wait");
        // The holder has its signal once the file was tried.
        holder.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        assert_eq!(waiting.response("GET").text(), "hello", "{driver}");
        assert!(holder.wait().expect("it ends").success());
    }
}

/// Unfinished requests fill what they may, by `buffered_bytes_max`; others are served.
#[test]
fn full_buffers_are_reported_once_a_second() {
    for driver in drivers() {
        let folder = with_site();
        let keys = "[limits]\nbuffered_bytes_max = \"1MiB\"\n[[site]]\nroot = \"site\"\n";
        folder.file("site.toml", keys);
        let mut server = Server::start(&folder, &["site.toml", "-w", "1", "--driver", driver]);
        let part = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(40_000));
        let mut clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
        let begun = Instant::now();
        for client in &mut clients {
            // One that was rejected may be closed already.
            drop(client.stream().write_all(part.as_bytes()));
            assert_eq!(server.connect().get("/").text(), "hello");
        }
        let line = server.next_line();
        expect(
            &line,
            "shearwater: worker 0: a connection was rejected: unfinished requests hold buffered_bytes_max ",
            "\n",
        );
        assert!(line.contains("raise it, or the memory that the server may use"), "{line}");
        // A drain would wait for their requests.
        drop(clients);
        let (_, stderr) = server.stop();
        let lines = 1 + stderr.matches("buffered_bytes_max (").count() as u64;
        assert!(lines <= 2 + begun.elapsed().as_secs(), "{stderr}");
    }
}
