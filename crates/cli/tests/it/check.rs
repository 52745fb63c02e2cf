//! `shearwater check`: what is wrong with a configuration, or what it comes to.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::folder::Temporary;
use crate::process::{Serving, program, run};

#[test]
fn what_is_right_is_told_with_what_it_comes_to() {
    let folder = Temporary::new();
    folder.file("conf/www/index.html", "x").file(
        "conf/site.toml",
        "[server]\nworkers = 3\n[limits]\nbuffered_bytes_max = 1000000\n[[listen]]\naddress = \"127.0.0.1:81\"\n\
         [[site]]\nroot = \"www\"\n",
    );
    let root = folder.path().join("conf/www");
    let (code, stdout, stderr) = run(folder.path(), &["check", "conf/site.toml"]);
    let expected = format!(
        "conf/site.toml is right. It would\n  listen on    127.0.0.1:81\n  serve        {}\n  have workers 3\n  \
         hold         up to 1,000,000 bytes of unfinished requests in each worker\n",
        root.display()
    );
    assert_eq!((code, stdout, stderr), (0, expected, String::new()));
    let (code, stdout, stderr) = run(folder.path(), &["check", "--json", "conf/site.toml"]);
    let expected = format!(
        "{{\"file\":\"conf/site.toml\",\"right\":true,\"listen\":[\"127.0.0.1:81\"],\"serve\":\"{}\",\"workers\":3,\"buffered_bytes_max\":1000000,\"problems\":[],\"warnings\":[],\"unused_siblings\":[]}}\n",
        root.display()
    );
    assert_eq!((code, stdout, stderr), (0, expected, String::new()));
}

/// What depends on what is in the folders may be mended there later: it is told, and can be served.
#[test]
fn what_is_hardly_meant_is_a_warning() {
    const MISSING: &str = "there is no such file now: while there is none, ";
    let folder = Temporary::new();
    folder.file("www/docs/index.html", "docs").file("www/about.html", "about").file("www/index.html", "x");
    let cases = [
        ("spa = \"/app.html\"\n", "3:7: site[0].spa: ", MISSING, "www/app.html"),
        ("try_files = [\"{path}\", \"/last.html\"]\n", "3:13: site[0].try_files: ", MISSING, "www/last.html"),
        (
            "error_pages = { 404 = \"/no%74.html\" }\n",
            "3:23: site[0].error_pages.404: ",
            MISSING,
            "www/not.html",
        ),
        (
            "[[site.redirect]]\nfrom = \"/docs/\"\nto = \"/docs\"\n",
            "3:1: site[0].redirect[0]: ",
            "by what is in the folder now, its target leads back to it",
            "www/docs.html",
        ),
        (
            "clean_urls = true\n[[site.redirect]]\nfrom = \"/about\"\nto = \"/about/\"\n",
            "4:1: site[0].redirect[0]: ",
            "by what is in the folder now, its target leads back to it",
            "www/about/index.html",
        ),
    ];
    for (lines, place, what, mended_by) in cases {
        folder.file("site.toml", format!("[[site]]\nroot = \"www\"\n{lines}"));
        let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml"]);
        assert!(code == 0 && stdout.starts_with("site.toml is right."), "{lines}{stderr}");
        assert!(stderr.starts_with(&format!("site.toml:{place}{what}")), "{lines}{stderr}");
        assert!(stderr.ends_with("^\n\nshearwater: this is a warning: it can be served\n"), "{stderr}");
        assert_eq!(said_at_the_start(&folder, &["--config", "site.toml"], &stderr), stderr);
        let (code, stdout, stderr) = run(folder.path(), &["check", "--json", "site.toml"]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{lines}");
        assert!(
            stdout.contains("\"right\":true") && stdout.contains(&format!("\"what\":\"{what}")),
            "{stdout}"
        );
        if mended_by == "www/docs.html" {
            // With a page of this name the folder is no longer what the path means.
            folder.file("site.toml", format!("[[site]]\nroot = \"www\"\nclean_urls = true\n{lines}"));
        }
        folder.file(mended_by, "mended");
        assert_eq!(run(folder.path(), &["check", "site.toml"]).2, "", "{lines}");
    }
}

/// Starts the program and returns as many lines of its standard error as `expected` has.
fn said_at_the_start(folder: &Temporary, arguments: &[&str], expected: &str) -> String {
    let mut serving = Serving::start(folder.path(), arguments);
    expected.lines().map(|_| serving.hear()).collect()
}

#[test]
fn a_folder_without_an_index_is_a_warning() {
    const WHY: &str =
        "there is no index.html now, so / is not found: add one, or list the folder with `listing = true`";
    let folder = Temporary::new();
    folder.file("www/f.txt", "f").file("with/index.html", "x");
    let warned = format!("warning: {}: {WHY} in a configuration\n", folder.path().join("www").display());
    assert_eq!(said_at_the_start(&folder, &["www"], &warned), warned);
    for (lines, place) in [
        ("root = \"www\"\n", "1:1: site[0]: "),
        ("root = \"with\"\n[[site.route]]\npath = \"/\"\nroot = \"www\"\n", "3:1: site[0].route[0]: "),
        ("root = \"www\"\nlisting = true\n", ""),
        ("root = \"www\"\nspa = \"/f.txt\"\n", ""),
        ("root = \"www\"\nindex = [\"f.txt\"]\n", ""),
        ("root = \"www\"\n[[site.redirect]]\nfrom = \"/\"\nto = \"/f.txt\"\n", ""),
        ("root = \"www\"\n[[site.route]]\npath = \"/\"\nrespond = {}\n", ""),
        ("root = \"with\"\n", ""),
    ] {
        folder.file("site.toml", format!("[[site]]\n{lines}"));
        let (code, _, stderr) = run(folder.path(), &["check", "site.toml"]);
        assert_eq!(code, 0, "{lines}{stderr}");
        let expected = if place.is_empty() { String::new() } else { format!("site.toml:{place}{WHY}\n") };
        assert!(stderr.starts_with(&expected) && stderr.is_empty() == expected.is_empty(), "{lines}{stderr}");
    }
    // It is the folder beside the file where that has no site.
    folder.file("site.toml", "").file("public/f.txt", "f");
    let warned = format!("warning: {}: {WHY} in a configuration\n", folder.path().join("public").display());
    assert_eq!(run(folder.path(), &["check", "site.toml"]).2, warned);
    let (_, stdout, _) = run(folder.path(), &["check", "--json", "site.toml"]);
    assert!(stdout.contains("\"warnings\":[{\"what\":\""), "{stdout}");
}

#[test]
fn what_is_wrong_is_told_all_at_once() {
    let folder = Temporary::new();
    folder.file("site.toml", "[server]\nwokers = 3\ndriver = \"epol\"\n");
    let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(
        stderr.starts_with(
            "site.toml:2:1: server.wokers: unknown key; the nearest is `workers`\n  |\n2 | wokers = 3\n"
        ),
        "{stderr}"
    );
    assert!(stderr.contains("\nsite.toml:3:10: server.driver: \"epol\" is none of "), "{stderr}");
    assert!(stderr.ends_with("\nshearwater: site.toml has 2 problems; nothing was started\n"), "{stderr}");
    let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml", "--json"]);
    assert_eq!((code, stderr.as_str()), (2, ""));
    let first = "{\"file\":\"site.toml\",\"right\":false,\"problems\":[{\"line\":2,\"column\":1,\"key\":\"server.wokers\",\
                 \"what\":\"unknown key; the nearest is `workers`\"},{\"line\":3,";
    assert!(stdout.starts_with(first) && stdout.ends_with("],\"problems_left_out\":0}\n"), "{stdout}");
}

/// Nothing else shows them: pages are larger, that is all.
#[test]
fn siblings_that_are_not_sent_are_counted() {
    let folder = Temporary::new();
    folder.file("www/a.css", "p { color: red }\n".repeat(200)).file("other/a.css", "old");
    folder.file("www/index.html", "x");
    folder.file(
        "site.toml",
        "[[site]]\nroot = \"www\"\n[[site.route]]\npath = \"/a/*\"\nroot = \"www\"\nprecompressed = [\"gzip\"]\n\
         [[site.route]]\npath = \"/b/*\"\nroot = \"other\"\n",
    );
    let root = folder.path().join("www").display().to_string();
    let check = || run(folder.path(), &["check", "site.toml"]);
    assert_eq!(run(folder.path(), &["precompress", "www"]).0, 0);
    assert_eq!(check().2, "");
    // Older than its file now.
    for name in ["www/a.css.br", "www/a.css.gz"] {
        folder.modified(name, 1_000_000_000);
    }
    let warned = format!(
        "warning: 2 compressed siblings in {root} are not sent, such as {root}/a.css.br: \
         their files were changed, or copied there, after them\n\
         help: `shearwater precompress {root}` compares them with their files and makes them current\n"
    );
    let (code, _, stderr) = check();
    assert_eq!((code, stderr), (0, warned.clone()));
    let (_, stdout, stderr) = run(folder.path(), &["check", "--json", "site.toml"]);
    let expected = format!(
        "\"unused_siblings\":[{{\"folder\":\"{root}\",\"count\":2,\"example\":\"{root}/a.css.br\",\"is_whole\":true}}]"
    );
    assert!(stderr.is_empty() && stdout.contains(&expected), "{stdout}");
    // The server warns too, after its start.
    let mut serving = Serving::start(folder.path(), &["www"]);
    assert_eq!(serving.hear() + &serving.hear(), warned);
    drop(serving);
    let (code, stdout, _) = run(folder.path(), &["precompress", "www"]);
    assert_eq!((code, stdout.matches(", 1 refreshed\n").count()), (0, 2), "{stdout}");
    assert_eq!(check().2, "");
}

/// To open it would wait for somebody who writes.
/// Opening a named pipe waits for a writer.
#[test]
fn a_pipe_with_a_name_is_refused_and_one_of_the_shell_is_read() {
    let folder = Temporary::new();
    let made = Command::new("mkfifo").arg(folder.path().join("site.toml")).status();
    assert!(made.expect("mkfifo is of POSIX").success());
    let expected = "error: site.toml is a pipe, not a file\nhelp: name a file, or /dev/stdin with the configuration piped in\n";
    for arguments in [
        &["check", "site.toml"][..],
        &["config", "--print-effective", "site.toml"],
        &["--config", "site.toml"],
        &["site.toml"],
    ] {
        assert_eq!(run(folder.path(), arguments), (2, String::new(), expected.to_owned()), "{arguments:?}");
    }
    let mut child =
        program(folder.path(), &["check", "/dev/stdin"]).stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"[server]\nwokers = 1\n").expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(stderr.starts_with("/dev/stdin:2:1: server.wokers: unknown key"), "{stderr}");
}

#[test]
fn files_that_can_not_be_read() {
    let folder = Temporary::new();
    folder.file("latin1.toml", b"# x\n# \xc3\xa9 \xe9\n").file("folder/x", "");
    for (file, told) in [
        (
            "none.toml",
            "there is no file none.toml: `shearwater config --print-default` prints one to begin with",
        ),
        ("folder", "folder is a folder: name the configuration file in it"),
        ("latin1.toml", "latin1.toml:2:5: this is no text in UTF-8"),
    ] {
        let expected = (2, String::new(), format!("shearwater: {told}\n"));
        assert_eq!(run(folder.path(), &["check", file]), expected);
        assert_eq!(run(folder.path(), &["config", "--print-effective", file]), expected);
        assert_eq!(run(folder.path(), &["--config", file]), expected);
        let (code, stdout, _) = run(folder.path(), &["check", "--json", file]);
        assert_eq!(code, 2);
        assert!(stdout.contains("\"right\":false,\"problems\":[{\"what\":\""), "{stdout}");
    }
}
