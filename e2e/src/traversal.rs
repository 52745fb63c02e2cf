//! Group `files`, case `traversal`: no spelling of a path and no link leads out of the root of the built program.
//!
//! The tests of `files` and `io` add special files, races and every policy on links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use testkit::{Client, Error, Program, Response};

use crate::context::CaseContext;
use crate::report::CaseReport;

const PATHS: &str = include_str!("../data/paths.txt");
const INSIDE: &[u8] = b"this file may be served\n";
/// Text of every file outside of the root; a listing would show it as a name.
const CANARY: &str = "canary-5f1d0c";

/// Permitted responses to a hostile target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permitted {
    /// 400, 403, 404 or 421.
    Refused,
    /// 400 and the end of the connection: it is no request.
    Malformed,
    /// A refusal, a file inside, or a redirect inside.
    Inside,
}

/// Parses a line such as `refused /..%2f\xc0`.
fn parse(line: &str) -> Option<(Vec<u8>, Permitted)> {
    let (word, target) = line.split_once(' ').unwrap_or((line, ""));
    let permitted = match word {
        "refused" => Permitted::Refused,
        "malformed" => Permitted::Malformed,
        "inside" => Permitted::Inside,
        _ => return None,
    };
    let mut bytes = Vec::new();
    let mut rest = target;
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        rest = match escape.strip_prefix('x') {
            Some(hex) => {
                bytes.push(u8::from_str_radix(hex.get(..2)?, 16).ok()?);
                &hex[2..]
            }
            None => {
                bytes.push(b'\\');
                escape.strip_prefix('\\')?
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some((bytes, permitted))
}

/// Returns the targets of the data file, and those that depend on the folder or are long.
fn targets(folder: &Path) -> Result<Vec<(Vec<u8>, Permitted)>> {
    let lines = PATHS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|line| parse(line).ok_or_else(|| anyhow!("data/paths.txt: {line:?}")));
    let mut targets = parsed.collect::<Result<Vec<_>>>()?;
    let canary = folder.join("outside/canary.txt").display().to_string();
    let made = [
        canary.clone(),
        format!("/{canary}"),
        format!("/{}", canary.replace('/', "%2f")),
        format!("/sub/{canary}"),
        format!("file://{canary}"),
        format!("/{}outside/canary.txt", "../".repeat(1_000)),
        format!("/{}outside/canary.txt", "sub/../../".repeat(400)),
        format!("/{}", "n".repeat(300)),
        format!("/{}", "n/".repeat(3_000)),
        format!("/{}etc/passwd", "%2e%2e/".repeat(500)),
    ];
    targets.extend(made.into_iter().map(|target| (target.into_bytes(), Permitted::Refused)));
    Ok(targets)
}

/// Writes `public`, and `outside` and `public-beside` with canaries; makes links inside and out.
fn lay_out(context: &CaseContext<'_>) -> Result<()> {
    for name in ["outside/canary.txt", "outside/index.html", "public-beside/canary.txt"] {
        context.write_file(name, CANARY.as_bytes())?;
    }
    context.write_file(&format!("outside/{CANARY}.txt"), b"")?;
    context.write_file("public/index.html", b"<!doctype html><title>inside</title>\n")?;
    context.write_file("public/ok.txt", INSIDE)?;
    context.write_file("public/sub/page.txt", b"a page inside\n")?;
    fs::create_dir(context.folder.join("public/index-trap"))?;
    let canary = context.folder.join("outside/canary.txt");
    for (target, name) in [
        (canary.as_path(), "absolute-link"),
        (Path::new("../outside/canary.txt"), "relative-link"),
        (Path::new("relative-link"), "chained-link"),
        (Path::new("../outside"), "folder-link"),
        (Path::new("../../outside/canary.txt"), "sub/deep-link"),
        (Path::new("/"), "root-link"),
        (Path::new("self-loop"), "self-loop"),
        (Path::new("no-such"), "dangling"),
        (Path::new("/dev/zero"), "device-link"),
        (Path::new("/proc/self/environ"), "environment-link"),
        (canary.as_path(), "index-trap/index.html"),
        (Path::new("ok.txt"), "inside-link"),
        (Path::new("sub"), "inside-folder-link"),
    ] {
        symlink(target, context.folder.join("public").join(name)).context("making a symbolic link")?;
    }
    Ok(())
}

/// Sends every hostile target.
pub(crate) fn traversal(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    lay_out(context)?;
    let mut server = context.serve(&context.folder.join("public"))?;
    let targets = targets(context.folder)?;
    let errors: Vec<String> = targets
        .iter()
        .filter_map(|(target, permitted)| {
            let shown: String = String::from_utf8_lossy(target).escape_debug().take(60).collect();
            attack(&server, target, *permitted).err().map(|error| format!("{shown}: {error}"))
        })
        .collect();
    report.none(format!("{} hostile targets: wrong responses", targets.len()), &errors);
    report.stop(&mut server);
    Ok(())
}

fn attack(server: &Program, target: &[u8], permitted: Permitted) -> Result<(), String> {
    let explain = |error: Error| error.to_string();
    let mut client = Client::connect(server.address()).map_err(explain)?;
    let request = [b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
    client.send(request).map_err(explain)?;
    let response = client.response().map_err(explain)?;
    if leaks(&response) {
        return Err(format!("leaks: {:?} {:?}", response.head.text(), response.text()));
    }
    let status = response.status();
    let allowed = match permitted {
        Permitted::Refused => matches!(status, 400 | 403 | 404 | 421),
        Permitted::Malformed => status == 400 && response.head.closes(),
        Permitted::Inside => matches!(status, 200 | 301 | 308 | 400 | 403 | 404 | 421),
    };
    let location = response.header("location").unwrap_or_default();
    if !allowed || location.starts_with("//") || location.starts_with("/\\") {
        return Err(format!("status {status}, location {location:?}"));
    }
    if response.head.closes() {
        return client.end().map_err(|error| format!("after Connection: close: {error}"));
    }
    match client.get("/ok.txt") {
        Ok(next) if next.status() == 200 && next.body == INSIDE => Ok(()),
        other => Err(format!("the next request: {other:?}")),
    }
}

/// Returns true if the response has the canary, or a header that the target tried to inject.
fn leaks(response: &Response) -> bool {
    response.text().contains(CANARY)
        || response.head.text().contains(CANARY)
        || response.header("x-injected").is_some()
}
