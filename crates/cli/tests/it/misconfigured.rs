//! Configurations that are refused: each kind of mistake with its place, and with what may stand there.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Output;

use shearwater_config::limits::CONFIG_BYTES_MAX;

use crate::folder::Temporary;
use crate::process::{just, run};

/// A text, and how the first problem of it begins: line, column, key, what is wrong.
type Wrong = (&'static str, &'static str);

const KEYS: &[Wrong] = &[
    ("[cache]\nenabld = true\n", "2:1: cache.enabld: unknown key; the nearest is `enabled`"),
    ("[severs]\nx = 1\n", "1:2: severs: unknown key; the nearest is `server`"),
    ("[server]\nfrobnicate = 1\n", "2:1: server.frobnicate: unknown key; known here: `workers`"),
    (
        "[server]\nkeep_alive_timeout = 1\n",
        "2:1: server.keep_alive_timeout: unknown key; it is a key of [performance]",
    ),
    ("[server]\nthreads = 1\n", "2:1: server.threads: unknown key; here it is workers of [server]"),
    (
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a\"\nlistin = true\n",
        "5:1: site[0].route[0].listin: unknown key",
    ),
    ("[[listen]]\nmode = \"0600\"\n", "1:1: listen[0]: `address` is missing"),
    ("[[site]]\nhosts = [\"a.test\"]\n", "1:1: site[0]: it answers nothing: give it a `root`"),
    (
        "[[site]]\nroot = \"www\"\n[[site.redirect]]\nfrom = \"/a\"\n",
        "3:1: site[0].redirect[0]: `to` is missing",
    ),
];

const VALUES: &[Wrong] = &[
    (
        "[server]\nworkers = \"4\"\n",
        "2:11: server.workers: here stands a text, wanted is a whole number, 0 to 1024",
    ),
    ("[server]\nworkers = 1025\n", "2:11: server.workers: out of range; allowed is 0 to 1024"),
    ("[server]\npin = 1\n", "2:7: server.pin: here stands a whole number, wanted is true or false"),
    ("server = 3\n", "1:10: server: here stands a whole number, wanted is [server]"),
    (
        "[listen]\naddress = \"127.0.0.1:1\"\n",
        "1:1: listen: here stands a table, wanted is tables in double brackets",
    ),
    (
        "[server]\ndriver = \"epol\"\n",
        "2:10: server.driver: \"epol\" is none of \"auto\", \"epoll\", \"uring\" or \"kqueue\"; the nearest is \"epoll\"",
    ),
    ("[timeouts]\nhead_ms = 0\n", "2:11: timeouts.head_ms: out of range; allowed is 1 to 86400000"),
    (
        "[[listen]]\naddress = \"localhost:80\"\n",
        "2:11: listen[0].address: \"localhost:80\" is no address and port",
    ),
    ("[[listen]]\naddress = \"unix:\"\n", "2:11: listen[0].address: after unix: stands the path of a socket"),
    (
        "[[listen]]\naddress = \"unix:x\"\nmode = \"rw\"\n",
        "3:8: listen[0].mode: \"rw\" is none; wanted is a mode in octal",
    ),
    (
        "[[site]]\nroot = \"www\"\nhosts = [\"a.test:80\"]\n",
        "3:10: site[0].hosts[0]: \"a.test:80\" has a port",
    ),
    ("[[site]]\nroot = \"www\"\nindex = [\"a/b\"]\n", "3:10: site[0].index[0]: \"a/b\" "),
    (
        "[[site]]\nroot = \"www\"\nspa = \"index.html\"\n",
        "3:7: site[0].spa: \"index.html\" is no path of the site",
    ),
    (
        "[[site]]\nroot = \"www\"\nspa = \"/100%.html\"\n",
        "3:7: site[0].spa: \"/100%.html\" has a % without two hexadecimal digits",
    ),
    (
        "[[site]]\nroot = \"www\"\ntry_files = [\"/%2e/x\"]\n",
        "3:13: site[0].try_files: \"/%2e/x\": it has . or .. in it",
    ),
    (
        "[[site]]\nroot = \"www\"\nmime = { foo = \"foo\" }\n",
        "3:16: site[0].mime.foo: \"foo\" is no media type",
    ),
    (
        "[[site]]\nroot = \"www\"\nheaders = { set = { Date = \"x\" } }\n",
        "3:21: site[0].headers.set.Date: \"Date\" is the server's own",
    ),
    (
        "[[site]]\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 200\n",
        "5:10: site[0].redirect[0].status: allowed is 301",
    ),
    ("[[site]]\n[[site.route]]\npath = \"a\"\nrespond = {}\n", "3:8: site[0].route[0].path: \"a\" "),
];

const TOGETHER: &[Wrong] = &[
    (
        "[[site]]\nroot = \"www\"\nhosts = [\"a.test\"]\n[[site]]\nroot = \"www\"\nhosts = [\"A.test.\"]\n",
        "6:10: site[1].hosts[0]: site[0] is for a.test already",
    ),
    ("[[site]]\nroot = \"www\"\n[[site]]\nroot = \"www\"\n", "3:1: site[1]: site[0] has no `hosts` either"),
    (
        "[server]\nhttp_port = 81\n[[listen]]\naddress = \"127.0.0.1:81\"\n",
        "4:11: listen[0].address: server.http_port = 81 listens on all addresses already",
    ),
    (
        "[[listen]]\naddress = \"[::]:81\"\n[[listen]]\naddress = \"127.0.0.1:81\"\n",
        "4:11: listen[1].address: listen[0] listens there already",
    ),
    (
        "[[listen]]\naddress = \"127.0.0.1:81\"\nmode = \"0600\"\n",
        "3:1: listen[0].mode: only a unix: socket has a mode",
    ),
    (
        "[[site]]\nroot = \"www\"\nspa = \"/index.html\"\ntry_files = [\"{path}\"]\n",
        "3:1: site[0].spa: `spa` and `try_files` both say",
    ),
    ("[cache]\nbytes_max = 1\n", "2:1: cache.bytes_max: one file may have 65536 bytes, but all together 1"),
    (
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a/*\"\n[[site.route]]\npath = \"/a/*\"\n",
        "6:8: site[0].route[1].path: site[0].route[0] has /a/* already",
    ),
    (
        "[[site]]\n[[site.route]]\npath = \"/a\"\nrespond = {}\nlisting = true\n",
        "5:1: site[0].route[0].listing: a route with `respond` needs no files",
    ),
    (
        "[[site]]\n[[site.route]]\npath = \"/a\"\nlisting = true\n",
        "2:1: site[0].route[0]: neither it nor its site has a `root`",
    ),
];

/// What only the folders and the sites as a whole tell.
const SITES: &[Wrong] = &[
    ("[[site]]\nroot = \"none\"\n", "2:8: site[0].root: there is no folder "),
    ("[[site]]\nroot = \"www/f.txt\"\n", "2:8: site[0].root: "),
    (
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a/*\"\nroot = \"none\"\n",
        "5:8: site[0].route[0].root: there is no folder ",
    ),
    (
        "[[site]]\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/a\"\n",
        "2:1: site[0].redirect[0]: /a leads back to it",
    ),
    (
        "[[site]]\n[[site.route]]\npath = \"/a\"\nrespond = { status = 401 }\n",
        "2:1: site[0].route[0]: a 401 says how to log in: set WWW-Authenticate in its headers",
    ),
    // Files lead back too.
    (
        "[[site]]\nroot = \"www\"\nclean_urls = true\n[[site.redirect]]\nfrom = \"/about\"\nto = \"/about.html\"\n",
        "4:1: site[0].redirect[0]: /about.html leads back to it",
    ),
    (
        "[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"/a/\" }\n",
        "3:23: site[0].error_pages.404: /a/ names no file",
    ),
    (
        "[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"/old/x\" }\n[[site.redirect]]\nfrom = \"/old/*\"\nto = \"/\"\n",
        "3:23: site[0].error_pages.404: /old/x is redirected",
    ),
    (
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a/*\"\n[[site.route]]\npath = \"/%61/*\"\n",
        "5:1: site[0].route[1]: ",
    ),
];

const TEXTS: &[Wrong] = &[
    ("[server]\nworkers = \n", "2:11: not valid TOML: "),
    ("[server]\nworkers = 1\nworkers = 2\n", "3:1: not valid TOML: duplicate key"),
    ("[server\n", "1:8: not valid TOML: unclosed table"),
    (
        "[[site]]\nroot = \"${SHEARWATER_TEST_UNSET}\"\n",
        "2:8: site[0].root: the environment has no variable SHEARWATER_TEST_UNSET ",
    ),
    ("[[site]]\nroot = \"${SHEARWATER_TEST\"\n", "2:8: site[0].root: a `${` has no `}`"),
];

fn folder() -> Temporary {
    let folder = Temporary::new();
    folder.file("www/f.txt", "content");
    folder
}

#[test]
fn each_mistake_is_told_with_its_place() {
    let folder = folder();
    for (text, told) in [KEYS, VALUES, TOGETHER, SITES, TEXTS].into_iter().flatten() {
        folder.file("site.toml", text);
        let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{text}");
        assert!(stderr.starts_with(&format!("site.toml:{told}")), "{text}\n{stderr}\n{told}");
        assert!(stderr.ends_with("shearwater: site.toml has 1 problem; nothing was started\n"), "{stderr}");
        // The line is quoted, with a mark beneath.
        assert!(stderr.contains("^\n"), "{stderr}");
        let (line, _) = told.split_once(':').expect("a line");
        let quoted = text.lines().nth(line.parse::<usize>().expect("a number") - 1).expect("a line");
        assert!(stderr.contains(&format!("\n{line} | {quoted}\n")), "{stderr}");
    }
}

/// What a variable holds is in no message, though some are about two keys.
#[test]
fn what_a_variable_holds_is_not_told() {
    let folder = folder();
    for (text, told) in [
        (
            "[[site]]\n[[site.redirect]]\nfrom = \"/${SECRET}\"\nto = \"/a\"\n[[site.redirect]]\nfrom = \"/%68unter2\"\nto = \"/a\"\n",
            "redirect of /${SECRET} has the same paths",
        ),
        (
            "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/${SECRET}/*\"\n[[site.route]]\npath = \"/%68unter2/*\"\n",
            "route /${SECRET}/* has the same paths",
        ),
        (
            "[[site]]\n[[site.redirect]]\nfrom = \"/*\"\nto = \"/x${SECRET}\"\n",
            "/x${SECRET} leads back to it",
        ),
        (
            "[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"/old/${SECRET}\" }\n[[site.redirect]]\nfrom = \"/old/*\"\nto = \"/\"\n",
            "/old/${SECRET} is redirected",
        ),
        ("[[site]]\nroot = \"www\"\nerror_pages = { 404 = \"/${SECRET}/\" }\n", "/${SECRET}/ names no file"),
    ] {
        folder.file("site.toml", text);
        let mut command = just(folder.path(), &["check", "site.toml"]);
        let Output { status, stderr, .. } = command.env("SECRET", "hunter2").output().expect("it starts");
        let stderr = String::from_utf8(stderr).expect("UTF-8");
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(stderr.contains(told) && !stderr.contains("hunter2"), "{text}\n{stderr}");
    }
}

/// The same by serving and by printing: nothing is bound, not even an address that can be.
#[test]
fn serving_refuses_it_likewise_before_anything_is_bound() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("an address");
    let folder = folder();
    for wrong in [KEYS[0], VALUES[0], TOGETHER[0], SITES[0], TEXTS[3]] {
        let text = format!(
            "{}\n[[listen]]\naddress = \"{address}\"\n[[listen]]\naddress = \"unix:here\"\n",
            wrong.0
        );
        folder.file("site.toml", &text);
        let checked = run(folder.path(), &["check", "site.toml"]);
        let served = run(folder.path(), &["--config", "site.toml"]);
        assert_eq!(served, checked, "{text}");
        assert!(served.2.starts_with(&format!("site.toml:{}", wrong.1)), "{text}\n{}", served.2);
        assert!(!folder.path().join("here").exists(), "{text}");
    }
}

/// What only the kernel tells is told by its address, and what was bound before it is let go.
#[test]
fn an_address_that_can_not_be_had() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = held.local_addr().expect("an address").to_string();
    let folder = folder();
    for (address, told) in [
        (
            taken.as_str(),
            format!("{taken} is taken by another program: choose another port, or end that program"),
        ),
        ("192.0.2.1:0", "can't listen on 192.0.2.1:0: ".to_owned()),
        (
            "unix:none/x",
            format!(
                "unix:{}: there is no such folder: make it first",
                folder.path().join("none/x").display()
            ),
        ),
    ] {
        let text = format!("[[listen]]\naddress = \"unix:here\"\n[[listen]]\naddress = \"{address}\"\n");
        folder.file("site.toml", text);
        let (code, stdout, stderr) = run(folder.path(), &["--config", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{address}");
        assert!(
            stderr.starts_with(&format!("shearwater: {told}")) && stderr.lines().count() == 1,
            "{stderr}"
        );
        assert!(!folder.path().join("here").exists(), "{address}");
    }
}

#[test]
fn a_file_that_is_too_large() {
    let folder = folder();
    folder.file("site.toml", "#".repeat(CONFIG_BYTES_MAX + 1));
    for arguments in [&["check", "site.toml"][..], &["--config", "site.toml"]] {
        let (code, stdout, stderr) = run(folder.path(), arguments);
        assert_eq!((code, stdout.as_str()), (2, ""));
        let told = format!("site.toml:1:1: a configuration may have {CONFIG_BYTES_MAX} bytes\n");
        assert!(stderr.starts_with(&told) && stderr.len() < 1000, "{stderr}");
    }
    folder.file("site.toml", "#".repeat(CONFIG_BYTES_MAX));
    assert_eq!(run(folder.path(), &["check", "site.toml"]).0, 0);
}

#[test]
fn a_file_that_may_not_be_read() {
    let folder = folder();
    folder.file("site.toml", "[server]\n");
    for (name, mode) in [("site.toml", 0o600), ("", 0o755)] {
        let path = folder.path().join(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("its mode");
    }
    let mut command = just(folder.path(), &["check", "site.toml"]);
    if rustix::process::getuid().is_root() {
        // Root may read everything; somebody else may not, if the program is where everybody can start it.
        command.uid(65_534).gid(65_534);
    } else {
        std::fs::set_permissions(folder.path().join("site.toml"), PermissionsExt::from_mode(0o000))
            .expect("its mode");
    }
    match command.output() {
        Ok(Output { status, stdout, stderr }) => {
            assert_eq!((status.code(), stdout.len()), (Some(2), 0));
            let told = String::from_utf8(stderr).expect("UTF-8");
            assert_eq!(told, "shearwater: site.toml may not be read by this user\n");
        }
        Err(error) => println!("skipped: root can't start it as somebody else: {error}"),
    }
}
