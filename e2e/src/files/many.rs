//! Case `many-files`: files of random sizes and odd names, with `GET`, `HEAD` and conditions.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use testkit::{Response, random};

use crate::context::{CaseContext, KeptClient, in_threads};
use crate::report::CaseReport;

const CLIENTS: u64 = 4;
const FOLDERS: u64 = 100;
/// One file in a hundred has up to 1 MiB; the others have less than 64 KiB, evenly over the powers of two.
const BIG_EVERY: u64 = 100;
const BIG_BYTES_MAX: u64 = 1 << 20;
const SMALL_POWERS: u64 = 17;

/// A served file; name, size and bytes follow from seed and number.
struct ServedFile {
    path: String,
    target: String,
    bytes: Vec<u8>,
}

impl ServedFile {
    fn new(seed: u64, number: u64) -> Self {
        let mut random = random::part(seed, number);
        let size = match number % BIG_EVERY {
            0 => random.u64(..BIG_BYTES_MAX),
            _ => {
                let power = random.u64(..SMALL_POWERS);
                random.u64(..1 << power)
            }
        };
        let name = match random.u8(..6) {
            0 => format!("with space {number}.txt"),
            1 => format!("per%cent {number}%.css"),
            2 => format!("größe-文-{number}.json"),
            3 => format!("a+b&c=d;{number}'#?.js"),
            _ => format!("plain-{number}.html"),
        };
        let path = format!("folder-{}/{name}", number % FOLDERS);
        Self {
            target: format!("/{}", encoded(&path)),
            path,
            bytes: random::bytes(&mut random, size as usize),
        }
    }
}

/// Encodes all but `/` and the unreserved characters of RFC 3986 section 2.3.
fn encoded(path: &str) -> String {
    let encode = |byte: u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(encode).collect()
}

/// Compares every file byte for byte.
pub(crate) fn many_files(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let files = context.amount.count(500, 10_000);
    for number in 0..files {
        let file = ServedFile::new(context.seed, number);
        context.write_file(&format!("public/{}", file.path), &file.bytes)?;
    }
    let mut server = context.serve(&context.folder.join("public"))?;
    let next = AtomicU64::new(0);
    let errors = in_threads(CLIENTS, |_| {
        let (mut client, mut errors) = (KeptClient::new(server.address()), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= files || errors.len() > 50 {
                return errors;
            }
            let file = ServedFile::new(context.seed, number);
            errors.extend(check(&mut client, &file).err().map(|error| format!("{}: {error}", file.target)));
        }
    });
    report.none(format!("{files} files: wrong responses to GET, HEAD and conditions"), &errors.concat());
    report.stop(&mut server);
    Ok(())
}

/// Checks `GET`, `HEAD` and every condition of RFC 9110 section 13 that applies to a whole file.
fn check(client: &mut KeptClient, file: &ServedFile) -> Result<(), String> {
    let mut expect = |method: &str, header: &str, status: u16| -> Result<Response, String> {
        let headers: Vec<&str> = header.split_terminator('\n').collect();
        let response = client.request(method, &file.target, &headers);
        let response = response.map_err(|error| format!("{method} {header}: {error}"))?;
        if response.status() != status {
            return Err(format!("{method} {header}: status {} instead of {status}", response.status()));
        }
        if method == "GET" && status == 200 && response.body != file.bytes {
            return Err(format!("{method} {header}: other bytes"));
        }
        Ok(response)
    };
    let whole = expect("GET", "", 200)?;
    let tag = whole.header("etag").ok_or("no ETag")?;
    let modified = whole.header("last-modified").ok_or("no Last-Modified")?;
    let head = expect("HEAD", "", 200)?;
    for name in ["etag", "last-modified", "content-type", "content-length"] {
        // A tag is weak until the file has been left alone for a moment.
        let value = |response: &Response| {
            response.header(name).map(|value| value.trim_start_matches("W/").to_owned())
        };
        if value(&whole) != value(&head) {
            return Err(format!("HEAD has another {name} than GET"));
        }
    }
    expect("GET", &format!("If-None-Match: {tag}"), 304)?;
    expect("HEAD", &format!("If-None-Match: \"x\", {tag}"), 304)?;
    expect("GET", "If-None-Match: *", 304)?;
    expect("GET", &format!("If-Modified-Since: {modified}"), 304)?;
    expect("GET", "If-None-Match: \"other\"", 200)?;
    expect("GET", "If-Modified-Since: Thu, 01 Jan 1970 00:00:01 GMT", 200)?;
    // A tag takes precedence over a date (RFC 9110 section 13.2.2).
    expect("GET", &format!("If-None-Match: \"other\"\nIf-Modified-Since: {modified}"), 200)?;
    Ok(())
}
