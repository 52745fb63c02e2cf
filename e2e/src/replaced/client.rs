//! A client that requests one file again and again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use testkit::random::Rng;
use testkit::versions::WORD;
use testkit::{Client, Error, request};

use super::judge::{FileResponse, Judgement, judge};
use super::{Changing, FileChange};

/// Pause between two requests: those that change the files need a core too.
const PAUSE: Duration = Duration::from_micros(500);
/// A slow client pauses after so many bytes.
const SLOW_BYTES: usize = 128 * 1024;
const SLOW_PAUSE: Duration = Duration::from_millis(2);

/// A request for a file.
#[derive(Debug, Clone)]
pub(super) struct FileRequest {
    /// Accepts the compressed sibling.
    pub(super) gzip: bool,
    /// First byte and number of bytes.
    pub(super) range: Option<(usize, usize)>,
    /// Entity tag of the version that the client has.
    pub(super) tag: Option<String>,
    /// Reads the body with pauses.
    pub(super) slow: bool,
}

impl FileRequest {
    /// Draws a request. `tag` is the last tag that was received.
    fn draw(file: &Changing, change: FileChange, tag: Option<&String>, random: &mut Rng) -> Self {
        // A range that a file cut to half its length still has. Of a rewritten file it has the first word, which says if it is half written.
        let words = file.forms[0].file.len / WORD / 8;
        let first = if change == FileChange::Rewritten { 0 } else { random.usize(..words) * WORD };
        let range = (first, random.usize(1..=words) * WORD);
        let drawn = random.u8(..16);
        Self {
            gzip: file.forms.len() > 1 && random.bool(),
            range: (drawn < 3).then_some(range),
            tag: if (3..5).contains(&drawn) { tag.cloned() } else { None },
            slow: drawn == 5,
        }
    }

    fn send(&self, client: &mut Client, target: &str) -> Result<FileResponse, Error> {
        let mut headers = Vec::new();
        headers.extend(self.gzip.then(|| "Accept-Encoding: gzip".to_owned()));
        headers.extend(self.range.map(|(first, len)| format!("Range: bytes={first}-{}", first + len - 1)));
        headers.extend(self.tag.as_ref().map(|tag| format!("If-None-Match: {tag}")));
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let requested = Instant::now();
        client.send(request("GET", target, &headers))?;
        let head = client.head("GET")?;
        let (mut body, mut pause_at, mut is_short) = (Vec::new(), SLOW_BYTES, false);
        loop {
            match client.data(usize::MAX, &mut |data| body.extend_from_slice(data)) {
                Ok(0) => break,
                Ok(_) => {}
                Err(Error::Truncated) => {
                    is_short = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            if self.slow && body.len() >= pause_at {
                thread::sleep(SLOW_PAUSE);
                pause_at += SLOW_BYTES;
            }
        }
        Ok(FileResponse { head, body, is_short, requested })
    }
}

/// Sends requests until `over` is set, and judges every response.
pub(super) fn request_until(
    over: &AtomicBool,
    address: SocketAddr,
    file: &Changing,
    change: FileChange,
    mut random: Rng,
) {
    let (mut tag, mut kept) = (None, None);
    while !over.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
        let request = FileRequest::draw(file, change, tag.as_ref(), &mut random);
        let client = kept.take().map_or_else(|| Client::connect(address), Ok);
        let received = client.and_then(|mut client| {
            let received = request.send(&mut client, file.target)?;
            if !received.is_short && !received.head.closes() {
                kept = Some(client);
            }
            Ok(received)
        });
        let judgement = received.map_err(|error| error.to_string()).and_then(|received| {
            let judgement = judge(file, change, &request, &received)?;
            if matches!(judgement, Judgement::Whole | Judgement::Part) {
                tag = received.head.header("etag").map(str::to_owned).or(tag.take());
            }
            Ok(judgement)
        });
        file.record(judgement.map_err(|error| format!("{request:?}: {error}")));
    }
}
