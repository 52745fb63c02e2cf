//! Group `files`: every byte of many files and of a large one, and nothing outside of the root.

use std::fs;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, anyhow};
use testkit::random::{self, Rng};
use testkit::{Client, Error, Framing, Program, Response, request};

use crate::context::{CaseContext, KeptClient, in_threads};
use crate::report::CaseReport;
use crate::usage::Usage;

const CLIENTS: u64 = 4;
const FOLDERS: u64 = 100;
/// One file in a hundred has up to 1 MiB; the others have less than 64 KiB, evenly over the powers of two.
const BIG_EVERY: u64 = 100;
const BIG_BYTES_MAX: u64 = 1 << 20;
const SMALL_POWERS: u64 = 17;
/// Length of the large file: a signed 32-bit number can't hold it.
const LARGE_BYTES: u64 = (2 << 30) + 4_097;
/// Length of a block of known random bytes in it; the rest is zeros.
const BLOCK_BYTES: u64 = 4096;
const RANDOM_BLOCKS: usize = 16;
/// Growth of resident memory while it is downloaded, KiB.
const GROWTH_MAX_KIB: f64 = 16.0 * 1024.0;

/// A served file; name, size and bytes follow from seed and number.
struct ServedFile {
    path: String,
    target: String,
    bytes: Vec<u8>,
}

impl ServedFile {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = random::part(seed, number);
        let power = random.u64(..SMALL_POWERS);
        let size = random.u64(..if number.is_multiple_of(BIG_EVERY) { BIG_BYTES_MAX } else { 1 << power });
        let name = match random.u8(..6) {
            0 => format!("with space {number}.txt"),
            1 => format!("per%cent {number}%.css"),
            2 => format!("größe-文-{number}.json"),
            3 => format!("a+b&c=d;{number}'#?.js"),
            _ => format!("plain-{number}.html"),
        };
        let path = format!("folder-{}/{name}", number % FOLDERS);
        // All but `/` and the unreserved characters of RFC 3986 section 2.3.
        let encode = |byte: u8| match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        };
        let target = format!("/{}", path.bytes().map(encode).collect::<String>());
        Self { path, target, bytes: random::bytes(&mut random, size as usize) }
    }

    /// Compares the responses to `GET`, `HEAD` and a condition. The group `compare` has all conditions.
    fn check(&self, client: &mut KeptClient) -> Result<(), String> {
        let mut expect = |method: &str, headers: &[&str], status: u16| -> Result<Response, String> {
            let response = client.request(method, &self.target, headers);
            let response = response.map_err(|error| format!("{method} {headers:?}: {error}"))?;
            let has_body = (method, status) == ("GET", 200);
            let is_right = response.status() == status && (!has_body || response.body == self.bytes);
            if is_right {
                Ok(response)
            } else {
                Err(format!("{method} {headers:?}: {:?}", response.head.text()))
            }
        };
        let (whole, head) = (expect("GET", &[], 200)?, expect("HEAD", &[], 200)?);
        for name in ["etag", "last-modified", "content-type", "content-length"] {
            // A tag is weak until the file has been left alone for a moment.
            let [of_get, of_head] = [&whole, &head]
                .map(|response| response.header(name).map(|value| value.trim_start_matches("W/")));
            if of_get.is_none() || of_get != of_head {
                return Err(format!("GET and HEAD have {name} {of_get:?} and {of_head:?}"));
            }
        }
        let tag = whole.header("etag").unwrap_or_default();
        expect("GET", &[&format!("If-None-Match: \"x\", {tag}")], 304).map(drop)
    }
}

/// Compares every file byte for byte.
pub(crate) fn many_files(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let files = context.count(500, 10_000);
    for number in 0..files {
        let file = ServedFile::new(context.args.seed, number);
        context.write_file(&format!("public/{}", file.path), &file.bytes)?;
    }
    let mut server = context.serve(&context.folder.join("public"))?;
    let next = AtomicU64::new(0);
    let errors = in_threads(CLIENTS, |_| {
        let (mut client, mut errors) = (KeptClient::new(server.address()), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= files {
                return errors;
            }
            let file = ServedFile::new(context.args.seed, number);
            errors.extend(file.check(&mut client).err().map(|error| format!("{}: {error}", file.target)));
        }
    });
    report.none(format!("{files} files: wrong responses to GET, HEAD and a condition"), &errors.concat());
    report.stop(&mut server);
    Ok(())
}

/// Blocks of known bytes in a sparse file, with their offsets.
struct SparseBlocks(Vec<(u64, Vec<u8>)>);

impl SparseBlocks {
    /// Places blocks at the start, across 2^31, at random and at the end.
    fn new(random: &mut Rng) -> Self {
        let last = LARGE_BYTES - BLOCK_BYTES;
        let mut starts = vec![0, (1 << 31) - BLOCK_BYTES / 2, last];
        starts.extend((0..RANDOM_BLOCKS).map(|_| random.u64(..last)));
        starts.sort_unstable();
        starts.dedup_by(|next, before| *next < *before + BLOCK_BYTES);
        Self(starts.into_iter().map(|start| (start, random::bytes(random, BLOCK_BYTES as usize))).collect())
    }

    /// Returns true if the file has these bytes at `offset`.
    fn matches(&self, offset: u64, found: &[u8]) -> bool {
        let mut expected = vec![0; found.len()];
        for (start, block) in &self.0 {
            let from = offset.max(*start);
            let to = (offset + found.len() as u64).min(start + BLOCK_BYTES);
            if from < to {
                let known = &block[(from - start) as usize..(to - start) as usize];
                expected[(from - offset) as usize..(to - offset) as usize].copy_from_slice(known);
            }
        }
        expected == found
    }

    /// Downloads the file. Returns the number of bytes, all of them compared.
    fn download(&self, client: &mut Client) -> Result<u64, Error> {
        client.send(request("GET", "/large.bin", &[]))?;
        let head = client.head("GET")?;
        if head.status != 200 || head.framing("GET") != Framing::Length(LARGE_BYTES) {
            return Err(Error::Malformed(head.text().to_owned()));
        }
        let (mut read, mut same) = (0, true);
        while same {
            match client.data(usize::MAX, &mut |data| same = self.matches(read, data))? {
                0 => return Ok(read),
                length => read += length as u64,
            }
        }
        Err(Error::Malformed(format!("other bytes before offset {read}")))
    }
}

/// Downloads a sparse file beyond 2 GiB and compares every byte.
pub(crate) fn large_file(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let blocks = SparseBlocks::new(&mut context.random(0));
    let path = context.write_file("public/large.bin", b"")?;
    let file = File::options().write(true).open(path)?;
    file.set_len(LARGE_BYTES)?;
    blocks.0.iter().try_for_each(|(start, bytes)| file.write_all_at(bytes, *start))?;
    let mut server = context.serve(&context.folder.join("public"))?;
    let before = Usage::of(&server);
    let mut client = Client::connect(server.address())?;
    report.equal("bytes compared", blocks.download(&mut client)?, LARGE_BYTES);
    // The next response begins right where the body ends.
    report.equal("status of the next response", client.request("HEAD", "/large.bin", &[])?.status(), 200);
    let after = Usage::of(&server);
    report.growth("resident, growth", before.rss_kib, after.rss_kib, GROWTH_MAX_KIB, "KiB");
    drop(client);
    report.stop(&mut server);
    Ok(())
}

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
