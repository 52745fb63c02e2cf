//! `SIGHUP`: serves the configuration or folder as it is by then, or what was served before if that can't be.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use testkit::{TIMEOUT, TestClient, TestFolder, until_refused};

use crate::process::{Server, drivers, has_proc, run};

/// Log line of a refused reload.
const REFUSED: &str = "shearwater: not reloaded: what was served before is still served\n";

/// Returns a configuration with one site, after other keys.
fn site(keys: &str, root: &str) -> String {
    format!("{keys}[[listen]]\naddress = \"127.0.0.1:0\"\n\n[[site]]\nroot = \"{root}\"\n")
}

/// A server of `site.toml`, whose folders `one` and `two` have a file `f.txt` with their name.
struct Reloaded {
    folder: TestFolder,
    server: Server,
}

impl Reloaded {
    fn start(arguments: &[&str], keys: &str) -> Self {
        let folder = TestFolder::new();
        for name in ["one", "two"] {
            folder.file(format!("{name}/f.txt"), name).file(format!("{name}/index.html"), name);
        }
        folder.file("site.toml", site(keys, "one"));
        let mut command = crate::process::program(&folder, &[&["site.toml"], arguments].concat());
        let server = Server::of(&mut command);
        Self { folder, server }
    }

    /// Reloads, and returns the log up to the line that says how it ended.
    fn reload(&mut self) -> String {
        self.server.signal(Signal::HUP);
        self.until_reloaded()
    }

    fn until_reloaded(&mut self) -> String {
        let mut log = String::new();
        loop {
            let line = self.server.next_line();
            assert!(!line.is_empty(), "it has ended: {log}");
            log.push_str(&line);
            if line.starts_with("shearwater: reloaded ") || line == REFUSED {
                return log;
            }
        }
    }

    fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.server.pid().as_raw_nonzero());
        fs::read_dir(folder).expect("its descriptors").count()
    }
}

#[test]
fn watches_the_configuration() {
    let mut reloaded = Reloaded::start(&["--workers", "1", "--watch"], "");
    for (text, log, served) in
        [(site("", "two"), "reloaded site.toml", "two"), ("typo".to_owned(), REFUSED, "two")]
    {
        reloaded.folder.file("site.toml", text);
        assert!(reloaded.until_reloaded().contains(log));
        assert_eq!(reloaded.server.connect().get("/f.txt").text(), served);
    }
}

#[test]
fn serves_the_new_configuration_on_open_connections() {
    for driver in drivers() {
        let mut reloaded = Reloaded::start(&["--driver", driver, "--workers", "2"], "");
        let mut clients = [(); 4].map(|()| reloaded.server.connect());
        clients.iter_mut().for_each(|client| assert_eq!(client.get("/f.txt").text(), "one"));
        let before = has_proc().then(|| reloaded.descriptors());
        for name in ["two", "one", "two", "two", "one"] {
            reloaded.folder.file("site.toml", site("", name));
            let root = reloaded.folder.at(name);
            assert_eq!(reloaded.reload(), format!("shearwater: reloaded site.toml: {}\n", root.display()));
            clients.iter_mut().for_each(|client| assert_eq!(client.get("/f.txt").text(), name));
        }
        assert_eq!(has_proc().then(|| reloaded.descriptors()), before);
        drop(clients);
        let (_, stderr) = reloaded.server.stop();
        assert!(stderr.contains("; reloads 5\n") && stderr.contains(" 24 requests (2xx 24, "), "{stderr}");
    }
}

#[test]
fn a_download_continues_when_its_folder_is_no_longer_served() {
    const BYTES: usize = 32 * 1024 * 1024;
    for driver in drivers() {
        let mut reloaded = Reloaded::start(&["--driver", driver], "");
        reloaded.folder.file("one/large.bin", vec![b'x'; BYTES]);
        let mut client = reloaded.server.connect();
        client.ask("GET", "/large.bin", &[]).head();
        reloaded.folder.file("site.toml", site("", "two"));
        reloaded.reload();
        assert_eq!(reloaded.server.connect().get("/large.bin").status, 404);
        let pieces = std::iter::repeat_with(|| client.data().len()).take_while(|length| *length > 0);
        assert_eq!(pieces.sum::<usize>(), BYTES, "{driver}");
        assert_eq!(client.get("/f.txt").text(), "two");
    }
}

/// The errors are those of `shearwater check`.
#[test]
fn a_bad_configuration_is_refused_with_its_errors() {
    let mut reloaded = Reloaded::start(&[], "");
    let mut client = reloaded.server.connect();
    let bad = [
        site("[server]\nwokers = 2\n", "two"),
        site("", "none") + "[[site]]\nroot = \"neither\"\nhosts = [\"a\", \"a\"]\n",
        "no TOML".to_owned(),
    ];
    for text in bad {
        reloaded.folder.file("site.toml", &text);
        let log = reloaded.reload();
        let (code, _, errors) = run(&reloaded.folder, &["check", "site.toml"]);
        assert_eq!((code, log), (2, errors + REFUSED), "{text}");
        assert_eq!(client.get("/f.txt").text(), "one");
    }
    fs::remove_file(reloaded.folder.at("site.toml")).expect("it is there");
    assert!(reloaded.reload().starts_with("error: no such file: site.toml\n"));
    assert_eq!(client.get("/f.txt").text(), "one");
    reloaded.folder.file("site.toml", site("", "two"));
    assert!(reloaded.reload().starts_with("shearwater: reloaded site.toml: "));
    assert_eq!(client.get("/f.txt").text(), "two");
    drop(client);
    let (_, stderr) = reloaded.server.stop();
    assert!(stderr.contains("; reloads 1\n"), "refused ones don't count: {stderr}");
}

#[test]
fn timeouts_and_some_limits_change() {
    let mut reloaded = Reloaded::start(&[], "");
    let status = |server: &Server| server.connect().send_body("GET", "/f.txt", &[], b"0123456789").status;
    assert_eq!(status(&reloaded.server), 200);
    let keys = "[limits]\nbody_bytes_max = 9\n[performance]\nkeep_alive_timeout = \"50ms\"\n";
    reloaded.folder.file("site.toml", site(keys, "one"));
    reloaded.reload();
    assert_eq!(status(&reloaded.server), 413);
    let mut idle = reloaded.server.connect();
    assert_eq!(idle.get("/f.txt").text(), "one");
    idle.is_ended();
}

/// Returns a configuration that listens on these addresses.
fn listening(addresses: &[String]) -> String {
    let listen = |address: &String| format!("[[listen]]\naddress = \"{address}\"\n");
    addresses.iter().map(listen).collect::<String>() + "\n[[site]]\nroot = \"one\"\n"
}

#[test]
fn listens_on_the_addresses_of_the_new_configuration() {
    for driver in drivers() {
        let mut reloaded = Reloaded::start(&["--driver", driver, "--workers", "2"], "");
        let first = reloaded.server.address();
        let mut client = reloaded.server.connect();
        assert_eq!(client.get("/f.txt").text(), "one");
        let before = has_proc().then(|| reloaded.descriptors());
        let unix = format!("unix:{}", reloaded.folder.at("socket").display());
        let root = reloaded.folder.at("one");
        let stays = "127.0.0.1:0".to_owned();
        reloaded
            .folder
            .file("site.toml", listening(&[stays.clone(), "127.0.0.2:0".to_owned(), unix.clone()]));
        let log = reloaded.reload();
        let expected = format!("shearwater: reloaded site.toml: {}; now listening on ", root.display());
        let added = log.strip_prefix(&expected).unwrap_or_else(|| panic!("{log}")).trim_end();
        let (tcp, socket) = added.split_once(", ").expect("two addresses");
        assert_eq!(socket, unix);
        let tcp = tcp.parse().expect("an address and a port");
        let mut other = TestClient::connect_in_clear(tcp);
        assert_eq!(other.get("/f.txt").text(), "one");
        let stream = UnixStream::connect(reloaded.folder.at("socket")).expect("connects");
        assert_eq!(TestClient::new(stream).get("/f.txt").text(), "one");

        reloaded.folder.file("site.toml", listening(&[stays]));
        assert_eq!(
            reloaded.reload(),
            format!("shearwater: reloaded site.toml: {}; no longer on {tcp}, {unix}\n", root.display())
        );
        until_refused(tcp);
        assert!(!reloaded.folder.at("socket").exists());
        other.is_ended();
        assert_eq!(client.get("/f.txt").text(), "one", "on the same connection");
        assert_eq!((has_proc().then(|| reloaded.descriptors()), reloaded.server.address()), (before, first));
    }
}

#[test]
fn a_taken_address_refuses_the_reload() {
    let mut reloaded = Reloaded::start(&[], "");
    let mut client = reloaded.server.connect();
    assert_eq!(client.get("/f.txt").text(), "one");
    let other = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let taken = other.local_addr().expect("an address");
    let text = listening(&["127.0.0.2:0".to_owned(), taken.to_string()]).replace("\"one\"", "\"two\"");
    reloaded.folder.file("site.toml", text);
    let expected =
        format!("error: {taken} is taken by another program: choose another port, or end that program\n");
    assert_eq!(reloaded.reload(), expected + REFUSED);
    assert_eq!(client.get("/f.txt").text(), "one");
    assert_eq!(reloaded.server.connect().get("/f.txt").text(), "one");
}

#[test]
fn an_emptied_file_refuses_the_reload() {
    let mut reloaded = Reloaded::start(&[], "");
    let sites = fs::read(reloaded.folder.at("site.toml")).expect("a file");
    let expected = "error: nothing is left to serve: no site and no folder\n\
                    help: write the sites again, or restart\n";
    // Also after a reload, and with a folder that is served where nothing is named.
    for path in ["other/f.txt", "public/f.txt"] {
        reloaded.folder.file(path, "another");
        reloaded.folder.file("site.toml", "");
        assert_eq!(reloaded.reload(), expected.to_owned() + REFUSED);
        assert_eq!(reloaded.server.connect().get("/f.txt").text(), "one");
        reloaded.folder.file("site.toml", &sites);
        assert!(!reloaded.reload().contains(REFUSED));
    }
}

#[test]
fn names_settings_that_need_a_restart() {
    let mut reloaded = Reloaded::start(&["--workers", "1"], "[server]\nbacklog = 100\n");
    let keys = "[server]\nworkers = 7\nbacklog = 200\nhttp2_prior_knowledge = true\n\
                [limits]\nfields_max = 9\nstreams_max = 9\n[log]\nformat = \"json\"\n";
    reloaded.folder.file("site.toml", site(keys, "two"));
    // The flag overrides the file's workers again.
    let expected = "\
warning: without `access` there is no access log
 --> site.toml:9:10
  |
9 | format = \"json\"
  |          ^^^^^^ log.format
help: add a destination, such as `access = \"access.log\"`
warning: a change of `server.http2_prior_knowledge` to true takes effect after a restart; now false
warning: a change of `server.backlog` to 200 takes effect after a restart; now 100
warning: a change of `limits.fields_max` to 9 takes effect after a restart; now 100
warning: a change of `limits.streams_max` to 9 takes effect after a restart; now 100
warning: a change of `log.format` to json takes effect after a restart; now combined
";
    let log = reloaded.reload();
    assert_eq!(
        log,
        format!("{expected}shearwater: reloaded site.toml: {}\n", reloaded.folder.at("two").display())
    );
    assert_eq!(reloaded.server.connect().get("/f.txt").text(), "two");
}

#[test]
fn a_folder_is_opened_anew() {
    let folder = TestFolder::new();
    folder.file("public/index.html", "old");
    let mut reloaded = Reloaded { server: Server::start(&folder, &[]), folder };
    let mut client = reloaded.server.connect();
    assert_eq!(client.get("/").text(), "old");
    fs::rename(reloaded.folder.at("public"), reloaded.folder.at("away")).expect("it is there");
    reloaded.folder.file("public/index.html", "new");
    let root = reloaded.folder.at("public").canonicalize().expect("it is there");
    assert_eq!(reloaded.reload(), format!("shearwater: reloaded {}\n", root.display()));
    assert_eq!(client.get("/").text(), "new", "at once, not within a second");
    fs::remove_dir_all(reloaded.folder.at("public")).expect("it is there");
    assert!(reloaded.reload().starts_with("shearwater: reloaded a welcome page "));
    assert!(client.get("/").text().contains("<h1"));
}

#[test]
fn a_pid_file_exists_while_the_server_serves() {
    let folder = TestFolder::new();
    folder.file("public/index.html", "x").file("server.pid", "999999999\n");
    let server = Server::start(&folder, &["--pid-file", "server.pid"]);
    let text = fs::read_to_string(folder.at("server.pid")).expect("it was written");
    assert_eq!(text, format!("{}\n", server.pid().as_raw_nonzero()));
    server.stop();
    assert!(!folder.at("server.pid").exists() && !folder.at("server.pid.new").exists());

    let (code, stdout, stderr) = run(&folder, &["--listen", "127.0.0.1:0", "--pid-file", "none/server.pid"]);
    assert_eq!((code, &stdout[..]), (2, ""));
    assert!(stderr.starts_with("error: can't write the PID file none/server.pid: "), "{stderr}");
}

#[test]
fn a_drain_refuses_reloads() {
    let folder = TestFolder::new();
    folder.file("public/large.bin", vec![b'x'; 64 * 1024 * 1024]).file("public/index.html", "x");
    let mut reloaded = Reloaded { server: Server::start(&folder, &["--drain", "1000000"]), folder };
    let mut client = reloaded.server.connect();
    client.ask("GET", "/large.bin", &[]).head();
    reloaded.server.signal(Signal::TERM);
    until_refused(reloaded.server.address());
    assert!(reloaded.reload().ends_with(&format!("error: the server is stopping\n{REFUSED}")));
    assert_eq!(client.rest().len(), 64 * 1024 * 1024);
    drop(client);
    assert_eq!(reloaded.server.end().0, Some(0));
}

/// Returns a file's text once a condition holds.
fn text_of(folder: &TestFolder, name: &str, is_there: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(folder.at(name)).unwrap_or_default();
        if is_there(&text) {
            return text;
        }
        assert!(begun.elapsed() < TIMEOUT, "{name}: {text:?}");
        std::thread::yield_now();
    }
}

/// The program leads the terminal's session here, instead of a shell that passes the signal on.
#[test]
fn closing_the_terminal_drains_unless_that_is_ignored() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: there is no script");
        return;
    }
    for (prefix, ends) in [("", true), ("trap '' HUP; ", false)] {
        let folder = TestFolder::new();
        folder.file("public/index.html", "x");
        let serve =
            concat!(env!("CARGO_BIN_EXE_shearwater"), " --listen 127.0.0.1:0 --pid-file pid > out 2> log");
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &format!("{prefix}exec {serve}"), "/dev/null"]).current_dir(folder.path());
        terminal.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut terminal = terminal.spawn().expect("it starts");
        let banner = text_of(&folder, "out", |text| text.ends_with("\n\n"));
        let url = banner.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("a URL");
        let address = url.parse().expect("an address");
        let pid = text_of(&folder, "pid", |text| !text.is_empty()).trim().parse().expect("a number");
        terminal.kill().and_then(|()| terminal.wait()).expect("it ends");
        if ends {
            until_refused(address);
            text_of(&folder, "log", |log| log.contains("Z shearwater: draining: "));
        } else {
            text_of(&folder, "log", |log| log.contains("Z shearwater: reloaded "));
            assert_eq!(TestClient::connect_in_clear(address).get("/").text(), "x");
            kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("it serves");
        }
    }
}

/// Users, verified credentials and counts outlast a reload of the same; other users replace them, and a broken file doesn't.
#[test]
fn reads_users_again_and_keeps_counts() {
    let hash = "$2y$04$2Qg2mhOfIMFWvOWGiAwGjukuZFcTY2fz5K3PIPdRN4LznV4cOBmTC";
    let mut reloaded = Reloaded::start(&[], "");
    let guards = "rate_limit = { requests = 1, per = \"24h\", burst = 9 }\nbasic_auth = \"users\"\n";
    reloaded.folder.file("users", format!("ann:{}\n", hash));
    reloaded.folder.file("site.toml", site("", "one") + guards);
    reloaded.reload();
    let authorization = "Authorization: Basic YW5uOnNlY3JldA==";
    let status =
        |reloaded: &Reloaded| reloaded.server.connect().request("GET", "/f.txt", &[authorization]).status;
    assert_eq!([0; 3].map(|_| status(&reloaded)), [200; 3]);
    reloaded.reload();
    assert_eq!([0; 3].map(|_| status(&reloaded)), [200; 3]);
    reloaded.folder.file("users", "ann:$apr1$salt$hash\n");
    let log = reloaded.reload();
    assert!(log.ends_with(REFUSED) && log.contains("users:1: refused: `$apr1$`"), "{log}");
    assert_eq!(status(&reloaded), 200);
    reloaded.folder.file("users", format!("bob:{}\n", hash));
    reloaded.reload();
    assert_eq!([0; 3].map(|_| status(&reloaded)), [401, 401, 429], "nine of one table");
}
