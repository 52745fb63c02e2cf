//! The files of `many-files`, made from the seed, and everything that is asked about one of them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::harness::answer::{Fault, opaque};
use crate::harness::client::{Answer, Client, request_with};
use crate::harness::random::Random;

/// One served file; its name, size and bytes follow from the seed and its number.
#[derive(Debug)]
pub(super) struct SiteFile {
    /// Where it lies below the root.
    pub(super) path: String,
    /// The request target that names it.
    pub(super) target: String,
    seed: u64,
    number: u64,
    size: usize,
}

/// Folders the files are spread over.
const FOLDERS: u64 = 100;
/// Most files are smaller than 2^16 bytes, evenly over the powers of two; one in a hundred goes up to 1 MiB.
const SMALL_POWERS: u64 = 17;
const BIG_EACH: u64 = 100;
const BIG_MAX: u64 = 1 << 20;
/// How long to wait before looking again for a change.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl SiteFile {
    /// The file with this number.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::stream(seed, number);
        let size = if random.below(BIG_EACH) == 0 {
            random.below(BIG_MAX)
        } else {
            let power = random.below(SMALL_POWERS);
            random.below(1 << power)
        };
        let name = match random.below(6) {
            0 => format!("with space {number}.txt"),
            1 => format!("per%cent {number}%.css"),
            2 => format!("größe-文-{number}.json"),
            3 => format!("a+b&c=d;{number}'#?.js"),
            _ => format!("plain-{number}.html"),
        };
        let path = format!("folder-{}/{name}", number % FOLDERS);
        let target = format!("/{}", percent_encoded(&path));
        Self { path, target, seed, number, size: size as usize }
    }

    /// Its bytes; another version differs in its bytes, not in its length.
    pub(super) fn bytes(&self, version: u64) -> Vec<u8> {
        let mut bytes = Random::stream(self.seed ^ (version << 32), self.number).bytes(self.size);
        if let Some(first) = bytes.first_mut() {
            *first = b'0' + u8::try_from(version % 10).unwrap_or(0);
        }
        bytes
    }
}

/// Everything but `/` and the unreserved characters of RFC 3986 section 2.3 as `%XX`.
fn percent_encoded(path: &str) -> String {
    let encode = |byte: u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(encode).collect()
}

/// A client that stays on one connection as long as the server lets it.
#[derive(Debug)]
pub(super) struct Visit {
    address: SocketAddr,
    client: Option<Client>,
    requests: u64,
}

impl Visit {
    /// A client without a connection yet.
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, client: None, requests: 0 }
    }

    /// How many requests were made.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    fn ask(&mut self, method: &str, target: &str, fields: &str) -> Result<Answer, Fault> {
        self.requests += 1;
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::open(self.address)?,
        };
        let answer = client.exchange(&request_with(method, target, fields), method == "HEAD")?;
        if !answer.head.announces_close() {
            self.client = Some(client);
        }
        Ok(answer)
    }

    fn expect(&mut self, method: &str, file: &SiteFile, fields: &str, status: u16) -> Result<Answer, String> {
        let line = fields.trim_end();
        let answer =
            self.ask(method, &file.target, fields).map_err(|fault| format!("{method} {line}: {fault}"))?;
        let found = answer.head.status;
        if found == status {
            Ok(answer)
        } else {
            Err(format!("{method} {line}: status {found}, not {status}"))
        }
    }

    /// GET, HEAD and every condition of RFC 9110 section 13 that a file without ranges can meet.
    pub(super) fn check_file(&mut self, file: &SiteFile) -> Result<(), String> {
        let bytes = file.bytes(0);
        let whole = self.expect("GET", file, "", 200)?;
        if whole.body != bytes {
            return Err(format!("GET: other bytes ({} instead of {})", whole.body.len(), bytes.len()));
        }
        let tag = required(&whole, "etag")?;
        let modified = required(&whole, "last-modified")?;
        let head = self.expect("HEAD", file, "", 200)?;
        same_fields(&whole, &head)?;
        let not_modified = self.expect("GET", file, &format!("If-None-Match: {tag}\r\n"), 304)?;
        if opaque(&required(&not_modified, "etag")?) != opaque(&tag) {
            return Err("304 with another ETag".to_owned());
        }
        self.expect("HEAD", file, &format!("If-None-Match: \"x\", {tag}\r\n"), 304)?;
        self.expect("GET", file, "If-None-Match: *\r\n", 304)?;
        self.expect("GET", file, &format!("If-Modified-Since: {modified}\r\n"), 304)?;
        for fields in [
            "If-None-Match: \"another\"\r\n".to_owned(),
            "If-Modified-Since: Thu, 01 Jan 1970 00:00:01 GMT\r\n".to_owned(),
            // A tag outweighs a date (RFC 9110 section 13.2.2).
            format!("If-None-Match: \"another\"\r\nIf-Modified-Since: {modified}\r\n"),
        ] {
            if self.expect("GET", file, &fields, 200)?.body != bytes {
                return Err(format!("GET {fields:?}: other bytes"));
            }
        }
        Ok(())
    }

    /// The file's entity tag now.
    pub(super) fn entity_tag(&mut self, file: &SiteFile) -> Result<String, String> {
        let answer = self.expect("HEAD", file, "", 200)?;
        required(&answer, "etag")
    }

    /// Waits until the first version has given way to the second, with another tag; gives how long it took.
    pub(super) fn wait_for_change(
        &mut self,
        file: &SiteFile,
        old_tag: &str,
        patience: Duration,
    ) -> Result<Duration, String> {
        let bytes = file.bytes(1);
        wait_until(patience, || {
            let answer = self.expect("GET", file, "", 200)?;
            let tag = required(&answer, "etag")?;
            // An empty file has one version only: its tag is a hash of its content.
            let is_new = opaque(&tag) != opaque(old_tag) || bytes == file.bytes(0);
            if answer.body == bytes && is_new {
                return Ok(());
            }
            Err(format!("same bytes as on disk: {}, new tag: {is_new}", answer.body == bytes))
        })
    }

    /// Waits until the file is gone; gives how long it took.
    pub(super) fn wait_for_removal(
        &mut self,
        file: &SiteFile,
        patience: Duration,
    ) -> Result<Duration, String> {
        wait_until(patience, || self.expect("GET", file, "", 404).map(|_| ()))
    }
}

fn wait_until(patience: Duration, mut holds: impl FnMut() -> Result<(), String>) -> Result<Duration, String> {
    let started = Instant::now();
    loop {
        match holds() {
            Ok(()) => return Ok(started.elapsed()),
            Err(why) if started.elapsed() >= patience => return Err(why),
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

fn required(answer: &Answer, name: &str) -> Result<String, String> {
    answer.head.field(name).map(str::to_owned).ok_or_else(|| format!("no {name} in {:?}", answer.head.text))
}

/// HEAD says what GET says (RFC 9110 section 9.3.2).
fn same_fields(get: &Answer, head: &Answer) -> Result<(), String> {
    for name in ["content-length", "content-type", "etag", "last-modified"] {
        let (of_get, of_head) = (get.head.field(name), head.head.field(name));
        if of_get.map(opaque) != of_head.map(opaque) {
            return Err(format!("{name}: GET says {of_get:?}, HEAD says {of_head:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{SiteFile, percent_encoded};

    #[test]
    fn reserved_bytes_are_encoded() {
        assert_eq!(percent_encoded("a b/ö%.x"), "a%20b/%C3%B6%25.x");
    }

    #[test]
    fn a_new_version_has_the_same_length_and_other_bytes() {
        let file = SiteFile::new(1, 0);
        let (old, new) = (file.bytes(0), file.bytes(1));
        assert_eq!(old.len(), new.len());
        assert!(old.is_empty() || old != new);
    }
}
