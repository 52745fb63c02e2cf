//! Messages about configurations that can't be used, and warnings about probable mistakes.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Output;

use shearwater_config::limits::CONFIG_BYTES_MAX;
use testkit::{TestFolder, check_messages};

use crate::process::{Server, program, run};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.md");

fn folder() -> TestFolder {
    let folder = TestFolder::new();
    folder.file("www/f.txt", "content");
    folder
}

#[test]
fn reports_errors_as_documented() {
    let folder = folder();
    let count = check_messages(CASES, |toml| {
        folder.file("site.toml", toml);
        let (code, stdout, stderr) = run(&folder, &["check", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{toml}");
        let (found, end) = stderr.rsplit_once("\n\n").expect("a last line");
        let found = found.replace(&folder.path().display().to_string(), "FOLDER") + "\n";
        let errors = found.matches("error: ").count();
        let plural = if errors == 1 { "" } else { "s" };
        assert_eq!(end, format!("error: invalid configuration site.toml: {errors} error{plural}\n"));
        found
    });
    assert!(count >= 12, "{count} cases");
}

#[test]
fn prints_no_value_of_a_variable() {
    let folder = folder();
    let site = "[[site]]\nroot = \"www\"\n";
    for (text, message) in [
        (
            "[[site.redirect]]\nfrom = \"/${SECRET}\"\nto = \"/a\"\n[[site.redirect]]\nfrom = \"/%68unter2\"\nto = \"/a\"\n",
            "duplicate path",
        ),
        (
            "[[site.route]]\npath = \"/${SECRET}/*\"\n[[site.route]]\npath = \"/%68unter2/*\"\n",
            "duplicate path",
        ),
        ("[[site.redirect]]\nfrom = \"/*\"\nto = \"/x${SECRET}\"\n", "redirect loop"),
        ("[[site.redirect]]\nfrom = \"/a\"\nto = \"${SECRET}\"\n", "invalid redirect target"),
        ("[[site.route]]\npath = \"${SECRET}\"\n", "path doesn't start with `/`"),
        ("[[site.route]]\npath = \"/${SECRET}/{id}\"\n", "paths can't have parameters"),
        (
            "error_pages = { 404 = \"/old/${SECRET}\" }\n[[site.redirect]]\nfrom = \"/old/*\"\nto = \"/\"\n",
            "path of an error page is redirected",
        ),
        ("error_pages = { 404 = \"/${SECRET}/\" }\n", "path of an error page is not a file"),
        ("hosts = [\"${SECRET} x\"]\n", "invalid host name"),
        ("headers = { set = { A = \"${SECRET} \" } }\n", "invalid header value"),
        ("headers = { set = { hUNTER2 = \"\" }, remove = [\"${SECRET}\"] }\n", "header is changed twice"),
        ("spa = \"${SECRET}\"\n", "invalid value: "),
        ("[server]\ntrusted_proxies = [\"${SECRET}\"]\n", "invalid address or network"),
        ("try_files = [\"/${SECRET}/../x\"]\n", "invalid value: "),
        ("cache_control = [{ path = \"${SECRET}\", value = \"no-cache\" }]\n", "invalid value: "),
    ] {
        folder.file("site.toml", format!("{site}{text}"));
        let mut command = program(&folder, &["check", "site.toml"]);
        let Output { status, stderr, .. } = command.env("SECRET", "hunter2").output().expect("it starts");
        let stderr = String::from_utf8(stderr).expect("UTF-8");
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(stderr.starts_with(&format!("error: {message}")), "{text}\n{stderr}");
        assert!(!stderr.contains("hunter2"), "{text}\n{stderr}");
    }
}

#[test]
fn serving_reports_the_same_errors_and_binds_nothing() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("an address");
    let folder = folder();
    for wrong in [
        "[cache]\nenabld = true",
        "[server]\nworkers = \"4\"",
        "[cache]\nbytes_max = 1",
        "[[site]]\nroot = \"none\"",
        "[[site]]\nroot = \"${SHEARWATER_TEST_UNSET}\"",
    ] {
        let text =
            format!("{wrong}\n[[listen]]\naddress = \"{address}\"\n[[listen]]\naddress = \"unix:here\"\n");
        folder.file("site.toml", &text);
        let checked = run(&folder, &["check", "site.toml"]);
        let served = run(&folder, &["--config", "site.toml"]);
        assert_eq!(served, checked, "{text}");
        assert!(served.0 == 2 && served.2.starts_with("error: "), "{text}\n{}", served.2);
        assert!(!folder.at("here").exists(), "{text}");
    }
}

#[test]
fn reports_addresses_that_cant_be_bound_and_removes_sockets() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = held.local_addr().expect("an address").to_string();
    let folder = folder();
    for (address, error) in [
        (
            taken.as_str(),
            format!("{taken} is taken by another program: choose another port, or end that program"),
        ),
        ("192.0.2.1:0", "can't listen on 192.0.2.1:0: ".to_owned()),
        ("unix:none/x", format!("unix:{}: no such folder; create it first", folder.at("none/x").display())),
    ] {
        let text = format!("[[listen]]\naddress = \"unix:here\"\n[[listen]]\naddress = \"{address}\"\n");
        folder.file("site.toml", text);
        let (code, stdout, stderr) = run(&folder, &["--config", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (1, ""), "{address}");
        assert!(stderr.starts_with(&format!("error: {error}")) && stderr.lines().count() == 1, "{stderr}");
        assert!(!folder.at("here").exists(), "{address}");
    }
}

#[test]
fn a_privileged_port_that_cant_be_bound_has_a_remedy() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap_or_default();
    if first.trim().parse::<u16>().is_ok_and(|first| first <= 81) {
        println!("skipped: the system gives low ports to everyone");
        return;
    }
    let folder = folder();
    std::fs::set_permissions(folder.at(""), PermissionsExt::from_mode(0o755)).expect("its mode");
    for (arguments, remedy) in [
        (&["--port", "81"][..], "`--port 8080`"),
        (&["--listen", "0.0.0.0:81"], "`--listen 0.0.0.0:8080`"),
        (&["--port", "0", "--admin", "127.0.0.1:81"], "`--admin 127.0.0.1:9180`"),
    ] {
        let mut command = program(&folder, arguments);
        if rustix::process::getuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        let (error, help) = stderr.split_once("\nhelp: ").expect("help");
        assert!(error.ends_with(":81: permission denied (ports below 1024 need a privilege)"), "{stderr}");
        assert!(help.contains(remedy) && output.status.code() == Some(1), "{stderr}");
    }
}

#[test]
fn rejects_a_file_that_is_too_large() {
    let folder = folder();
    folder.file("site.toml", "#".repeat(CONFIG_BYTES_MAX + 1));
    for arguments in [&["check", "site.toml"][..], &["--config", "site.toml"]] {
        let (code, stdout, stderr) = run(&folder, arguments);
        assert_eq!((code, stdout.as_str()), (2, ""));
        let error =
            format!("error: configuration is larger than {CONFIG_BYTES_MAX} bytes\n --> site.toml:1:1\n");
        assert!(stderr.starts_with(&error) && stderr.len() < 1000, "{stderr}");
    }
    folder.file("site.toml", "#".repeat(CONFIG_BYTES_MAX));
    assert_eq!(run(&folder, &["check", "site.toml"]).0, 0);
}

#[test]
fn rejects_a_file_without_permission_to_read() {
    let folder = folder();
    folder.file("site.toml", "[server]\n");
    for (name, mode) in [("site.toml", 0o600), ("", 0o755)] {
        let path = folder.at(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("its mode");
    }
    let mut command = program(&folder, &["check", "site.toml"]);
    if rustix::process::getuid().is_root() {
        // Root can read every file: run as another user.
        command.uid(65_534).gid(65_534);
    } else {
        std::fs::set_permissions(folder.at("site.toml"), PermissionsExt::from_mode(0o000)).expect("its mode");
    }
    match command.output() {
        Ok(Output { status, stdout, stderr }) => {
            assert_eq!((status.code(), stdout.len()), (Some(2), 0));
            let stderr = String::from_utf8(stderr).expect("UTF-8");
            assert_eq!(stderr, "error: permission denied: site.toml\n");
        }
        Err(error) => println!("skipped: can't start it as another user: {error}"),
    }
}

/// Missing files are warnings: they may be added while the server runs.
#[test]
fn warns_about_missing_files_and_redirect_loops() {
    if testkit::tls::skips("messages have line numbers") {
        return;
    }
    const MISSING: &str = "no such file";
    const LOOPS: &str = "redirect loop";
    let folder = TestFolder::new();
    folder.file("www/docs/index.html", "docs").file("www/about.html", "about").file("www/index.html", "x");
    let cases = [
        ("spa = \"/app.html\"\n", "3:7", MISSING, "www/app.html"),
        ("try_files = [\"{path}\", \"/last.html\"]\n", "3:13", MISSING, "www/last.html"),
        ("error_pages = { 404 = \"/no%74.html\" }\n", "3:23", MISSING, "www/not.html"),
        ("[[site.redirect]]\nfrom = \"/docs/\"\nto = \"/docs\"\n", "5:6", LOOPS, "www/docs.html"),
        (
            "clean_urls = true\n[[site.redirect]]\nfrom = \"/about\"\nto = \"/about/\"\n",
            "6:6",
            LOOPS,
            "www/about/index.html",
        ),
    ];
    for (lines, place, what, fixed_by) in cases {
        folder.file("site.toml", format!("[[site]]\nroot = \"www\"\n{lines}"));
        let (code, stdout, stderr) = run(&folder, &["check", "site.toml"]);
        assert!(code == 0 && stdout.starts_with("site.toml is valid."), "{lines}{stderr}");
        assert!(stderr.starts_with(&format!("warning: {what}\n --> site.toml:{place}\n")), "{lines}{stderr}");
        assert_eq!(printed_at_the_start(&folder, &["--config", "site.toml"], &stderr), stderr);
        let (code, json, _) = run(&folder, &["check", "--json", "site.toml"]);
        assert!(json.contains(&format!("\"message\":\"{what}\"")), "{json}");
        assert!(code == 0 && json.contains("\"valid\":true"), "{json}");
        if fixed_by == "www/docs.html" {
            // With a page of this name the folder is no longer what the path means.
            folder.file("site.toml", format!("[[site]]\nroot = \"www\"\nclean_urls = true\n{lines}"));
        }
        folder.file(fixed_by, "fixed");
        assert_eq!(run(&folder, &["check", "site.toml"]).2, "", "{lines}");
    }
}

/// Starts the server and returns as many lines of its standard error as `expected` has.
fn printed_at_the_start(folder: &TestFolder, arguments: &[&str], expected: &str) -> String {
    let mut server = Server::start(folder, arguments);
    expected.lines().map(|_| server.next_line()).collect()
}

#[test]
fn warns_about_a_folder_without_an_index() {
    const WHY: &str =
        "there is no index.html now, so / is not found: add one, or list the folder with `listing = true`";
    let folder = TestFolder::new();
    folder.file("www/f.txt", "f").file("with/index.html", "x");
    let why = WHY.replace("`listing = true`", "`--listing`");
    let warned = format!("warning: {}: {why}\n", folder.at("www").display());
    assert_eq!(printed_at_the_start(&folder, &["www"], &warned), warned);
    for (lines, place) in [
        ("root = \"www\"\n", "1:1"),
        ("root = \"with\"\n[[site.route]]\npath = \"/\"\nroot = \"www\"\n", "3:1"),
        ("root = \"www\"\nlisting = true\n", ""),
        ("root = \"www\"\nspa = \"/f.txt\"\n", ""),
        ("root = \"www\"\nindex = [\"f.txt\"]\n", ""),
        ("root = \"www\"\n[[site.redirect]]\nfrom = \"/\"\nto = \"/f.txt\"\n", ""),
        ("root = \"www\"\n[[site.route]]\npath = \"/\"\nrespond = {}\n", ""),
        ("root = \"with\"\n", ""),
    ] {
        folder.file("site.toml", format!("[[site]]\n{lines}"));
        let (code, _, stderr) = run(&folder, &["check", "site.toml"]);
        assert_eq!(code, 0, "{lines}{stderr}");
        match place {
            "" => assert_eq!(stderr, "", "{lines}"),
            _ => assert!(
                stderr.starts_with(&format!("warning: {WHY}\n --> site.toml:{place}\n")),
                "{lines}{stderr}"
            ),
        }
    }
    // Without a site, the folder beside the file.
    folder.file("site.toml", "").file("public/f.txt", "f");
    let warned = format!("warning: {}: {why}\n", folder.at("public").display());
    assert_eq!(run(&folder, &["check", "site.toml"]).2, warned);
    assert!(run(&folder, &["check", "--json", "site.toml"]).1.contains("\"warnings\":[{\"message\":"));
}
