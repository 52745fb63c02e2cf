//! `shearwater check` and `shearwater config`.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::process::{Serving, Temporary, program, run};

fn check_json(folder: &Temporary, file: &str) -> (i32, Value) {
    let (code, stdout, stderr) = run(folder.path(), &["check", "--json", file]);
    assert_eq!(stderr, "");
    (code, serde_json::from_str(&stdout).expect("JSON"))
}

#[test]
fn prints_a_summary_of_a_valid_file() {
    let folder = Temporary::new();
    folder.file("conf/www/index.html", "x").file(
        "conf/site.toml",
        "[server]\nworkers = 3\n[limits]\nbuffered_bytes_max = \"1MB\"\n[[listen]]\naddress = \"127.0.0.1:81\"\n\
         [[site]]\nroot = \"www\"\n",
    );
    let root = folder.path().join("conf/www").display().to_string();
    let (code, stdout, stderr) = run(folder.path(), &["check", "conf/site.toml"]);
    let expected = format!(
        "conf/site.toml is valid. The server would use:\n  address      127.0.0.1:81\n  serves       {root}\n  workers      3\n  \
         memory       up to 1,000,000 bytes per worker for unfinished requests\n"
    );
    assert_eq!((code, stdout, stderr), (0, expected, String::new()));
    let expected = json!({
        "file": "conf/site.toml", "valid": true, "addresses": ["127.0.0.1:81"], "serves": root, "workers": 3,
        "buffered_bytes_max": 1_000_000, "errors": [], "warnings": [], "unused_siblings": [],
    });
    assert_eq!(check_json(&folder, "conf/site.toml"), (0, expected));
}

/// Missing files are warnings: they may be added while the server runs.
#[test]
fn warns_about_missing_files_and_redirect_loops() {
    const MISSING: &str = "no such file";
    const LOOPS: &str = "redirect loop";
    let folder = Temporary::new();
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
        let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml"]);
        assert!(code == 0 && stdout.starts_with("site.toml is valid."), "{lines}{stderr}");
        assert!(stderr.starts_with(&format!("warning: {what}\n --> site.toml:{place}\n")), "{lines}{stderr}");
        assert_eq!(printed_at_the_start(&folder, &["--config", "site.toml"], &stderr), stderr);
        let (code, json) = check_json(&folder, "site.toml");
        assert_eq!((code, &json["valid"]), (0, &json!(true)), "{lines}");
        assert_eq!(json["warnings"][0]["message"], what, "{lines}");
        if fixed_by == "www/docs.html" {
            // With a page of this name the folder is no longer what the path means.
            folder.file("site.toml", format!("[[site]]\nroot = \"www\"\nclean_urls = true\n{lines}"));
        }
        folder.file(fixed_by, "fixed");
        assert_eq!(run(folder.path(), &["check", "site.toml"]).2, "", "{lines}");
    }
}

/// Starts the server and returns as many lines of its standard error as `expected` has.
fn printed_at_the_start(folder: &Temporary, arguments: &[&str], expected: &str) -> String {
    let mut serving = Serving::start(folder.path(), arguments);
    expected.lines().map(|_| serving.hear()).collect()
}

#[test]
fn warns_about_a_folder_without_an_index() {
    const WHY: &str =
        "there is no index.html now, so / is not found: add one, or list the folder with `listing = true`";
    let folder = Temporary::new();
    folder.file("www/f.txt", "f").file("with/index.html", "x");
    let warned = format!("warning: {}: {WHY} in a configuration\n", folder.path().join("www").display());
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
        let (code, _, stderr) = run(folder.path(), &["check", "site.toml"]);
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
    let warned = format!("warning: {}: {WHY} in a configuration\n", folder.path().join("public").display());
    assert_eq!(run(folder.path(), &["check", "site.toml"]).2, warned);
    assert!(check_json(&folder, "site.toml").1["warnings"][0]["message"].is_string());
}

#[test]
fn reports_all_errors_at_once() {
    let folder = Temporary::new();
    folder.file("site.toml", "[server]\nwokers = 3\ndriver = \"epol\"\n");
    let (code, stdout, stderr) = run(folder.path(), &["check", "site.toml"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(
        stderr.starts_with("error: unknown key `wokers`\n --> site.toml:2:1\n  |\n2 | wokers = 3\n"),
        "{stderr}"
    );
    assert!(stderr.contains("\n\nerror: unknown value\n --> site.toml:3:10\n"), "{stderr}");
    assert!(stderr.ends_with("\n\nerror: invalid configuration site.toml: 2 errors\n"), "{stderr}");
    let (code, json) = check_json(&folder, "site.toml");
    let first = json!({
        "line": 2, "column": 1, "key": "server.wokers", "message": "unknown key `wokers`",
        "help": "a key with a similar name exists: `workers`",
    });
    assert_eq!((code, &json["valid"], &json["errors_left_out"]), (2, &json!(false), &json!(0)));
    assert_eq!((&json["errors"][0], &json["errors"][1]["line"]), (&first, &json!(3)));
}

#[test]
fn warns_about_unused_precompressed_files() {
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
        "warning: 2 precompressed files in {root} are not sent because their originals are newer, such as {root}/a.css.br\n\
         help: `shearwater precompress {root}` updates them\n"
    );
    let (code, _, stderr) = check();
    assert_eq!((code, stderr), (0, warned.clone()));
    let example = format!("{root}/a.css.br");
    let expected = json!([{ "folder": root, "count": 2, "example": example, "is_whole": true }]);
    assert_eq!(check_json(&folder, "site.toml").1["unused_siblings"], expected);
    // The server warns as well, after its start.
    let mut serving = Serving::start(folder.path(), &["www"]);
    assert_eq!(serving.hear() + &serving.hear(), warned);
    drop(serving);
    let (code, stdout, _) = run(folder.path(), &["precompress", "www"]);
    assert_eq!((code, stdout.matches(", 1 refreshed\n").count()), (0, 2), "{stdout}");
    assert_eq!(check().2, "");
}

/// Opening a named pipe blocks until someone writes to it.
#[test]
fn rejects_a_named_pipe_and_reads_one_of_the_shell() {
    let folder = Temporary::new();
    let made = Command::new("mkfifo").arg(folder.path().join("site.toml")).status();
    assert!(made.expect("mkfifo is of POSIX").success());
    let expected =
        "error: site.toml is a pipe, not a file\nhelp: name a file, or /dev/stdin to read from a pipe\n";
    for arguments in [
        &["check", "site.toml"][..],
        &["config", "show", "site.toml"],
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
    assert!(stderr.starts_with("error: unknown key `wokers`\n --> /dev/stdin:2:1\n"), "{stderr}");
}

#[test]
fn rejects_files_that_cant_be_read() {
    let folder = Temporary::new();
    folder.file("latin1.toml", b"# x\n# \xc3\xa9 \xe9\n").file("folder/x", "");
    for (file, told) in [
        (
            "none.toml",
            "no such file: none.toml\nhelp: `shearwater config default > none.toml` writes one to start with",
        ),
        ("folder", "folder is a folder\nhelp: name the configuration file in it"),
        ("latin1.toml", "file is not UTF-8\n --> latin1.toml:2:5"),
    ] {
        let expected = (2, String::new(), format!("error: {told}\n"));
        assert_eq!(run(folder.path(), &["check", file]), expected);
        assert_eq!(run(folder.path(), &["config", "show", file]), expected);
        assert_eq!(run(folder.path(), &["--config", file]), expected);
        let (code, json) = check_json(&folder, file);
        assert!(code == 2 && json["valid"] == false && json["errors"][0]["message"].is_string(), "{json}");
    }
}

#[test]
fn prints_the_default_configuration() {
    let folder = Temporary::new();
    let (code, stdout, stderr) = run(folder.path(), &["config", "default"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\n[server]\n") && stdout.contains("\nworkers = 0\n"), "{stdout}");
    folder.file("site.toml", &stdout);
    let (code, stdout, _) = run(folder.path(), &["check", "site.toml"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("127.0.0.1:8080") && stdout.contains("welcome page"), "{stdout}");
}

#[test]
fn prints_the_configuration_in_effect_without_values_of_variables() {
    let folder = Temporary::new();
    folder.file(
        "conf/site.toml",
        "[server]\nworkers = 3\ndriver = \"${SHEARWATER_DRIVER}\"\n[[site]]\nroot = \"www\"\n",
    );
    let show = &["config", "show", "conf/site.toml"];
    let output = program(folder.path(), show).env("SHEARWATER_DRIVER", "auto").output().expect("it runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && output.stderr.is_empty());
    let root = format!("\nroot = \"{}\"\n", folder.path().join("conf/www").display());
    let start = "# conf/site.toml with defaults filled in.\n\n[server]\nworkers = 3\n";
    for part in [start, "\ndriver = \"${SHEARWATER_DRIVER}\"\n", "\nbacklog = 4096\n", &root] {
        assert!(stdout.contains(part), "{part}\n{stdout}");
    }
    let (code, stdout, stderr) = run(folder.path(), show);
    assert_eq!((code, stdout.as_str()), (2, ""));
    let start = "error: environment variable `SHEARWATER_DRIVER` is not set, or not UTF-8\n --> conf/site.toml:3:10\n";
    assert!(stderr.starts_with(start), "{stderr}");
}
