//! What is asked for: files small and large, ranges, `304`, `404`, other methods; bodies whole and in chunks.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::exchange::{Draft, Exchange};
use crate::harness::client::{Client, request};
use crate::harness::folder::Folder;
use crate::harness::random::Random;
use crate::harness::trouble::{During, Outcome};

/// The served files that are kept in memory: name and size, bytes.
const SMALL: [(&str, usize); 6] = [
    ("empty.bin", 0),
    ("one.txt", 1),
    ("hundred.txt", 100),
    ("page.html", 1_024),
    ("style.css", 5_000),
    ("picture.png", 16_384),
];
/// Files that are sent from where they lie.
const MEDIUM: [(&str, usize); 2] = [("photo.jpg", 100_000), ("song.ogg", 1_000_000)];
/// A file that no socket buffer swallows whole.
const LARGE: (&str, usize) = ("large.bin", 4 * 1024 * 1024);
/// How long ago the files were changed.
const AGE: Duration = Duration::from_secs(60);
/// Ranges of the small and the medium files, as in the request.
const RANGES: [&str; 4] = ["0-99", "500-", "-200", "7-7"];
/// Answers up to this length may be asked for by the dozen, bytes.
const SHORT_BYTES_MAX: usize = 20_000;
/// Bodies that come back, bytes.
const BODIES: [usize; 6] = [0, 1, 100, 1_000, 10_000, 60_000];
/// A chunk of a body has at most so many bytes.
const CHUNK_BYTES_MAX: u64 = 20_000;

/// Everything that may be asked for.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// Short answers of the program: any number of them on one connection.
    pub(super) short: Vec<Exchange>,
    /// Longer answers of the program.
    pub(super) medium: Vec<Exchange>,
    /// The longest answer.
    pub(super) large: Exchange,
    /// Requests with bodies, for the example.
    pub(super) posts: Vec<Exchange>,
}

/// Writes the files to serve below `public` and gives what is in them, in the order of the tables above.
pub(super) fn write_files(folder: &Folder, random: &mut Random) -> Outcome<Vec<(&'static str, Vec<u8>)>> {
    let mut files = Vec::new();
    for (name, size) in SMALL.into_iter().chain(MEDIUM).chain([LARGE]) {
        let bytes = random.bytes(size);
        let path = folder.write(&format!("public/{name}"), &bytes)?;
        age(&path).during("setting the time of a file to serve")?;
        files.push((name, bytes));
    }
    folder.write("public/sub/index.html", b"<!doctype html><title>sub</title>\n")?;
    Ok(files)
}

/// Makes a file old enough for a strong entity tag, which doesn't change while it is served.
fn age(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.set_modified(SystemTime::now() - AGE)
}

impl Catalogue {
    /// Asks both servers once for everything.
    pub(super) fn learn(
        program: SocketAddr,
        example: SocketAddr,
        files: &[(&'static str, Vec<u8>)],
        random: &mut Random,
    ) -> Outcome<Self> {
        let (small, rest) = files.split_at(SMALL.len());
        let (medium, large) = rest.split_at(MEDIUM.len());
        let large = large.first().ok_or("no large file was written")?;
        let mut short = other_requests();
        for (name, bytes) in small {
            let etag = etag(program, name)?;
            short.extend(of_small_file(name, bytes, &etag));
        }
        let mut long = Vec::new();
        for (name, bytes) in medium {
            long.push(Draft::new(&format!("GET /{name}"), 200, bytes));
            let all = ranges(name, bytes).into_iter();
            let (few, many): (Vec<_>, Vec<_>) = all.partition(|draft| draft.answer.len() <= SHORT_BYTES_MAX);
            short.extend(few);
            long.extend(many);
        }
        Ok(Self {
            short: learn_all(program, &short)?,
            medium: learn_all(program, &long)?,
            large: Draft::new(&format!("GET /{}", large.0), 200, &large.1).learn(program)?,
            posts: learn_all(example, &posts(random))?,
        })
    }

    /// How many requests, each on a connection of its own, were sent to learn it: both forms of each, and the files' ETags.
    pub(super) fn learnt(&self) -> u64 {
        let exchanges = self.short.len() + self.medium.len() + 1 + self.posts.len();
        (2 * exchanges + SMALL.len()) as u64
    }
}

fn learn_all(server: SocketAddr, drafts: &[Draft]) -> Outcome<Vec<Exchange>> {
    drafts.iter().map(|draft| draft.learn(server)).collect()
}

fn etag(program: SocketAddr, name: &str) -> Outcome<String> {
    let ask = || Client::open(program)?.exchange(&request("GET", &format!("/{name}")), false);
    let answer = ask().during("asking for an ETag")?;
    Ok(answer.head.field("etag").ok_or("a file without an ETag")?.to_owned())
}

fn of_small_file(name: &str, bytes: &[u8], etag: &str) -> Vec<Draft> {
    let get = format!("GET /{name}");
    let length = || vec![("content-length", bytes.len().to_string())];
    let mut drafts = vec![
        Draft { has: length(), ..Draft::new(&get, 200, bytes) },
        Draft { has: length(), ..Draft::new(&format!("GET /{name}?query=1"), 200, bytes) },
        Draft { has: length(), ..Draft::new(&format!("HEAD /{name}"), 200, b"") },
        Draft { fields: format!("If-None-Match: {etag}\r\n"), ..Draft::new(&get, 304, b"") },
        Draft { fields: "If-None-Match: \"other\"\r\n".to_owned(), ..Draft::new(&get, 200, bytes) },
    ];
    drafts.extend(ranges(name, bytes));
    drafts
}

/// Every range that the file has, and one that it hasn't (RFC 9110 section 14).
fn ranges(name: &str, bytes: &[u8]) -> Vec<Draft> {
    let get = format!("GET /{name}");
    let length = bytes.len();
    let mut drafts = Vec::new();
    for range in RANGES {
        let fields = format!("Range: bytes={range}\r\n");
        let Some((first, last)) = bounds(range, length) else { continue };
        let said = format!("bytes {first}-{last}/{length}");
        let has = vec![("content-range", said)];
        drafts.push(Draft { fields, has, ..Draft::new(&get, 206, &bytes[first..=last]) });
    }
    drafts
}

/// First and last byte of a range in a file of `length` bytes, or `None` if it has none of them.
fn bounds(range: &str, length: usize) -> Option<(usize, usize)> {
    let (first, last) = range.split_once('-')?;
    let end = length.checked_sub(1)?;
    let bounds = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => (first, last.min(end)),
        (Ok(first), Err(_)) => (first, end),
        (Err(_), Ok(suffix)) => (length.saturating_sub(suffix), end),
        (Err(_), Err(_)) => return None,
    };
    (bounds.0 <= end).then_some(bounds)
}

/// What is no file, and no `GET`.
fn other_requests() -> Vec<Draft> {
    let missing = b"Not Found\n";
    vec![
        Draft::new("GET /missing.html", 404, missing),
        Draft::new("GET /sub/missing/deep", 404, missing),
        Draft::new("HEAD /missing.html", 404, b""),
        Draft::new("GET /sub/", 200, b"<!doctype html><title>sub</title>\n"),
        Draft::new("OPTIONS /one.txt", 204, b""),
        Draft {
            fields: "Content-Length: 5\r\n".to_owned(),
            body: b"hello".to_vec(),
            ..Draft::new("POST /one.txt", 405, b"Method Not Allowed\n")
        },
    ]
}

fn posts(random: &mut Random) -> Vec<Draft> {
    let mut drafts =
        vec![Draft::new("GET /", 200, b"Hello, world\n"), Draft::new("POST /count", 200, b"POST")];
    for size in BODIES {
        let bytes = random.bytes(size);
        let length = format!("Content-Length: {size}\r\n");
        let chunked = "Transfer-Encoding: chunked\r\n".to_owned();
        for (fields, body) in [(length, bytes.clone()), (chunked, in_chunks(&bytes, random))] {
            // Kept and sent back; and thrown away as it arrives.
            drafts.push(Draft {
                fields: fields.clone(),
                body: body.clone(),
                ..Draft::new("POST /echo", 200, &bytes)
            });
            drafts.push(Draft {
                fields: fields.clone(),
                body: body.clone(),
                ..Draft::new("POST /count", 200, b"POST")
            });
            drafts.push(Draft { fields, body, ..Draft::new("POST /none", 404, b"Not Found\n") });
        }
    }
    drafts
}

/// A body in chunks of random lengths (RFC 9112 section 7.1).
fn in_chunks(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = 1 + random.below(CHUNK_BYTES_MAX.min(rest.len() as u64)) as usize;
        wire.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        wire.extend_from_slice(&rest[..length]);
        wire.extend_from_slice(b"\r\n");
        rest = &rest[length..];
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    wire
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn ranges_are_those_of_the_file() {
        assert_eq!(bounds("0-99", 100), Some((0, 99)));
        assert_eq!(bounds("0-99", 1), Some((0, 0)));
        assert_eq!(bounds("500-", 1_024), Some((500, 1_023)));
        assert_eq!(bounds("500-", 500), None);
        assert_eq!(bounds("-200", 100), Some((0, 99)));
        assert_eq!(bounds("7-7", 7), None);
        assert_eq!(bounds("0-99", 0), None);
    }
}
