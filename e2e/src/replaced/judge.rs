//! The promises about changing files: requests, and each response judged by them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use testkit::random::Rng;
use testkit::versions::{Body, WORD, read};
use testkit::{Client, Error, Framing, Head, request};

use super::history::{FileForm, State, opaque};
use super::{Changing, FileChange};

/// A response may show the state before a change for so long.
const FRESH: Duration = Duration::from_secs(1);

/// A response, and the moment of its request.
pub(super) struct FileResponse {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// The connection ended before the body.
    pub(super) is_short: bool,
    pub(super) requested: Instant,
}

/// A kind of promised response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judgement {
    Whole,
    Part,
    NotModified,
    Missing,
    Short,
    HalfWritten,
}

impl FileResponse {
    /// The time in which the file may have had the state that was sent.
    fn time(&self) -> (Instant, Instant) {
        (self.requested.checked_sub(FRESH).unwrap_or(self.requested), Instant::now())
    }
}

/// Judges a response. The error says which promise it breaks.
pub(super) fn judge(
    file: &Changing,
    change: FileChange,
    request: &FileRequest,
    received: &FileResponse,
) -> Result<Judgement, String> {
    let head = &received.head;
    let is_coded = head.header("content-encoding").is_some();
    if is_coded && !request.zstd {
        return Err("a coding that was not accepted".to_owned());
    }
    let form = &file.forms[usize::from(is_coded)];
    match head.status {
        404 if received.is_short => Err("a short 404".to_owned()),
        404 => in_time(&file.forms[0], None, received).map(|()| Judgement::Missing),
        304 => not_modified(file, request, received),
        200 | 206 if received.is_short && change.is_in_place() => Ok(Judgement::Short),
        200 | 206 if received.is_short => Err(format!("{} bytes, short of the length", received.body.len())),
        200 => match head.framing("GET") {
            Framing::Length(length) => version(form, change, (0, length), received, Judgement::Whole),
            other => Err(format!("framing {other:?}")),
        },
        206 => part(form, change, request, received),
        other => Err(format!("status {other}")),
    }
}

fn in_time(form: &FileForm, state: State, received: &FileResponse) -> Result<(), String> {
    let (from, until) = received.time();
    if form.history.had(state, from, until) {
        return Ok(());
    }
    Err(format!("{state:?}, which it has not been for a second or more"))
}

fn part(
    form: &FileForm,
    change: FileChange,
    request: &FileRequest,
    received: &FileResponse,
) -> Result<Judgement, String> {
    let Some((first, len)) = request.range else { return Err("a range that was not requested".to_owned()) };
    let range = received.head.header("content-range").unwrap_or_default();
    let expected = format!("bytes {first}-{}/", first + len - 1);
    let Some(Ok(whole)) = range.strip_prefix(&expected).map(str::parse) else {
        return Err(format!("Content-Range {range}, requested was {expected}"));
    };
    if received.body.len() != len {
        return Err(format!("{} bytes, requested were {len}", received.body.len()));
    }
    version(form, change, (first, whole), received, Judgement::Part)
}

/// Largest file that has a tag at once.
const HASHED_AT_ONCE_MAX: u64 = 64 * 1024;

/// Expects one version, with the length that the file had then and a tag of its own.
fn version(
    form: &FileForm,
    change: FileChange,
    (first, whole): (usize, u64),
    received: &FileResponse,
    judgement: Judgement,
) -> Result<Judgement, String> {
    let version = match read(&received.body, form.file.form, first) {
        Body::Version(version) => version,
        Body::HalfWritten if change == FileChange::Rewritten => {
            let (from, until) = received.time();
            let changing = form.history.was_changing(from, until);
            return changing.then_some(Judgement::HalfWritten).ok_or("half written, too late".to_owned());
        }
        Body::HalfWritten => return Err("half written".to_owned()),
        Body::Mixture(what) => return Err(format!("a mixture: {what}")),
    };
    let state = Some((version, whole));
    in_time(form, state, received)?;
    form.note_version(version);
    let Some(tag) = received.head.header("etag") else {
        // A large file has one once it hasn't changed for seconds.
        return if whole > HASHED_AT_ONCE_MAX { Ok(judgement) } else { Err("no ETag".to_owned()) };
    };
    match form.record_tag(tag, state) {
        None => Ok(judgement),
        Some(other) => Err(format!("the tag of {other:?} for {state:?}")),
    }
}

fn not_modified(
    file: &Changing,
    request: &FileRequest,
    received: &FileResponse,
) -> Result<Judgement, String> {
    let tag = received.head.header("etag").ok_or("no ETag")?;
    // The comparison is weak.
    if request.tag.as_deref().map(opaque) != Some(opaque(tag)) {
        return Err(format!("304 for {tag}, which was not requested"));
    }
    let known = file.forms.iter().find_map(|form| Some((form, form.state_of(tag)?)));
    let (form, state) = known.ok_or("304 for an unknown tag")?;
    in_time(form, state, received).map(|()| Judgement::NotModified)
}

/// Pause between two requests: those that change the files need a core too.
const PAUSE: Duration = Duration::from_micros(500);
/// A slow client pauses after so many bytes.
const SLOW_BYTES: usize = 128 * 1024;
const SLOW_PAUSE: Duration = Duration::from_millis(2);

/// A request for a file.
#[derive(Debug, Clone)]
pub(super) struct FileRequest {
    /// Accepts the compressed sibling.
    pub(super) zstd: bool,
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
            zstd: file.forms.len() > 1 && random.bool(),
            range: (drawn < 3).then_some(range),
            tag: if (3..5).contains(&drawn) { tag.cloned() } else { None },
            slow: drawn == 5,
        }
    }

    fn send(&self, client: &mut Client, target: &str) -> Result<FileResponse, Error> {
        let mut headers = Vec::new();
        headers.extend(self.zstd.then(|| "Accept-Encoding: zstd".to_owned()));
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use testkit::Head;
    use testkit::versions::{WORD, content, half_written};

    use super::{Changing, FileChange, FileRequest, FileResponse, Judgement, judge};
    use crate::replaced::lay_out;

    /// Judges a response for a file whose second version was written in place a moment ago.
    fn judgement(
        file: &Changing,
        range: Option<(usize, usize)>,
        body: &[u8],
        requested: Instant,
    ) -> Result<Judgement, String> {
        let len = file.forms[0].file.len;
        let part =
            range.map(|(first, part)| format!("Content-Range: bytes {first}-{}/{len}\r\n", first + part - 1));
        let head = format!(
            "HTTP/1.1 {} x\r\nETag: \"{}\"\r\n{}Content-Length: {}\r\n\r\n",
            if range.is_some() { 206 } else { 200 },
            body[0],
            part.unwrap_or_default(),
            body.len()
        );
        let head = Head::parse(head.as_bytes()).unwrap();
        let request = FileRequest { zstd: false, range, tag: None, slow: false };
        judge(
            file,
            FileChange::Rewritten,
            &request,
            &FileResponse { head, body: body.to_vec(), is_short: false, requested },
        )
    }

    #[test]
    fn the_state_before_a_change_is_right_for_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let file = lay_out(folder.path()).unwrap().swap_remove(0);
        file.forms[0].rewrite(2).unwrap();
        let len = file.forms[0].file.len;
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(2));
        let mut half = content(2, 0, len);
        half[..WORD].copy_from_slice(&half_written(0));
        for (body, at_once) in [(content(1, 0, len), Judgement::Whole), (half, Judgement::HalfWritten)] {
            assert_eq!(judgement(&file, None, &body, now), Ok(at_once));
            assert!(judgement(&file, None, &body, later).is_err());
        }
        assert_eq!(judgement(&file, None, &content(2, 0, len), later), Ok(Judgement::Whole));
        assert!(judgement(&file, None, &content(3, 0, len), now).is_err(), "never written");
        let part = content(2, 0, 4 * WORD);
        assert_eq!(judgement(&file, Some((0, 4 * WORD)), &part, now), Ok(Judgement::Part));
        assert!(judgement(&file, Some((0, 5 * WORD)), &part, now).is_err(), "too little");
    }
}
