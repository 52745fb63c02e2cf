//! The command line: help, shorthands, and errors with the right command.

use crate::process::{Serving, Temporary, just, run};

#[test]
fn prints_help_and_version() {
    let folder = Temporary::new();
    for flag in ["--help", "-h"] {
        let (code, stdout, stderr) = run(folder.path(), &[flag]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{flag}");
        let names = "Usage: shearwater|[DIR]|--config|check|precompress|config default|--listen|--workers|--driver|--pin|--drain|\
                     --help|--version|127.0.0.1:8080|./public|Examples:|SIGTERM|SIGUSR1|Exit codes|epoll|kqueue";
        for name in names.split('|') {
            assert!(stdout.contains(name), "{flag} does not name {name}:\n{stdout}");
        }
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{flag}:\n{stdout}");
        assert!(!stdout.contains('\x1b'), "{flag}: {stdout:?}");
    }
    for flag in ["--version", "-V"] {
        let expected = format!("shearwater {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(run(folder.path(), &[flag]), (0, expected, String::new()));
    }
}

fn folder() -> Temporary {
    let folder = Temporary::new();
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
    ] {
        let serving = Serving::of(&mut just(folder.path(), arguments));
        assert!(serving.address().ip().is_loopback(), "{arguments:?}");
        assert_eq!(serving.connect().request("GET", "/", &[]).text(), body, "{arguments:?}");
    }
}

#[test]
fn serves_folders_with_confusing_names() {
    let folder = Temporary::new();
    for name in ["8000", "start", "chekc", "x.toml"] {
        folder.file(&format!("{name}/index.html"), name);
        let serving = Serving::of(&mut just(folder.path(), &[name, "--port", "0"]));
        assert_eq!(serving.connect().request("GET", "/", &[]).text(), name);
    }
}

/// Arguments, and the message that they get.
type Case = (&'static [&'static str], &'static str);

const ADDRESSES: &[&str] = &[":8000", "8000", "127.0.0.1:8000", "http://localhost:8000/"];

const COMMANDS: &[Case] = &[
    (&["chekc"], "`chekc`\nhelp: a command with a similar name exists: `shearwater check`\n"),
    (&["chekc", "site.toml"], "`chekc`\nhelp: a command with a similar name exists: `shearwater check`\n"),
    (
        &["precompres", "./site"],
        "`precompres`\nhelp: a command with a similar name exists: `shearwater precompress`\n",
    ),
    (&["confg", "default"], "`confg`\nhelp: a command with a similar name exists: `shearwater config`\n"),
    (&["start", "./site"], "`start`\nhelp: serving needs no command: `shearwater ./site`\n"),
    (&["help"], "`help`\nhelp: `shearwater --help`\n"),
    (&["version"], "`version`\nhelp: `shearwater --version`\n"),
];

const OTHERS: &[Case] = &[
    (
        &["none.toml"],
        "no such file: none.toml\nhelp: `shearwater config default > none.toml` writes one to start with\n",
    ),
    (
        &["site/index.html"],
        "site/index.html is a file, not a folder\nhelp: `shearwater site` serves the folder that it is in\n",
    ),
    (
        &["site.toml", "--config", "site.toml"],
        "two configuration files: site.toml and site.toml\nhelp: name one of them\n",
    ),
    (&["./site", "8000"], "unexpected argument: `8000`\nhelp: `shearwater ./site --port 8000`\n"),
    (
        &["--workers", "2", "site", ":8000"],
        "unexpected argument: `:8000`\nhelp: `shearwater site --port 8000`\n",
    ),
    (
        &["./site", "./public"],
        "unexpected argument: `./public`\nhelp: to serve several folders, write a configuration with sites or routes: \
         `shearwater config default`\n",
    ),
    (
        &["--root", "./site"],
        "unexpected argument: `--root`\nhelp: name the folder without a flag: `shearwater FOLDER`\n",
    ),
    (
        &["config", "--print-default"],
        "`--print-default` was replaced by a command\nhelp: `shearwater config default`\n",
    ),
    (
        &["config", "--print-effective", "x"],
        "`--print-effective` was replaced by a command\nhelp: `shearwater config show FILE`\n",
    ),
    (
        &["./site", "--tls"],
        "unexpected argument: `--tls`: TLS is not supported yet\nhelp: terminate TLS in a proxy (Caddy, nginx, HAProxy) and \
         forward requests to this server at 127.0.0.1 or a unix: socket\n",
    ),
];

#[test]
fn suggests_the_right_command_line() {
    let folder = folder();
    let responded = |arguments: &[&str], expected: String| {
        assert_eq!(run(folder.path(), arguments), (2, String::new(), expected), "{arguments:?}");
    };
    for given in ADDRESSES {
        let line = "`shearwater --port 8000` listens on 127.0.0.1, `shearwater --listen 0.0.0.0:8000` on all addresses";
        responded(&[given], format!("error: `{given}` is an address, not a folder\nhelp: {line}\n"));
    }
    for (arguments, expected) in COMMANDS {
        responded(arguments, format!("error: no such command or folder: {expected}"));
    }
    for (arguments, expected) in OTHERS {
        responded(arguments, format!("error: {expected}"));
    }
}

#[test]
fn rejects_incomplete_addresses() {
    let folder = folder();
    for (address, missing) in [
        (":8000", "the address is missing: 127.0.0.1:8000 is local only, 0.0.0.0:8000 is all addresses"),
        ("0.0.0.0", "the port is missing, as in 0.0.0.0:8080"),
        ("localhost", "the port is missing, as in localhost:8080"),
        ("::", "the port is missing, as in [::]:8080"),
    ] {
        let (code, _, stderr) = run(folder.path(), &["./site", "--listen", address]);
        let expected = format!("error: invalid value '{address}' for '--listen <ADDRESS>': {missing}");
        assert!(code == 2 && stderr.starts_with(&expected), "{stderr}");
    }
}
