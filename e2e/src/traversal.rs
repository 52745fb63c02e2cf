//! Group `files`, cases `traversal` and `race`: no spelling of a path, no link and no race leads out of the root.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use testkit::{Client, Error, Program, Response};

use crate::context::{CaseContext, KeptClient};
use crate::report::CaseReport;

const PATHS: &str = include_str!("../data/paths.txt");
const INSIDE: &[u8] = b"this file may be served\n";
/// Text of every file outside of the root; a listing would show it as a name.
const CANARY: &str = "canary-5f1d0c";
/// A pipe must not delay anybody.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

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

/// Writes `public`, `outside` and `public-beside`. Returns the special files that could not be made.
fn lay_out(context: &CaseContext<'_>) -> Result<Vec<&'static str>> {
    let canary = context.folder.join("outside/canary.txt");
    for name in ["outside/canary.txt", "outside/index.html", "public-beside/canary.txt"] {
        context.write_file(name, CANARY.as_bytes())?;
    }
    context.write_file(&format!("outside/{CANARY}.txt"), b"")?;
    context.write_file("public/index.html", b"<!doctype html><title>inside</title>\n")?;
    context.write_file("public/ok.txt", INSIDE)?;
    context.write_file("public/sub/page.txt", b"a page inside\n")?;
    let root = context.folder.join("public");
    fs::create_dir(root.join("index-trap"))?;
    let links: [(&Path, &str); 15] = [
        (&canary, "absolute-link"),
        (Path::new("../outside/canary.txt"), "relative-link"),
        (Path::new("relative-link"), "chained-link"),
        (Path::new("../outside"), "folder-link"),
        (Path::new("../../outside/canary.txt"), "sub/deep-link"),
        (Path::new("/"), "root-link"),
        (Path::new("loop-b"), "loop-a"),
        (Path::new("loop-a"), "loop-b"),
        (Path::new("self-loop"), "self-loop"),
        (Path::new("no-such"), "dangling"),
        (Path::new("/dev/zero"), "device-link"),
        (Path::new("/proc/self/environ"), "environment-link"),
        (&canary, "index-trap/index.html"),
        (Path::new("ok.txt"), "inside-link"),
        (Path::new("sub"), "inside-folder-link"),
    ];
    for (target, name) in links {
        symlink(target, root.join(name)).context("making a symbolic link")?;
    }
    let make = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(&root).args(arguments).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let made = [
        ("pipe", make("mkfifo", &["pipe"])),
        ("device", make("mknod", &["device", "c", "1", "5"])),
        ("socket", UnixListener::bind(root.join("socket")).is_ok()),
    ];
    Ok(made.into_iter().filter(|(_, done)| !done).map(|(name, _)| name).collect())
}

/// Sends every hostile target.
pub(crate) fn traversal(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let missing = lay_out(context)?;
    let mut server = context.serve(&context.folder.join("public"))?;
    if !missing.is_empty() {
        report.note("special files that can't be made here", missing.join(", "));
    }
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
    let started = Instant::now();
    let explain = |error: Error| error.to_string();
    let mut client = Client::connect(server.address()).map_err(explain)?;
    let request = [b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
    client.send(request).map_err(explain)?;
    let response = client.response().map_err(explain)?;
    if leaks(&response) {
        return Err(format!("leaks: {:?} {:?}", response.head.text(), response.text()));
    }
    if started.elapsed() > RESPONSE_TIMEOUT {
        return Err(format!("took {:?}", started.elapsed()));
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

/// Swaps a folder with a link that leads out, over and over, while its file is requested.
pub(crate) fn race(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    context.write_file("outside/canary.txt", CANARY.as_bytes())?;
    context.write_file("public/swap/canary.txt", INSIDE)?;
    let root = context.folder.join("public");
    symlink("../outside", root.join("swap-link")).context("making a symbolic link")?;
    let mut server = context.serve(&root)?;
    let stop = AtomicBool::new(false);
    let deadline = Instant::now() + context.amount.seconds(2, 5);
    let (mut served, mut errors) = (0_u64, Vec::new());
    let swaps = thread::scope(|scope| {
        let swaps = scope.spawn(|| swap_until(&root, &stop));
        let mut client = KeptClient::new(server.address());
        while Instant::now() < deadline && errors.len() < 100 {
            match client.request("GET", "/swap/canary.txt", &[]) {
                Ok(response) if leaks(&response) => errors.push("the canary leaked".to_owned()),
                Ok(response) if response.status() == 200 && response.body == INSIDE => served += 1,
                Ok(response) if matches!(response.status(), 403 | 404) => {}
                Ok(response) => errors.push(format!("status {}", response.status())),
                Err(error) => errors.push(error.to_string()),
            }
        }
        stop.store(true, Ordering::Relaxed);
        swaps.join().unwrap_or_else(|_| Err(std::io::Error::other("the swapping thread panicked")))
    })?;
    // Otherwise nothing raced.
    report.check("swaps", swaps, "> 0", swaps > 0);
    report.check("responses with the file", served, "> 0", served > 0);
    report.none("wrong responses", &errors);
    report.stop(&mut server);
    Ok(())
}

fn swap_until(root: &Path, stop: &AtomicBool) -> std::io::Result<u64> {
    let rename = |from: &str, to: &str| fs::rename(root.join(from), root.join(to));
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        rename("swap", "swap-spare")?;
        rename("swap-link", "swap")?;
        rename("swap", "swap-link")?;
        rename("swap-spare", "swap")?;
        swaps += 1;
    }
    Ok(swaps)
}
