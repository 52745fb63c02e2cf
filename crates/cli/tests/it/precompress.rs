//! `shearwater precompress`: the siblings that it makes are those that are served.

use crate::folder::Temporary;
use crate::process::{Serving, run};

fn site() -> Temporary {
    let folder = Temporary::new();
    folder
        .file("site/a.css", "p { color: red }\n".repeat(200))
        .file("site/small.css", "p {}")
        .file("site/p.png", "x".repeat(4000));
    folder
}

#[test]
fn what_it_makes_is_served_to_who_accepts_it() {
    let folder = site();
    let (code, stdout, stderr) = run(folder.path(), &["precompress", "site", "--jobs", "2"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(
        lines[0],
        "site: 3 files, 1 of them smaller than 1,024 bytes and 1 of a kind that is compressed already"
    );
    for (line, name) in lines[1..].iter().zip(["br", "zstd", "gzip"]) {
        assert!(line.starts_with(&format!("  {name:<5} 1 made (3,400 bytes became ")), "{stdout}");
        assert!(line.ends_with("), 0 were there, 0 would not be smaller"), "{stdout}");
    }
    let serving = Serving::start(folder.path(), &["site"]);
    for coding in ["br", "zstd", "gzip"] {
        let field = format!("Accept-Encoding: {coding}");
        let answer = serving.connect().request("GET", "/a.css", &[&field]);
        assert_eq!((answer.status, answer.field("Content-Encoding")), (200, Some(coding)));
    }
    assert_eq!(serving.connect().request("GET", "/a.css", &[]).field("Content-Encoding"), None);
    let (code, stdout, _) = run(folder.path(), &["precompress", "site"]);
    assert_eq!(
        (code, stdout.matches(" 0 made (0 bytes became 0), 1 were there").count()),
        (0, 3),
        "{stdout}"
    );
}

#[test]
fn it_says_what_it_would_do_and_what_it_did_as_json() {
    let folder = site();
    let (code, stdout, _) = run(folder.path(), &["precompress", "site", "--dry-run", "--formats", "gzip"]);
    assert_eq!(code, 0);
    assert!(stdout.ends_with("already\n  gzip  1 would be made, 0 are there\n"), "{stdout}");
    let arguments =
        ["precompress", "site", "--json", "--formats", "gzip,br,gzip", "--level", "br=1", "--min-bytes", "4"];
    let (code, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let begins = "{\"folder\":\"site\",\"dry_run\":false,\"files\":3,\"too_small\":0,\"compressed_already\":1,\
                  \"formats\":[{\"format\":\"gzip\",\"made\":1,\"up_to_date\":0,\"refreshed\":0,\"stale\":0,\"not_smaller\":1,\"bytes_before\":3400,\"bytes_after\":";
    assert!(stdout.starts_with(begins) && stdout.contains("{\"format\":\"br\","), "{stdout}");
    assert!(stdout.ends_with("}],\"failures\":[],\"failures_left_out\":0}\n"), "{stdout}");
}

#[test]
fn what_fails_is_told_and_makes_the_exit_code() {
    let folder = site();
    folder.file("site/a.css.gz/x", "");
    let (code, stdout, stderr) = run(folder.path(), &["precompress", "site"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with("shearwater: site/a.css.gz: ") && stderr.lines().count() == 1, "{stderr}");
    assert!(stdout.ends_with("\n  1 failed\n"), "{stdout}");
    let (code, stdout, stderr) = run(folder.path(), &["precompress", "none"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("shearwater: none can't be gone through: "), "{stderr}");
}

#[test]
fn what_can_not_be_asked_for() {
    let folder = site();
    for (arguments, told) in [
        (&["--level", "br=12"][..], "shearwater: --level br=12: br has levels up to 11 here\n"),
        (
            &["--formats", "gzip", "--level", "br=1"],
            "shearwater: --level br=1 is of a format that isn't made\n",
        ),
    ] {
        let arguments = [&["precompress", "site"], arguments].concat();
        assert_eq!(run(folder.path(), &arguments), (2, String::new(), told.to_owned()));
    }
    for (arguments, told) in [
        (&["--level", "9"][..], "it is written FORMAT=N"),
        (&["--level", "lz=9"], "lz is none of br, zstd and gzip"),
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
