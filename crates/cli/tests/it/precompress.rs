//! `shearwater precompress`: makes files that the server sends.

use serde_json::{Value, json};

use crate::process::{Serving, Temporary, run};

fn site() -> Temporary {
    let folder = Temporary::new();
    folder
        .file("site/a.css", "p { color: red }\n".repeat(200))
        .file("site/small.css", "p {}")
        .file("site/p.png", "x".repeat(4000));
    folder
}

#[test]
fn serves_the_files_that_it_makes() {
    let folder = site();
    let (code, stdout, stderr) = run(folder.path(), &["precompress", "site", "--jobs", "2"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines[0],
        "site: 3 files, 1 skipped as smaller than 1,024 bytes, 1 skipped as already compressed"
    );
    for (line, name) in lines[1..].iter().zip(["br", "zstd", "gzip"]) {
        assert!(line.starts_with(&format!("  {name:<5} 1 made (3,400 bytes to ")), "{stdout}");
        assert!(line.ends_with("), 0 up to date, 0 not smaller"), "{stdout}");
    }
    let serving = Serving::start(folder.path(), &["site"]);
    for coding in ["br", "zstd", "gzip"] {
        let field = format!("Accept-Encoding: {coding}");
        let response = serving.connect().request("GET", "/a.css", &[&field]);
        assert_eq!((response.status, response.field("Content-Encoding")), (200, Some(coding)));
    }
    assert_eq!(serving.connect().request("GET", "/a.css", &[]).field("Content-Encoding"), None);
    let (code, stdout, _) = run(folder.path(), &["precompress", "site"]);
    assert_eq!((code, stdout.matches(" 0 made (0 bytes to 0), 1 up to date").count()), (0, 3), "{stdout}");
}

#[test]
fn prints_dry_runs_and_json() {
    let folder = site();
    let (code, stdout, _) = run(folder.path(), &["precompress", "site", "--dry-run", "--formats", "gzip"]);
    assert_eq!(code, 0);
    assert!(stdout.ends_with("already compressed\n  gzip  1 to make, 0 up to date\n"), "{stdout}");
    let arguments =
        ["precompress", "site", "--json", "--formats", "gzip,br,gzip", "--level", "br=1", "--min-bytes", "4"];
    let (code, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let summary: Value = serde_json::from_str(&stdout).expect("JSON");
    let [gzip, br] = &summary["formats"].as_array().expect("formats")[..] else { panic!("{stdout}") };
    assert!(gzip["bytes_after"].as_u64() < Some(3400), "{stdout}");
    for (object, key, value) in [
        (&summary, "folder", json!("site")),
        (&summary, "dry_run", json!(false)),
        (&summary, "files", json!(3)),
        (&summary, "too_small", json!(0)),
        (&summary, "already_compressed", json!(1)),
        (&summary, "failures", json!([])),
        (&summary, "failures_left_out", json!(0)),
        (gzip, "format", json!("gzip")),
        (gzip, "made", json!(1)),
        (gzip, "not_smaller", json!(1)),
        (gzip, "bytes_before", json!(3400)),
        (br, "format", json!("br")),
    ] {
        assert_eq!(object[key], value, "{key}: {stdout}");
    }
}

#[test]
fn reports_failures_in_the_exit_code() {
    let folder = site();
    folder.file("site/a.css.gz/x", "");
    let (code, stdout, stderr) = run(folder.path(), &["precompress", "site"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with("error: site/a.css.gz: ") && stderr.lines().count() == 1, "{stderr}");
    assert!(stdout.ends_with("\n  1 failed\n"), "{stdout}");
    let (code, stdout, stderr) = run(folder.path(), &["precompress", "none"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: can't read none: "), "{stderr}");
}

#[test]
fn rejects_invalid_options() {
    let folder = site();
    for (arguments, told) in [
        (&["--level", "br=12"][..], "error: --level br=12: the highest level of br is 11\n"),
        (
            &["--formats", "gzip", "--level", "br=1"],
            "error: --level br=1: br isn't in --formats\nhelp: add br to --formats, or remove the level\n",
        ),
    ] {
        let arguments = [&["precompress", "site"], arguments].concat();
        assert_eq!(run(folder.path(), &arguments), (2, String::new(), told.to_owned()));
    }
    for (arguments, told) in [
        (&["--level", "9"][..], "expected FORMAT=LEVEL"),
        (&["--level", "lz=9"], "unknown format lz, expected br, zstd or gzip"),
        (&["--formats", "lz"], "[possible values: br, zstd, gzip]"),
        (&["--jobs", "257"], "--jobs"),
        (&[][..0], ""),
    ] {
        let arguments = [&["precompress"], arguments].concat();
        let (code, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with("error: ") && stderr.contains(told), "{stderr}");
    }
}
