//! The command line: help, what can be served by name, addresses and drivers that are refused, unused precompressed files. Messages about
//! command lines are in `tests/commands.md`.

use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Stdio;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use testkit::{TIMEOUT, TestFolder};

use crate::process::{Server, drivers, program, run};

#[test]
fn prints_help_and_version() {
    let folder = TestFolder::new();
    for flag in ["--help", "-h"] {
        let (code, stdout, stderr) = run(&folder, &[flag]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{flag}");
        let names = "Usage: shearwater|[DIR]|--config|check|precompress|config default|--listen|--listing|--spa|health|--workers|--driver|--pin|--drain|\
                     --help|--version|127.0.0.1:8080|./public|Examples:|SIGTERM|SIGUSR1|Exit codes|epoll|kqueue";
        for name in names.split('|') {
            assert!(stdout.contains(name), "{flag} does not name {name}:\n{stdout}");
        }
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{flag}:\n{stdout}");
        assert!(!stdout.contains('\x1b'), "{flag}: {stdout:?}");
    }
    for flag in ["--version", "-V"] {
        let expected = format!("shearwater {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(run(&folder, &[flag]), (0, expected, String::new()));
    }
}

fn folder() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("site/index.html", "of the site").file("public/index.html", "public");
    folder.file("site.toml", "[server]\nworkers = 1\n[[site]]\nroot = \"site\"\n");
    folder
}

#[test]
fn accepts_unambiguous_command_lines() {
    let folder = folder();
    for (arguments, body) in [
        (&["site.toml", "--listen", "127.0.0.1:0"][..], "of the site"),
        (&["serve", "site.toml", "--listen", "127.0.0.1:0"], "of the site"),
        (&["serve", "./site", "--listen", "127.0.0.1:0"], "of the site"),
        (&["serve", "--port", "0"], "public"),
        (&["./site", "--port", "0"], "of the site"),
        (&["site", "-p", "0", "--threads", "1"], "of the site"),
        (&["site", "--listen", "0"], "of the site"),
        (&["site", "--bind", "127.0.0.1:0"], "of the site"),
        (&["site", "--listen", "localhost:0", "--admin", "localhost:0"], "of the site"),
    ] {
        let server = Server::of(&mut program(&folder, arguments));
        assert!(server.address().ip().is_loopback(), "{arguments:?}");
        assert_eq!(server.connect().request("GET", "/", &[]).text(), body, "{arguments:?}");
    }
}

#[test]
fn serves_folders_with_confusing_names() {
    let folder = TestFolder::new();
    for name in ["8000", "start", "chekc", "x.toml"] {
        folder.file(format!("{name}/index.html"), name);
        let server = Server::of(&mut program(&folder, &[name, "--port", "0"]));
        assert_eq!(server.connect().request("GET", "/", &[]).text(), name);
    }
}

#[test]
fn flags_list_a_folder_and_serve_an_app() {
    let folder = TestFolder::new();
    folder.file("files/sub/a.txt", "a").file("dist/index.html", "app").file("dist/app.js", "start()");
    for driver in drivers() {
        let server = Server::start(&folder, &["files", "--listing", "--driver", driver]);
        let mut client = server.connect();
        let list = client.request("GET", "/sub/", &["Accept: application/json"]);
        assert!(list.status == 200 && list.text().contains("a.txt"), "{}", list.text());
        let server = Server::start(&folder, &["dist", "--spa", "--driver", driver]);
        let mut client = server.connect();
        assert_eq!(client.request("GET", "/users/7", &[]).text(), "app");
        assert_eq!(client.request("GET", "/app.js", &[]).text(), "start()");
        assert_eq!(client.request("GET", "/none.js", &[]).status, 404);
    }
    let mut server = Server::start(&folder, &["files", "--spa"]);
    assert_eq!(server.connect().request("GET", "/users/7", &[]).status, 404);
    let warning = server.next_line();
    assert!(
        warning.contains("files: no index.html, so with --spa paths without a file get a 404"),
        "{warning}"
    );
}

#[test]
fn flags_set_headers_and_error_pages_of_a_folder() {
    let folder = folder();
    folder.file("site/404.html", "nothing here").link("site/link.html", "index.html");
    let flags = ["--cache-control", "no-cache", "--symlinks", "never", "--error-page", "404=404.html"];
    let headers = ["--header", "X-Frame-Options: DENY", "--cors"];
    let server = Server::start(&folder, &[&["site"], &flags[..], &headers[..]].concat());
    let mut client = server.connect();
    let response = client.request("GET", "/", &[]);
    for (name, value) in
        [("Cache-Control", "no-cache"), ("X-Frame-Options", "DENY"), ("Access-Control-Allow-Origin", "*")]
    {
        assert_eq!(response.field(name), Some(value), "{name}");
    }
    let missing = client.request("GET", "/link.html", &[]);
    assert_eq!((missing.status, missing.text()), (404, "nothing here"));
}

#[test]
fn a_quiet_server_prints_no_reports() {
    let folder = folder();
    let listen = format!("unix:{}", folder.at("socket").display());
    let manager = UnixDatagram::bind(folder.at("manager")).expect("a socket");
    manager.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut command = program(&folder, &["site", "--quiet", "--listen", &listen]);
    command.env("NOTIFY_SOCKET", folder.at("manager")).stderr(Stdio::null());
    let child = command.spawn().expect("it starts");
    manager.recv(&mut [0; 64]).expect("it serves");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn health_reports_the_status_by_its_exit_code() {
    if testkit::tls::skips("its URLs are in clear") {
        return;
    }
    let folder = folder();
    let server = Server::start(&folder, &["site"]);
    let url = |path: &str| format!("http://{}{path}", server.address());
    for path in ["", "/", "/index.html"] {
        let expected = (0, format!("{}: 200\n", url(path)), String::new());
        assert_eq!(run(&folder, &["health", &url(path)]), expected);
    }
    let missing = format!("error: {}: status 404\n", url("/none"));
    assert_eq!(run(&folder, &["health", &url("/none")]), (1, String::new(), missing));
    let listen = format!("unix:{}", folder.at("socket").display());
    let server = Server::of(&mut program(&folder, &["site", "--listen", &listen]));
    assert_eq!(run(&folder, &["health", &listen]), (0, format!("{listen}: 200\n"), String::new()));
    drop(server);

    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address"));
    let error = format!("error: {url}: no response within 200ms\n");
    assert_eq!(run(&folder, &["health", &url, "--timeout", "200ms"]), (1, String::new(), error));
}

#[test]
fn health_does_not_wait_for_a_full_queue() {
    let folder = folder();
    let path = folder.at("full");
    let full = UnixListener::bind(&path).expect("a socket");
    rustix::net::listen(&full, 0).expect("a short queue");
    let _queued = UnixStream::connect(&path).expect("the queue has room");
    let url = format!("unix:{}", path.display());
    let error = format!("error: {url}: no response within 200ms\n");
    let (sender, result) = sync_channel(1);
    std::thread::spawn(move || sender.send(run(&folder, &["health", &url, "--timeout", "200ms"])));
    // Dropped after a failure, the listener ends the program too.
    assert_eq!(result.recv_timeout(Duration::from_secs(20)), Ok((1, String::new(), error)));
}

#[test]
fn rejects_a_port_in_use() {
    let folder = TestFolder::new();
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let one = Server::start(&folder, &["--workers", "1"]);
    let several = Server::start(&folder, &["--workers", "4"]);
    for address in [held.local_addr().expect("an address"), one.address(), several.address()] {
        for workers in ["1", "3"] {
            let arguments = ["--listen", &address.to_string(), "--workers", workers];
            let error = format!(
                "error: {address} is taken by another program: choose another port, or end that program\n"
            );
            assert_eq!(run(&folder, &arguments), (1, String::new(), error));
        }
    }
    for server in [one, several] {
        assert_eq!(server.connect().request("GET", "/", &[]).status, 200);
    }
}

#[test]
fn rejects_an_unavailable_driver() {
    let folder = TestFolder::new();
    let server = Server::start(&folder, &["--driver", "auto", "--verbose"]);
    let driver = server.line("driver").expect("a driver");
    let (found, reason) = driver.split_once(' ').expect("a reason");
    let is_there = |name: &str| name == found || reason.contains(&format!("--driver {name}"));
    for driver in ["epoll", "kqueue", "uring"].into_iter().filter(|name| !is_there(name)) {
        let (code, stdout, stderr) = run(&folder, &["--driver", driver]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.starts_with(&format!("error: driver {driver} isn't there: ")), "{stderr}");
        assert!(stderr.contains("--driver auto") && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn check_warns_about_links_that_lead_out() {
    let folder = TestFolder::new();
    folder.file("www/index.html", "x").file("lib/readme", "x").link("www/here", "index.html");
    let site = "[[site]]\nroot = \"www\"\n";
    folder.file("site.toml", site).file("follow.toml", format!("{site}symlinks = \"follow\"\n"));
    let check = |file: &str| run(&folder, &["check", file]);
    assert_eq!((check("site.toml").0, check("site.toml").2), (0, String::new()));
    folder.link("www/docs", "../lib");
    let root = folder.at("www").display().to_string();
    let message = format!("1 link in {root} leads out of it and gets a 403, such as \"docs\" to \"../lib\"");
    let help = "`symlinks = \"follow\"` serves them, if all files that they lead to may be public";
    assert_eq!(check("site.toml").2, format!("warning: {message}\nhelp: {help}\n"));
    let json: Value = serde_json::from_str(&run(&folder, &["check", "--json", "site.toml"]).1).expect("JSON");
    assert_eq!(json["warnings"], json!([{ "message": message, "help": help }]));
    assert_eq!(check("follow.toml").2, "");
}

#[test]
fn warns_about_unused_precompressed_files() {
    let folder = TestFolder::new();
    folder.file("www/a.css", "p { color: red }\n".repeat(200)).file("other/a.css", "old");
    folder.file("www/index.html", "x");
    folder.file(
        "site.toml",
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a/*\"\nroot = \"www\"\nprecompressed = [\"gzip\"]\n\
         [[site.route]]\npath = \"/b/*\"\nroot = \"other\"\n",
    );
    let root = folder.at("www").display().to_string();
    let check = || run(&folder, &["check", "site.toml"]);
    assert_eq!(run(&folder, &["precompress", "www"]).0, 0);
    assert_eq!(check().2, "");
    // Older than its file now.
    for name in ["www/a.css.br", "www/a.css.gz"] {
        folder.set_modified(name, UNIX_EPOCH);
    }
    let warned = format!(
        "warning: 2 precompressed files in {root} are not sent because their originals are newer, such as {root}/a.css.br\n\
         help: `shearwater precompress {root}` updates them\n"
    );
    let (code, _, stderr) = check();
    assert_eq!((code, stderr), (0, warned.clone()));
    let example = format!("{root}/a.css.br");
    let json: Value = serde_json::from_str(&run(&folder, &["check", "--json", "site.toml"]).1).expect("JSON");
    let expected = json!([{
        "folder": root, "count": 2, "example": example, "damaged": 0, "damaged_example": "", "is_whole": true
    }]);
    assert_eq!(json["unused_siblings"], expected);
    // The server warns as well, after its start.
    let mut server = Server::start(&folder, &["www"]);
    assert_eq!(server.next_line() + &server.next_line(), warned);
    drop(server);
    let (code, stdout, _) = run(&folder, &["precompress", "www"]);
    assert_eq!((code, stdout.matches(", 1 refreshed\n").count()), (0, 2), "{stdout}");
    assert_eq!(check().2, "");
}
