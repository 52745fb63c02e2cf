//! A command line as somebody types it who has not read the help: understood, or answered with the right one.

use crate::folder::Temporary;
use crate::process::{Serving, just, run};

fn folder() -> Temporary {
    let folder = Temporary::new();
    folder.file("site/index.html", "of the site").file("public/index.html", "public");
    folder.file("site.toml", "[server]\nworkers = 1\n[[site]]\nroot = \"site\"\n");
    folder
}

#[test]
fn what_can_mean_one_thing_alone_is_understood() {
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
fn a_folder_is_served_whatever_it_is_called() {
    let folder = Temporary::new();
    for name in ["8000", "start", "chekc", "x.toml"] {
        folder.file(&format!("{name}/index.html"), name);
        let serving = Serving::of(&mut just(folder.path(), &[name, "--port", "0"]));
        assert_eq!(serving.connect().request("GET", "/", &[]).text(), name);
    }
}

#[test]
fn what_is_not_understood_is_answered_with_the_right_line() {
    let folder = folder();
    let address = |given: &str| {
        format!(
            "error: `{given}` is an address, not a folder\n\
             help: `shearwater --port 8000` serves on this machine alone, `shearwater --listen 0.0.0.0:8000` to everyone\n"
        )
    };
    let command = |given: &str, meant: &str| {
        format!(
            "error: no such command or folder: `{given}`\nhelp: a command with a similar name exists: `{meant}`\n"
        )
    };
    let not_listed = "error: no such command or folder: ";
    for (arguments, expected) in [
        (&[":8000"][..], address(":8000")),
        (&["8000"], address("8000")),
        (&["127.0.0.1:8000"], address("127.0.0.1:8000")),
        (&["http://localhost:8000/"], address("http://localhost:8000/")),
        (&["chekc"], command("chekc", "shearwater check")),
        (&["chekc", "site.toml"], command("chekc", "shearwater check")),
        (&["precompres", "./site"], command("precompres", "shearwater precompress")),
        (&["confg", "--print-default"], command("confg", "shearwater config")),
        (&["start", "./site"], format!("{not_listed}`start`\nhelp: serving needs no command: `shearwater ./site`\n")),
        (&["help"], format!("{not_listed}`help`\nhelp: `shearwater --help`\n")),
        (&["version"], format!("{not_listed}`version`\nhelp: `shearwater --version`\n")),
        (
            &["none.toml"],
            "error: there is no file none.toml\nhelp: `shearwater config --print-default > none.toml` writes one to begin with\n".to_owned(),
        ),
        (
            &["site/index.html"],
            "error: site/index.html is a file, not a folder\nhelp: `shearwater site` serves the folder that it is in\n".to_owned(),
        ),
        (
            &["site.toml", "--config", "site.toml"],
            "error: two configuration files: site.toml and site.toml\nhelp: name one of them\n".to_owned(),
        ),
        (
            &["./site", "8000"],
            "error: unexpected argument: `8000`\nhelp: `shearwater ./site --port 8000`\n".to_owned(),
        ),
        (
            &["--workers", "2", "site", ":8000"],
            "error: unexpected argument: `:8000`\nhelp: `shearwater site --port 8000`\n".to_owned(),
        ),
        (
            &["./site", "./public"],
            "error: unexpected argument: `./public`\nhelp: one folder is served; several are sites or routes of a configuration: `shearwater config --print-default`\n".to_owned(),
        ),
        (
            &["--root", "./site"],
            "error: unexpected argument: `--root`\nhelp: the folder stands by itself: `shearwater FOLDER`\n".to_owned(),
        ),
        (
            &["./site", "--tls"],
            "error: unexpected argument: `--tls`: TLS is not built yet\nhelp: let a proxy (Caddy, nginx, HAProxy) speak it, and pass requests on to this server at 127.0.0.1 or a unix: socket\n".to_owned(),
        ),
    ] {
        assert_eq!(run(folder.path(), arguments), (2, String::new(), expected), "{arguments:?}");
    }
    for (address, expected) in [
        (
            ":8000",
            "error: invalid value ':8000' for '--listen <ADDRESS>': which address? 127.0.0.1:8000 is this machine alone, 0.0.0.0:8000 everyone",
        ),
        (
            "0.0.0.0",
            "error: invalid value '0.0.0.0' for '--listen <ADDRESS>': the port is missing, as in 0.0.0.0:8080",
        ),
        (
            "localhost",
            "error: invalid value 'localhost' for '--listen <ADDRESS>': the port is missing, as in localhost:8080",
        ),
    ] {
        let (code, _, stderr) = run(folder.path(), &["./site", "--listen", address]);
        assert_eq!(code, 2);
        assert!(stderr.starts_with(expected), "{stderr}");
    }
}
