//! Group `files`: every byte of many files and of a large one, and nothing outside of the root.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use testkit::random::{self, Rng};
use testkit::{Client, Error, Framing, Response, hostile_targets, request};

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

/// A larger file has a tag once it hasn't changed for seconds.
const HASHED_AT_ONCE_MAX: usize = 64 * 1024;

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

    /// Compares the responses to `GET`, `HEAD` and a condition, if the file has a tag. The group `compare` has all conditions.
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
            let comes_later = name == "etag" && self.bytes.len() > HASHED_AT_ONCE_MAX;
            if (of_get.is_none() && !comes_later) || of_get != of_head {
                return Err(format!("GET and HEAD have {name} {of_get:?} and {of_head:?}"));
            }
        }
        let Some(tag) = whole.header("etag") else { return Ok(()) };
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

/// Sends every hostile target.
pub(crate) fn traversal(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    hostile_targets::lay_out(context.folder)?;
    let mut server = context.serve(&context.folder.join("served"))?;
    let targets = hostile_targets::all(context.folder);
    let errors: Vec<String> =
        targets.iter().filter_map(|target| target.attack(server.address(), "GET").err()).collect();
    report.none(format!("{} hostile targets: wrong responses", targets.len()), &errors);
    report.stop(&mut server);
    Ok(())
}
