//! Third-party clients: curl and Python's `http.client` against a configured site on each driver. Missing programs are skipped.

use std::process::{Command, Output};

use crate::process::{Serving, Temporary, drivers, just, run};

const CONFIG: &str = "\
[server]
workers = 2

[[site]]
root = \"www\"
listing = true
error_pages = { 404 = \"/404.html\" }

[[site.redirect]]
from = \"/old/*\"
to = \"/new/{rest}\"

[[site.redirect]]
from = \"/moved\"
to = \"/f.txt\"
";

/// Serves the site on each driver in turn.
fn on_each_driver(check: impl Fn(&Temporary, &Serving)) {
    let folder = Temporary::new();
    folder.file("site.toml", CONFIG).file("www/404.html", "not here").file("www/f.txt", "content");
    folder.file("www/data.txt", "0123456789").file("www/data.txt.gz", "gzipped");
    folder.file("www/coded.txt", "plain").file("www/coded.txt.gz", CODED_GZIP);
    folder.file("www/large.bin", (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    for number in 0..300 {
        folder.file(&format!("www/many/{number:03}.txt"), "x");
    }
    for driver in drivers() {
        let arguments = ["--config", "site.toml", "--driver", driver, "--listen", "127.0.0.1:0"];
        check(&folder, &Serving::of(&mut just(folder.path(), &arguments)));
    }
}

/// The text "coded" in gzip format, as long as the original file.
const CODED_GZIP: [u8; 28] = [
    0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 5, 0, 0xfa, 0xff, 0x63, 0x6f, 0x64, 0x65, 0x64, 0x8a, 0x44, 0x7e,
    0x66, 5, 0, 0, 0,
];

/// Returns whether a program is installed.
fn is_there(program: &str) -> bool {
    let is_there =
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: there is no {program}");
    }
    is_there
}

#[test]
fn python() {
    if !is_there("python3") {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clients/http_client.py");
    on_each_driver(|_, serving| {
        let port = serving.address().port().to_string();
        let output = Command::new("python3").args([script, &port]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(said.trim_end(), "38 checks");
    });
}

/// Runs curl in `folder`. Returns its output and the last status.
fn curl(folder: &Temporary, serving: &Serving, arguments: &[&str], target: &str) -> (Vec<u8>, String) {
    let url = format!("http://{}{target}", serving.address());
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "20", "--write-out", "%{stderr}%{http_code}"]);
    let Output { status, stdout, stderr } =
        command.args(arguments).arg(url).current_dir(folder.path()).output().expect("curl");
    let said = String::from_utf8(stderr).expect("text");
    assert!(status.success(), "{arguments:?} {target}: {said}");
    (stdout, said)
}

#[test]
fn curl_requests() {
    if !is_there("curl") {
        return;
    }
    on_each_driver(|folder, serving| {
        let asks = |arguments: &[&str], target: &str| {
            let (body, status) = curl(folder, serving, arguments, target);
            (String::from_utf8(body).expect("text"), status)
        };
        let expect = |body: &str, status: &str| (body.to_owned(), status.to_owned());
        assert_eq!(asks(&[], "/f.txt"), expect("content", "200"));
        assert_eq!(asks(&["--range", "1-3"], "/f.txt"), expect("ont", "206"));
        assert_eq!(asks(&["--location"], "/moved"), expect("content", "200"));
        assert_eq!(asks(&["--data", "x=y"], "/f.txt").1, "405");
        assert_eq!(asks(&[], "/none"), expect("not here", "404"));
        assert_eq!(asks(&["--compressed"], "/coded.txt"), expect("coded", "200"));
        assert_eq!(asks(&["--path-as-is"], "/many/../../f.txt").1, "400");
        assert!(asks(&["--head"], "/f.txt").0.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(asks(&["--header", "Accept: application/json"], "/many/").0.starts_with('{'));
        // Conditional requests with saved validators.
        assert_eq!(asks(&["--etag-save", "etag"], "/f.txt"), expect("content", "200"));
        assert_eq!(asks(&["--etag-compare", "etag"], "/f.txt"), expect("", "304"));
        assert_eq!(asks(&["--time-cond", "www/f.txt"], "/f.txt").1, "304");
    });
}

#[test]
fn curl_resumes() {
    if !is_there("curl") {
        return;
    }
    on_each_driver(|folder, serving| {
        let whole = std::fs::read(folder.path().join("www/large.bin")).expect("it was written");
        folder.file("part.bin", &whole[..1_234_567]);
        let (_, status) =
            curl(folder, serving, &["--continue-at", "-", "--output", "part.bin"], "/large.bin");
        assert_eq!(status, "206");
        assert!(std::fs::read(folder.path().join("part.bin")).expect("it is there") == whole);
    });
}

#[test]
fn curl_unpacks() {
    if !is_there("curl") {
        return;
    }
    on_each_driver(|folder, serving| {
        let text = "All that is said once is said again. ".repeat(1000);
        folder.file("www/packed/long.txt", &text);
        let (code, _, stderr) = run(folder.path(), &["precompress", "www/packed"]);
        assert_eq!(code, 0, "{stderr}");
        let sent = |arguments: &[&str]| curl(folder, serving, arguments, "/packed/long.txt").0;
        assert!(sent(&["--compressed"]) == text.as_bytes());
        assert!(sent(&["--header", "Accept-Encoding: gzip"]).len() < text.len() / 10);
        assert!(sent(&[]) == text.as_bytes());
    });
}
