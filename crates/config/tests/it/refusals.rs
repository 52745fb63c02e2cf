//! What is refused: with its place, its key, and what was meant.

use crate::{parse, right};

/// What is said of a text, a line each, without the quotes.
#[track_caller]
fn said(text: &str) -> Vec<String> {
    let Err(errors) = parse(text) else { panic!("this is taken:\n{text}") };
    assert_eq!(errors.left_out, 0);
    let line = |problem: &shearwater_config::Problem| {
        format!("{}:{}: {}: {}", problem.line, problem.column, problem.key, problem.what)
    };
    errors.problems.iter().map(line).collect()
}

#[track_caller]
fn all(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(said(text), [*expected], "{text}");
    }
}

#[test]
fn unknown_keys_name_what_was_meant() {
    all(&[
        ("[server]\nwokers = 4", "2:1: server.wokers: unknown key; the nearest is `workers`"),
        ("[server]\nhttp-port = 4", "2:1: server.http-port: unknown key; the nearest is `http_port`"),
        ("[servr]\nworkers = 4", "1:2: servr: unknown key; the nearest is `server`"),
        (
            "[logging]\nlog_level = \"x\"",
            "2:1: logging.log_level: unknown key; here it is level of [logging]",
        ),
        (
            "[[site]]\nroot = \".\"\ngzip_static = true",
            "3:1: site[0].gzip_static: unknown key; here it is precompressed of [[site]]",
        ),
        ("workers = 4", "1:1: workers: unknown key; it is a key of [server]"),
        (
            "[server]\nmax_connections = 1",
            "2:1: server.max_connections: unknown key; it is a key of [performance]",
        ),
        (
            "[limits]\nconnections_max = 1",
            "2:1: limits.connections_max: unknown key; here it is max_connections of [performance]",
        ),
        (
            "[timeouts]\nidle_ms = 1",
            "2:1: timeouts.idle_ms: unknown key; here it is keep_alive_timeout of [performance], in seconds",
        ),
        ("[logging]\nzzz = 1", "2:1: logging.zzz: unknown key; known here: `level`"),
        (
            "[[site]]\nroot = \".\"\nclean_url = true",
            "3:1: site[0].clean_url: unknown key; the nearest is `clean_urls`",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"/x\"\nhosts = []",
            "5:1: site[0].route[0].hosts: unknown key; it is a key of [[site]]",
        ),
        (
            "[[site]]\nroot = \".\"\nheaders = { add = {} }",
            "3:13: site[0].headers.add: unknown key; known here: `set` or `remove`",
        ),
    ]);
}

/// A name that is near to theirs is never suggested.
#[test]
fn keys_of_what_is_not_built_yet_name_a_way_around() {
    for (text, key, what, help) in [
        (
            "[tls]\ncert = \"a\"",
            "1:2: tls",
            "TLS is not built yet",
            "let a proxy (Caddy, nginx, HAProxy) speak it",
        ),
        ("[server]\nhttps_port = 443", "2:1: server.https_port", "TLS is not built yet", "let a proxy"),
        (
            "[[listen]]\naddress = \"[::]:1\"\ntls = true",
            "3:1: listen[0].tls",
            "TLS is not built yet",
            "let a proxy",
        ),
        (
            "[gzip]\nlevel = 6",
            "1:2: gzip",
            "compression on the fly is not built yet",
            "`shearwater precompress FOLDER`",
        ),
        (
            "[logging]\naccess_log = \"x\"",
            "2:1: logging.access_log",
            "an access log is not built yet, and messages go to standard error",
            "redirect standard error to a file",
        ),
        (
            "[[proxy]]\nto = \"x\"",
            "1:3: proxy",
            "passing requests on to another server is not built yet",
            "let a proxy (Caddy, nginx) send those paths there",
        ),
        (
            "[[site]]\nroot = \".\"\nauth = {}",
            "3:1: site[0].auth",
            "access by password or token is not built yet",
            "let a proxy (Caddy, nginx) in front ask for it",
        ),
        ("[metrics]", "1:2: metrics", "metrics are not built yet", "SIGUSR1 prints the counters"),
    ] {
        assert_eq!(said(text), [format!("{key}: unknown key; {what}")], "{text}");
        let Err(errors) = parse(text) else { panic!("this is taken:\n{text}") };
        assert!(errors.problems[0].help.as_ref().is_some_and(|said| said.starts_with(help)), "{errors}");
    }
    let Err(errors) = parse("[server]\nhttps_port = 443") else { panic!("it is taken") };
    let printed = errors.to_string();
    let ends = "site.toml:2:1: server.https_port: unknown key; TLS is not built yet\n  |\n2 | https_port = 443\n  | ^^^^^^^^^^\n\
                help: let a proxy (Caddy, nginx, HAProxy) speak it, and pass requests on to this server at 127.0.0.1 or a unix: socket\n";
    assert!(printed.ends_with(ends), "{printed}");
}

#[test]
fn paths_with_parameters_are_refused_with_what_is_near() {
    for (path, near) in [
        ("/user/{id}", "/user/*"),
        ("/user/:id/posts", "/user/*"),
        ("/<name>", "/*"),
        ("/files/{*rest}", "/files/*"),
        ("/a/{}/*", "/a/*"),
        ("/{id}.html", "/*"),
    ] {
        for (text, key) in [
            (
                format!("[[site]]\nroot = \".\"\n[[site.route]]\npath = \"{path}\""),
                "4:8: site[0].route[0].path",
            ),
            (
                format!("[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"{path}\"\nto = \"/\""),
                "4:8: site[0].redirect[0].from",
            ),
        ] {
            assert_eq!(
                said(&text),
                [format!("{key}: {path:?} has a parameter, which paths here don't have")]
            );
            let Err(errors) = parse(&text) else { panic!("this is taken:\n{text}") };
            assert_eq!(errors.problems[0].help, Some(format!("{near:?} is for all beneath it")));
        }
    }
    for path in ["/a:b", "/%7Bid%7D", "/:", "/<", "/a}b{c"] {
        right(&format!("[[site]]\nroot = \".\"\n[[site.route]]\npath = \"{path}\""));
    }
}

#[test]
fn values_of_another_kind() {
    all(&[
        ("server = 3", "1:10: server: here stands a whole number, wanted is [server]"),
        ("[[server]]", "1:1: server: here stands a list, wanted is [server]"),
        ("[listen]", "1:1: listen: here stands a table, wanted is tables in double brackets"),
        ("site = [1]", "1:9: site[0]: here stands a whole number, wanted is a table"),
        (
            "[server]\nworkers = \"4\"",
            "2:11: server.workers: here stands a text, wanted is a whole number, 0 to 1024",
        ),
        (
            "[server]\nworkers = 1.5",
            "2:11: server.workers: here stands a number with a point, wanted is a whole number, 0 to 1024",
        ),
        ("[server]\npin = 1", "2:7: server.pin: here stands a whole number, wanted is true or false"),
        (
            "[server]\ndriver = true",
            "2:10: server.driver: here stands a truth value, wanted is \"auto\", \"epoll\", \"uring\" or \"kqueue\"",
        ),
        ("[[site]]\nroot = 2020-01-01", "2:8: site[0].root: here stands a date, wanted is a folder"),
        (
            "[[site]]\nroot = \".\"\nindex = \"a\"",
            "3:9: site[0].index: here stands a text, wanted is a list, each a name of a file, such as \"index.html\"",
        ),
        (
            "[[site]]\nroot = \".\"\nspa = true",
            "3:7: site[0].spa: here stands a truth value, wanted is a path of the site, such as \"/index.html\", or false",
        ),
        (
            "[[site]]\nroot = \".\"\nmime = []",
            "3:8: site[0].mime: here stands a list, wanted is a table by extension, such as { foo = \"text/x-foo\" }",
        ),
    ]);
}

#[test]
fn values_out_of_range() {
    all(&[
        ("[server]\nworkers = 1025", "2:11: server.workers: out of range; allowed is 0 to 1024"),
        ("[server]\nworkers = -1", "2:11: server.workers: out of range; allowed is 0 to 1024"),
        ("[server]\nhttp_port = 65536", "2:13: server.http_port: out of range; allowed is 0 to 65535"),
        ("[server]\nbacklog = 0", "2:11: server.backlog: out of range; allowed is 1 to 2147483647"),
        (
            "[performance]\nmax_connections = 99999999999999999999999",
            "2:19: performance.max_connections: out of range; allowed is 0 to 1000000000",
        ),
        (
            "[server]\ndriver = \"epol\"",
            "2:10: server.driver: \"epol\" is none of \"auto\", \"epoll\", \"uring\" or \"kqueue\"; the nearest is \"epoll\"",
        ),
        (
            "[logging]\nlevel = \"verbose\"",
            "2:9: logging.level: \"verbose\" is none of \"off\", \"error\", \"warn\", \"info\" or \"debug\"",
        ),
        (
            "[[site]]\nroot = \".\"\nsymlinks = \"beneath\"",
            "3:12: site[0].symlinks: \"beneath\" is none of \"inside\", \"never\" or \"follow\"; it is called \"inside\" now",
        ),
        (
            "[[site]]\nroot = \".\"\nsymlinks = \"deny\"",
            "3:12: site[0].symlinks: \"deny\" is none of \"inside\", \"never\" or \"follow\"; it is called \"never\" now",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 200",
            "6:10: site[0].redirect[0].status: allowed is 301, 302, 303, 307 or 308",
        ),
        (
            "[[listen]]\naddress = \"unix:/run/x\"\nmode = \"0999\"",
            "3:8: listen[0].mode: \"0999\" is none; wanted is a mode in octal, such as \"0660\"",
        ),
    ]);
}

#[test]
fn texts_that_are_not_what_they_should_be() {
    let in_site = |line: &str| format!("[[site]]\nroot = \".\"\n{line}");
    for (line, expected) in [
        (
            "hosts = [\"http://example.org\"]",
            "3:10: site[0].hosts[0]: \"http://example.org\" is a URL; wanted is the host name in it",
        ),
        (
            "hosts = [\"a.*.b\"]",
            "3:10: site[0].hosts[0]: \"a.*.b\" has a * where none may be; it stands for whole labels, in front: *.example.org",
        ),
        ("spa = \"index.html\"", "3:7: site[0].spa: \"index.html\" is no path of the site: it begins with /"),
        (
            "try_files = [\"{uri}\"]",
            "3:14: site[0].try_files[0]: \"{uri}\" has braces in it; the only thing that may stand in them is {path}, once",
        ),
        (
            "error_pages = { 200 = \"/x\" }",
            "3:17: site[0].error_pages.200: \"200\" is no status of an error: 400 to 599",
        ),
        (
            "mime = { foo = \"text\" }",
            "3:16: site[0].mime.foo: \"text\" is no media type; such as text/html or text/plain; charset=utf-8",
        ),
        (
            "headers = { set = { \"a b\" = \"\" } }",
            "3:21: site[0].headers.set.a b: \"a b\" is no name of a field: letters, digits and hyphens, without a space or colon",
        ),
        (
            "headers = { set = { A = \"x\\r\\nB: y\" } }",
            "3:25: site[0].headers.set.A: \"x\u{fffd}\u{fffd}B: y\" can't be a field's value: only printable ASCII, and no line breaks",
        ),
        (
            "headers = { remove = [\"Content-Length\"] }",
            "3:23: site[0].headers.remove[0]: \"Content-Length\" is the server's own: it says how the message is framed",
        ),
        (
            "cache_control = [ { path = \"/a/*/*\", value = \"no-cache\" } ]",
            "3:28: site[0].cache_control[0].path: \"/a/*/*\" is none of /file, /folder/*, *.extension: it begins with / or *, and has one * at most",
        ),
    ] {
        assert_eq!(said(&in_site(line)), [expected], "{line}");
    }
    all(&[
        (
            "[[listen]]\naddress = \"localhost:80\"",
            "2:11: listen[0].address: \"localhost:80\" is no address and port; wanted is such as \"127.0.0.1:8080\", \"[::]:80\" or \"unix:/run/shearwater.sock\"",
        ),
        (
            "[[listen]]\naddress = \"unix:\"",
            "2:11: listen[0].address: after unix: stands the path of a socket",
        ),
        (
            "[[site]]\nroot = \"\"",
            "2:8: site[0].root: this names no folder; the configuration's own is \".\"",
        ),
    ]);
    let long = format!("[[listen]]\naddress = \"unix:/{}\"", "x".repeat(103));
    assert_eq!(said(&long), ["2:11: listen[0].address: the whole path of a socket may have 103 bytes"]);
    right(&long.replace("/x", "/"));
}

#[test]
fn keys_that_are_missing() {
    all(&[
        (
            "[[listen]]",
            "1:1: listen[0]: `address` is missing, such as address = \"unix:/run/shearwater.sock\"",
        ),
        (
            "[[site]]",
            "1:1: site[0]: it answers nothing: give it a `root`, such as root = \"./public\", a route or a redirect",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.route]]",
            "3:1: site[0].route[0]: `path` is missing, such as path = \"/health\"",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"/a\"",
            "3:1: site[0].redirect[0]: `to` is missing, such as to = \"/new/{rest}\"",
        ),
        (
            "[[site]]\nroot = \".\"\ncache_control = [ { value = \"no-cache\" } ]",
            "3:19: site[0].cache_control[0]: to what does it apply? Say `type` or `path`; path = \"/*\" is everything",
        ),
        (
            "[[site]]\n[[site.route]]\npath = \"/a\"",
            "2:1: site[0].route[0]: neither it nor its site has a `root`, and it has no `respond`",
        ),
    ]);
}

#[test]
fn addresses_and_hosts_that_are_taken_twice() {
    all(&[
        (
            "[server]\nhttp_port = 80\n[[listen]]\naddress = \"127.0.0.1:80\"",
            "4:11: listen[0].address: server.http_port = 80 listens on all addresses already: keep one of both",
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:80\"\n[[listen]]\naddress = \"127.0.0.1:80\"",
            "4:11: listen[1].address: listen[0] listens there already (127.0.0.1:80)",
        ),
        (
            "[[listen]]\naddress = \"[::]:80\"\n[[listen]]\naddress = \"0.0.0.0:80\"",
            "4:11: listen[1].address: listen[0] listens there already ([::]:80)",
        ),
        (
            "[[listen]]\naddress = \"unix:x\"\n[[listen]]\naddress = \"unix:/etc/shearwater/x\"",
            "4:11: listen[1].address: listen[0] listens there already (unix:/etc/shearwater/x)",
        ),
        (
            "[[listen]]\naddress = \"127.0.0.1:80\"\nmode = \"0660\"",
            "3:1: listen[0].mode: only a unix: socket has a mode",
        ),
        (
            "[[site]]\nroot = \".\"\nhosts = [\"a.org\"]\n[[site]]\nroot = \".\"\nhosts = [\"b.org\", \"A.ORG.\"]",
            "6:19: site[1].hosts[1]: site[0] is for a.org already",
        ),
        (
            "[[site]]\nroot = \".\"\nhosts = [\"a\", \"a\"]",
            "3:15: site[0].hosts[1]: this stands in the list twice",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site]]\nroot = \"x\"",
            "3:1: site[1]: site[0] has no `hosts` either: only one site is for all other names",
        ),
    ]);
}

#[test]
fn keys_of_a_site_that_contradict_each_other() {
    all(&[
        (
            "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"/a/*\"\n[[site.route]]\npath = \"/a/*\"",
            "6:8: site[0].route[1].path: site[0].route[0] has /a/* already",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/c\"",
            "7:8: site[0].redirect[1].from: site[0].redirect[0] has /a already",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b/{rest}\"",
            "5:1: site[0].redirect[0].to: {rest} is what a * stands for, and `from` has none",
        ),
        (
            "[[site]]\nroot = \".\"\ntry_files = [\"=404\", \"{path}\"]",
            "3:1: site[0].try_files: a status ends the search: it stands at the end of the list",
        ),
        (
            "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"/a\"\nrespond = {}\nlisting = true",
            "6:1: site[0].route[0].listing: a route with `respond` needs no files: keep one of both",
        ),
        (
            "[[site]]\nroot = \".\"\ncache_control = [ { type = \"a/b\", path = \"/*\", value = \"x\" } ]",
            "3:35: site[0].cache_control[0].path: either `type` or `path`, not both",
        ),
        (
            "[[site]]\nroot = \".\"\nheaders = { set = { A = \"1\", a = \"2\" } }",
            "3:13: site[0].headers.set: a is set twice: case makes no difference in a field's name",
        ),
        (
            "[[site]]\nroot = \".\"\nheaders = { set = { A = \"1\" }, remove = [\"a\"] }",
            "3:32: site[0].headers.remove: a is both set and removed: what is set replaces the answer's own anyway",
        ),
        (
            "[cache]\nbytes_max = 10",
            "2:1: cache.bytes_max: one file may have 65536 bytes, but all together 10: raise bytes_max or lower file_bytes_max",
        ),
    ]);
    all(&[(
        "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"/a\"\nrespond = { body = \"x\", status = 204 }",
        "5:25: site[0].route[0].respond.status: an answer of this status has no body",
    )]);
    let both = said("[[site]]\nroot = \".\"\nspa = \"/i.html\"\ntry_files = [\"{path}\"]");
    assert!(both[0].starts_with("3:1: site[0].spa: `spa` and `try_files` both say"), "{both:?}");
}

#[test]
fn variables_that_can_not_be_put_in() {
    all(&[
        (
            "[[site]]\nroot = \"${NONE}/x\"",
            "2:8: site[0].root: the environment has no variable NONE (or it is no UTF-8); `${NONE:-otherwise}` does without",
        ),
        ("[[site]]\nroot = \"${DIR\"", "2:8: site[0].root: a `${` has no `}`; a plain `${` is written `$${`"),
    ]);
}

#[test]
fn what_a_variable_holds_is_never_told() {
    for text in [
        "[[site]]\nhosts = [\"${SECRET} x\"]\nroot = \".\"",
        "[server]\ndriver = \"${SECRET}\"",
        "[[listen]]\naddress = \"${SECRET}\"",
        "[[listen]]\naddress = \"unix:x\"\nmode = \"${SECRET}\"",
        "[[site]]\nroot = \".\"\nheaders = { set = { A = \"${SECRET} \" } }",
        "[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"${SECRET}\"",
        "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"${SECRET}\"",
        "[[site]]\nroot = \".\"\nmime = { x = \"${SECRET}\" }",
        "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"/hunter2/*\"\n[[site.route]]\npath = \"/${SECRET}/*\"",
        "[[site]]\n[[site.redirect]]\nfrom = \"/hunter2\"\nto = \"/a\"\n[[site.redirect]]\nfrom = \"/${SECRET}\"\nto = \"/a\"",
        "[[site]]\nroot = \".\"\nhosts = [\"hunter2\", \"${SECRET}\"]",
        "[[listen]]\naddress = \"unix:/${SECRET}\"\n[[listen]]\naddress = \"unix:/${SECRET}\"",
        "[[site]]\nroot = \".\"\nheaders = { set = { HUNTER2 = \"\" }, remove = [\"a\", \"${SECRET}\"] }",
    ] {
        let errors = parse(text).expect_err(text);
        // Where it was written without a variable, the line is quoted.
        let errors = errors.to_string().replace("= \"/hunter2", "").replace("[\"hunter2\",", "");
        assert!(!errors.to_string().contains("hunter2"), "{errors}");
        assert!(errors.to_string().contains("${SECRET}"), "{errors}");
    }
}

#[test]
fn what_is_no_toml() {
    for (text, line, column, what) in [
        ("a = ", 1, 5, "not valid TOML: string values must be quoted"),
        ("[server]\nworkers = 1\nworkers = 2", 3, 1, "not valid TOML: duplicate key"),
        ("[server\n", 1, 8, "not valid TOML: unclosed table"),
        ("a = \"x", 1, 7, "not valid TOML: "),
        ("\u{0}", 1, 1, "not valid TOML: "),
    ] {
        let errors = parse(text).expect_err(text);
        let first = &errors.problems[0];
        assert_eq!((first.line, first.column, first.key.as_str()), (line, column, ""), "{text:?}: {errors}");
        assert!(first.what.starts_with(what), "{text:?}: {errors}");
    }
    let several = parse("a = \nc = 1\nc = 2\n[b").expect_err("three faults");
    assert_eq!(
        several.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(),
        [1, 3, 4],
        "{several}"
    );
}

#[test]
fn everything_is_told_at_once_in_the_order_of_the_file_with_its_line() {
    let text = "[server]\nworkers = 5000\npyn = true\n\n[[site]]\nroot = \".\"\nhosts = [\"é\"]\n";
    let errors = parse(text).expect_err("three faults");
    let expected = "\
/etc/shearwater/site.toml:2:11: server.workers: out of range; allowed is 0 to 1024
  |
2 | workers = 5000
  |           ^^^^

/etc/shearwater/site.toml:3:1: server.pyn: unknown key; the nearest is `pin`
  |
3 | pyn = true
  | ^^^

/etc/shearwater/site.toml:7:10: site[0].hosts[0]: \"é\" is not in the form that clients send; wanted is its xn-- form
  |
7 | hosts = [\"é\"]
  |          ^^^
";
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn what_only_the_user_of_a_key_finds_out_has_its_place_too() {
    let config = right("[[site]]\nroot = \"none\"\n[[site.route]]\npath = \"/a\"\n");
    let errors = config.refuse("site[0].root", "there is no such folder");
    assert_eq!(
        errors.to_string(),
        "/etc/shearwater/site.toml:2:8: site[0].root: there is no such folder\n  |\n2 | root = \"none\"\n  |        ^^^^^^\n"
    );
    for (key, line) in [("site[0].route[0].root", 3), ("server.workers", 1), ("site[0].index", 1)] {
        assert_eq!(config.refuse(key, "x").problems[0].line, line, "{key}");
    }
}
