//! Serving by a configuration file: the effect of each key that has one, seen from outside.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::folder::Temporary;
use crate::process::{Serving, program, run};

/// A folder with a site and its configuration.
fn with(config: &str) -> Temporary {
    let folder = Temporary::new();
    folder.file("www/index.html", "index").file("www/f.txt", "content");
    folder.file("site.toml", config);
    folder
}

/// Starts by `site.toml` on a free port.
fn start(config: &str) -> (Temporary, Serving) {
    let folder = with(config);
    let serving = Serving::start(folder.path(), &["--config", "site.toml"]);
    (folder, serving)
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Starts by what `config` makes of a port until that is not taken by another process in the moment between.
fn start_on_a_port(config: impl Fn(u16) -> String) -> (Temporary, Serving, u16) {
    for _ in 0..20 {
        let port = free_port();
        let folder = with(&config(port));
        let (code, stderr) = match Serving::try_start(&mut program(folder.path(), &["--config", "site.toml"]))
        {
            Ok(serving) => return (folder, serving, port),
            Err(ended) => ended,
        };
        assert!(code == Some(2) && stderr.contains("is taken by another program"), "{stderr}");
    }
    panic!("no port stays free");
}

const SITE: &str = "[[site]]\nroot = \"www\"\n";

/// How the program ends when it was asked to.
fn stderr_of(serving: Serving) -> String {
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.end();
    assert_eq!(code, Some(0));
    stderr
}

#[test]
fn a_site_is_served_from_the_folder_of_the_file() {
    let folder = Temporary::new();
    folder.file("conf/www/f.txt", "content").file("conf/site.toml", SITE);
    let serving = Serving::start(folder.path(), &["--config", "conf/site.toml"]);
    assert_eq!(serving.line("serves"), folder.path().join("conf/www").to_str());
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
    // Without a site: a folder of a certain name beside the file, or the command line's.
    folder.file("conf/public/f.txt", "public").file("conf/none.toml", "").file("other/f.txt", "other");
    let serving = Serving::start(folder.path(), &["--config", "conf/none.toml"]);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "public");
    let serving = Serving::start(folder.path(), &["other", "--config", "conf/none.toml"]);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "other");
    let (code, _, stderr) = run(folder.path(), &["other", "--config", "conf/site.toml"]);
    assert_eq!(code, 2);
    let told = "shearwater: the folder other and the sites of conf/site.toml contradict each other: name one of both\n";
    assert_eq!(stderr, told);
}

#[test]
fn http_port_listens_on_all_addresses() {
    let (_folder, serving, port) = start_on_a_port(|port| format!("[server]\nhttp_port = {port}\n{SITE}"));
    let mut reached = Vec::new();
    for ip in ["127.0.0.1", "[::1]"] {
        let address: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
        match TcpStream::connect(address) {
            Ok(_) => reached.push(ip),
            // A machine without IPv6.
            Err(error) => assert!(ip == "[::1]" && error.kind() == ErrorKind::AddrNotAvailable, "{error}"),
        }
    }
    assert!(reached.contains(&"127.0.0.1"), "{reached:?}");
    assert!(serving.banner.contains("on every address of this machine"), "{}", serving.banner);
}

#[test]
fn several_addresses_are_listened_on() {
    let (_folder, serving, port) = start_on_a_port(|port| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:{port}\"\n[[listen]]\naddress = \"127.0.0.2:{port}\"\n{SITE}"
        )
    });
    for ip in ["127.0.0.1", "127.0.0.2"] {
        let address: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
        assert!(TcpStream::connect(address).is_ok(), "{address}");
        assert!(serving.banner.contains(&format!("http://{address}/")), "{}", serving.banner);
    }
}

#[test]
fn the_file_of_the_specification_loads_as_it_stands() {
    let (_folder, serving) = start(
        "[server]\nworkers = 32\nhttp_port = 8080\ntcp_nodelay = true\ntcp_keepalive = true\nbacklog = 65535\n\
         [performance]\nmax_connections = 2000000\nconnection_timeout = 30\nkeep_alive_timeout = 60\n\
         request_buffer_size = 8192\nresponse_buffer_size = 65536\n[cache]\nenabled = false\n[logging]\nlevel = \"error\"\n",
    );
    assert_eq!(serving.line("workers"), Some("32"));
    let url = serving.address();
    assert!(
        serving.banner.contains("--listen 127.0.0.1:0 in place of listening on [::]:8080\n")
            || serving.banner.contains("--listen 127.0.0.1:0 in place of listening on 0.0.0.0:8080\n"),
        "{}",
        serving.banner
    );
    // What the kernel doesn't hold is told: more connections than descriptors, and a longer queue than it allows.
    let held_back: Vec<&str> = serving.banner.lines().filter(|line| line.contains("held back")).collect();
    assert!(
        held_back.iter().any(|line| line.contains("connections: 2")) || descriptors() > 2_300_000,
        "{held_back:?}"
    );
    assert!(
        held_back.iter().any(|line| line.contains("accept queue: 65")) || somaxconn() >= 65_535,
        "{held_back:?}"
    );
    assert!(TcpStream::connect(url).is_ok());
    assert_eq!(stderr_of(serving), "", "what it does is not said at level error");
}

fn descriptors() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

fn somaxconn() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(u64::MAX)
}

#[test]
fn flags_win_over_the_file_and_say_so() {
    let folder = with(&format!("[server]\nworkers = 3\ndrain_s = 5\n{SITE}"));
    let serving = Serving::start(folder.path(), &["--config", "site.toml", "--workers", "2"]);
    assert_eq!(
        (serving.line("workers"), serving.line("flag")),
        (Some("2"), Some("--workers 2 in place of server.workers = 3"))
    );
    // What the file says nothing of, or says the same of, is no news.
    let serving =
        Serving::start(folder.path(), &["--config", "site.toml", "--workers", "3", "--drain", "5", "--pin"]);
    assert_eq!((serving.line("workers"), serving.line("flag")), (Some("3"), None));
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_bound() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("an address");
    for (wrong, told) in [
        ("[cache]\nenabld = true\n", "site.toml:4:1: cache.enabld: unknown key; the nearest is `enabled`"),
        ("[[site]]\nroot = \"none\"\n", "site.toml:4:8: site[0].root: there is no folder "),
    ] {
        let folder = with(&format!("[[listen]]\naddress = \"{address}\"\n{wrong}"));
        let (code, stdout, stderr) = run(folder.path(), &["--config", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with(told) && !stderr.contains("is taken"), "{stderr}");
        assert!(stderr.ends_with("shearwater: site.toml has 1 problem; nothing was started\n"), "{stderr}");
    }
}

#[test]
fn pin_and_driver_and_drain_are_those_of_the_file() {
    let folder = with(&format!("[server]\nworkers = 1\ndriver = \"epoll\"\npin = true\ndrain_s = 0\n{SITE}"));
    folder.file("www/large.bin", vec![b'x'; 64 * 1024 * 1024]);
    let serving = Serving::of(
        std::process::Command::new(env!("CARGO_BIN_EXE_shearwater"))
            .args(["--config", "site.toml", "--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()),
    );
    assert_eq!(serving.line("driver"), Some("epoll (as asked)"));
    let mut client = serving.connect();
    client.ask("GET", "/large.bin", &[]).head();
    serving.signal(Signal::TERM);
    assert_eq!(serving.end().0, Some(0));
    assert!(client.rest().len() < 64 * 1024 * 1024, "nothing is waited for");
}

#[test]
fn limits_are_those_of_the_file() {
    let limits = "[limits]\ntarget_bytes_max = 20\nhead_bytes_max = 400\nfields_max = 3\nbody_bytes_max = 4\nrequests_per_connection_max = 2\n";
    let (_folder, serving) = start(&format!("{limits}{SITE}"));
    assert_eq!(serving.connect().request("GET", "/0123456789012345678", &[]).status, 404);
    assert_eq!(serving.connect().request("GET", "/01234567890123456789", &[]).status, 414);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[&format!("X: {}", "y".repeat(400))]).status, 431);
    assert_eq!(serving.connect().request("GET", "/f.txt", &["A: 1", "B: 2", "C: 3"]).status, 431);
    let mut client = serving.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.answer("POST").status, 413);
    let mut client = serving.connect();
    assert_eq!(client.request("GET", "/f.txt", &[]).field("Connection"), None);
    assert_eq!(client.request("GET", "/f.txt", &[]).field("Connection"), Some("close"));
}

/// The time until a connection that sent `bytes` is closed, and what came before.
fn until_closed(serving: &Serving, bytes: &str) -> (Duration, String) {
    let mut stream = TcpStream::connect(serving.address()).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    std::io::Write::write_all(&mut stream, bytes.as_bytes()).expect("sent");
    let begun = Instant::now();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).expect("it is closed before the client gives up");
    (begun.elapsed(), String::from_utf8_lossy(&came).into_owned())
}

#[test]
fn connections_are_waited_for_as_long_as_the_file_says() {
    let (_folder, serving) = start(&format!("[performance]\nconnection_timeout = 1\n{SITE}"));
    let (waited, came) = until_closed(&serving, "GET / HTTP/1.1\r\n");
    assert!(waited >= Duration::from_millis(900) && came.starts_with("HTTP/1.1 408 "), "{waited:?} {came}");
    let (_folder, serving) = start(&format!("[performance]\nkeep_alive_timeout = 1\n{SITE}"));
    let (waited, came) = until_closed(&serving, "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(waited >= Duration::from_millis(900) && came.ends_with("content"), "{waited:?} {came}");
    let (_folder, serving) = start(&format!("[timeouts]\nhead_ms = 500\n{SITE}"));
    let (waited, came) = until_closed(&serving, "GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\nGET / HTT");
    assert!(waited >= Duration::from_millis(400) && came.contains("HTTP/1.1 408 "), "{waited:?} {came}");
}

#[test]
fn so_many_connections_are_held() {
    let (_folder, mut serving) =
        start(&format!("[server]\nworkers = 1\n[performance]\nmax_connections = 2\n{SITE}"));
    assert!(serving.banner.contains("up to 2 connections"), "{}", serving.banner);
    let mut one = serving.connect();
    let mut two = serving.connect();
    assert_eq!(one.request("GET", "/f.txt", &[]).status, 200);
    assert_eq!(two.request("GET", "/f.txt", &[]).status, 200);
    // The third waits in the kernel's queue until one of both is gone.
    let mut three = serving.connect();
    three.ask("GET", "/f.txt", &[]);
    assert_eq!(one.request("GET", "/f.txt", &[]).status, 200);
    serving.signal(Signal::USR1);
    // That it accepts no more for now may be said before.
    let line = [serving.hear(), serving.hear()].concat();
    assert!(line.contains("accepts no connections for now"), "{line}");
    assert!(line.contains(", 2 connections (2 open, "), "{line}");
    drop(one);
    assert_eq!(three.answer("GET").status, 200);
}

#[test]
fn levels_say_what_they_say() {
    for (level, says_what_it_does) in
        [("off", false), ("error", false), ("warn", false), ("info", true), ("debug", true)]
    {
        let (_folder, mut serving) = start(&format!("[logging]\nlevel = \"{level}\"\n{SITE}"));
        serving.signal(Signal::USR1);
        if level != "off" {
            assert!(serving.hear().starts_with("shearwater: so far 0 requests"), "{level}");
        }
        let stderr = stderr_of(serving);
        assert_eq!(
            stderr.contains("answering what has been received"),
            says_what_it_does,
            "{level}: {stderr}"
        );
        assert_eq!(stderr.contains("in all 0 requests"), says_what_it_does, "{level}: {stderr}");
        assert_eq!(stderr.contains("worker 0 has ended"), level == "debug", "{level}: {stderr}");
    }
}
