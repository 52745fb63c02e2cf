//! Request targets that try to leave a served folder: their spellings, the folder with its links, and the permitted responses.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::client::Client;
use crate::error::Error;
use crate::response::Response;

const LIST: &str = include_str!("../data/hostile_targets.txt");
const INSIDE: &[u8] = b"this file may be served\n";
/// Text of every file outside of the served folder; a listing would show it as a name.
pub const CANARY: &str = "canary-5f1d0c";

/// Permitted responses to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permitted {
    /// 400, 403, 404 or 421.
    Refused,
    /// 400 and the end of the connection: it is no request.
    Malformed,
    /// A refusal, a file inside, or a redirect inside.
    Inside,
}

/// A request target with what is permitted.
#[derive(Debug)]
pub struct HostileTarget {
    bytes: Vec<u8>,
    permitted: Permitted,
}

/// Writes `served`, and `outside` and `served-beside` with canaries; makes links inside and out.
pub fn lay_out(folder: &Path) -> io::Result<()> {
    for name in ["served/sub/deeper", "served/index-trap", "outside", "served-beside"] {
        fs::create_dir_all(folder.join(name))?;
    }
    for name in ["outside/canary.txt", "outside/index.html", "served-beside/canary.txt"] {
        fs::write(folder.join(name), CANARY)?;
    }
    fs::write(folder.join(format!("outside/{CANARY}.txt")), "")?;
    fs::write(folder.join("served/index.html"), "<!doctype html><title>inside</title>\n")?;
    fs::write(folder.join("served/ok.txt"), INSIDE)?;
    fs::write(folder.join("served/sub/page.txt"), "a page inside\n")?;
    let (outside, canary) = (folder.join("outside"), folder.join("outside/canary.txt"));
    for (target, name) in [
        (canary.as_path(), "absolute-link"),
        (outside.as_path(), "absolute-folder-link"),
        (Path::new("../outside/canary.txt"), "relative-link"),
        (Path::new("relative-link"), "chained-link"),
        (Path::new("../outside"), "folder-link"),
        (Path::new("../../outside/canary.txt"), "sub/deep-link"),
        (Path::new("../../outside"), "sub/deep-folder-link"),
        (Path::new(".."), "parent-link"),
        (Path::new("/"), "root-link"),
        (Path::new("self-loop"), "self-loop"),
        (Path::new("no-such"), "dangling"),
        (Path::new("/dev/zero"), "device-link"),
        (Path::new("/proc/self/environ"), "environment-link"),
        (canary.as_path(), "index-trap/index.html"),
        (Path::new("ok.txt"), "inside-link"),
        (Path::new("sub"), "inside-folder-link"),
    ] {
        symlink(target, folder.join("served").join(name))?;
    }
    Ok(())
}

/// Returns the targets of the list, and those that depend on the folder or are long. Panics if a line can't be parsed.
pub fn all(folder: &Path) -> Vec<HostileTarget> {
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut targets: Vec<_> = lines.map(|line| parse(line).unwrap_or_else(|| panic!("{line:?}"))).collect();
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
    let refused = |target: String| HostileTarget { bytes: target.into(), permitted: Permitted::Refused };
    targets.extend(made.map(refused));
    targets
}

/// Parses a line such as `refused /..%2f\xc0`.
fn parse(line: &str) -> Option<HostileTarget> {
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
    Some(HostileTarget { bytes, permitted })
}

impl HostileTarget {
    /// Sends a request with this target to a server of the folder `served`, and then one for a file inside. The error names the target.
    pub fn attack(&self, address: SocketAddr, method: &str) -> Result<(), String> {
        let shown: String = String::from_utf8_lossy(&self.bytes).escape_debug().take(60).collect();
        self.try_attack(address, method).map_err(|error| format!("{method} {shown}: {error}"))
    }

    fn try_attack(&self, address: SocketAddr, method: &str) -> Result<(), String> {
        let explain = |error: Error| error.to_string();
        let mut client = Client::connect(address).map_err(explain)?;
        let head = [method.as_bytes(), b" ", &self.bytes, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
        client.send(head).map_err(explain)?;
        let response = client.response_to(method).map_err(explain)?;
        if leaks(&response) {
            return Err(format!("leaks: {:?} {:?}", response.head.text(), response.text()));
        }
        let status = response.status();
        let allowed = match self.permitted {
            Permitted::Malformed => status == 400 && response.head.closes(),
            Permitted::Inside if matches!(status, 200 | 301 | 308) => true,
            _ => matches!(status, 400 | 403 | 404 | 421) || (status, method) == (405, "POST"),
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
}

/// Returns true if the response has a text from outside, or a header that the target tried to inject.
fn leaks(response: &Response) -> bool {
    let is_outside = |text: &str| text.contains(CANARY) || text.contains("root:");
    is_outside(&response.text())
        || is_outside(response.head.text())
        || response.header("x-injected").is_some()
}
