//! Is an answer one of those that were promised?

use std::time::{Duration, Instant};

use super::ask::Ask;
use super::content::{Body, read};
use super::history::State;
use super::kind::Kind;
use super::site::{Changing, Form};
use crate::harness::answer::{BodyLength, Head, opaque};

/// Within so much of a change no answer of what was before begins any more.
const FRESH: Duration = Duration::from_secs(1);

/// An answer, and when it was asked for.
pub(super) struct Seen {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// Whether the connection ended before the body did.
    pub(super) is_short: bool,
    pub(super) asked: Instant,
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Whole,
    Part,
    NotModified,
    Missing,
    Short,
    /// As the file was, which said so itself.
    HalfWritten,
}

/// Judges an answer; the error says which promise it breaks.
pub(super) fn judge(file: &Changing, kind: Kind, ask: &Ask, seen: &Seen) -> Result<Verdict, String> {
    let is_packed = seen.head.field("content-encoding").is_some();
    if is_packed && !ask.takes_packed {
        return Err("a coding that was not asked for".to_owned());
    }
    let form = &file.forms[usize::from(is_packed)];
    match seen.head.status {
        404 if seen.is_short => Err("a short 404".to_owned()),
        404 => in_time(&file.forms[0], None, seen).map(|()| Verdict::Missing),
        304 => not_modified(file, ask, seen),
        200 | 206 if seen.is_short => short(kind, seen),
        200 => content(form, kind, (0, length(&seen.head)?), seen, Verdict::Whole),
        206 => part(form, kind, ask, seen),
        other => Err(format!("status {other}")),
    }
}

/// Whether the file was so while it was asked for, or a second before.
fn in_time(form: &Form, state: State, seen: &Seen) -> Result<(), String> {
    let (from, until) = since(seen);
    let was = form.history.was(state, from, until);
    if was { Ok(()) } else { Err(format!("{state:?}, which it was not for a second or more")) }
}

/// A file may be sent half written as long as its writer is not done, and a second longer.
fn half_written(form: &Form, seen: &Seen) -> Result<Verdict, String> {
    let (from, until) = since(seen);
    let was = form.history.was_changing(from, until);
    if was {
        Ok(Verdict::HalfWritten)
    } else {
        Err("half written, a second and more after it was done".to_owned())
    }
}

/// When the file may have been what was answered.
fn since(seen: &Seen) -> (Instant, Instant) {
    (seen.asked.checked_sub(FRESH).unwrap_or(seen.asked), Instant::now())
}

/// A replaced or removed file is sent to its end.
fn short(kind: Kind, seen: &Seen) -> Result<Verdict, String> {
    match kind.is_in_place() {
        true => Ok(Verdict::Short),
        false => Err(format!("{} bytes, short of its length", seen.body.len())),
    }
}

fn part(form: &Form, kind: Kind, ask: &Ask, seen: &Seen) -> Result<Verdict, String> {
    let Some((first, len)) = ask.part else { return Err("a part that was not asked for".to_owned()) };
    let range = seen.head.field("content-range").unwrap_or_default();
    let wanted = format!("bytes {first}-{}/", first + len - 1);
    let Some(Ok(whole)) = range.strip_prefix(&wanted).map(str::parse) else {
        return Err(format!("Content-Range {range}, asked was {wanted}"));
    };
    if seen.body.len() != len {
        return Err(format!("{} bytes, asked were {len}", seen.body.len()));
    }
    content(form, kind, (first, whole), seen, Verdict::Part)
}

/// Of one generation, of the length that the file had then, with a tag of its own.
fn content(
    form: &Form,
    kind: Kind,
    (first, whole): (usize, u64),
    seen: &Seen,
    verdict: Verdict,
) -> Result<Verdict, String> {
    let generation = match read(&seen.body, form.target.form, first) {
        Body::Of(generation) => generation,
        Body::HalfWritten if kind == Kind::Rewritten => return half_written(form, seen),
        Body::HalfWritten => return Err("half written".to_owned()),
        Body::Mixture(what) => return Err(format!("a mixture: {what}")),
    };
    let state = Some((generation, whole));
    in_time(form, state, seen)?;
    let tag = seen.head.field("etag").ok_or("no ETag")?;
    match form.note_tag(tag, state) {
        None => Ok(verdict),
        Some(other) => Err(format!("the tag of {other:?} for {state:?}")),
    }
}

fn not_modified(file: &Changing, ask: &Ask, seen: &Seen) -> Result<Verdict, String> {
    let tag = seen.head.field("etag").ok_or("no ETag")?;
    // It is compared weakly.
    if ask.has.as_deref().map(opaque) != Some(opaque(tag)) {
        return Err(format!("304 for {tag}, which was not asked for"));
    }
    let known = file.forms.iter().find_map(|form| Some((form, form.state_of(tag)?)));
    let (form, state) = known.ok_or("304 for a tag that nobody has seen")?;
    in_time(form, state, seen).map(|()| Verdict::NotModified)
}

fn length(head: &Head) -> Result<u64, String> {
    match head.body_length(false) {
        BodyLength::Exactly(length) => Ok(length),
        other => Err(format!("a file's length is {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Ask, Kind, Seen, Verdict, judge};
    use crate::harness::answer::Head;
    use crate::harness::folder::Folder;
    use crate::replaced::content::{WORD, content, half_written};
    use crate::replaced::site::{Changing, lay_out};

    /// Of the smallest file: its second generation was written into it a moment ago.
    fn rewritten(folder: &Folder) -> Changing {
        let mut files = lay_out(folder.path()).expect("a folder to write to");
        let file = files.swap_remove(0);
        file.forms[0].rewrite(2).expect("the file is there");
        file
    }

    fn verdict(
        file: &Changing,
        part: Option<(usize, usize)>,
        body: &[u8],
        asked: Instant,
    ) -> Result<Verdict, String> {
        let len = file.forms[0].target.len;
        let range = part
            .map(|(first, asked)| format!("Content-Range: bytes {first}-{}/{len}\r\n", first + asked - 1));
        let status = if part.is_some() { "206 Partial Content" } else { "200 OK" };
        let range = range.unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status}\r\nETag: \"{}\"\r\n{range}Content-Length: {}\r\n\r\n",
            body[0],
            body.len()
        );
        let head = Head::parse(head.as_bytes()).expect("a well-formed head");
        let ask = Ask { target: file.path, takes_packed: false, part, has: None, is_slow: false };
        judge(file, Kind::Rewritten, &ask, &Seen { head, body: body.to_vec(), is_short: false, asked })
    }

    #[test]
    fn what_was_before_passes_for_a_second_and_no_longer() {
        let folder = Folder::new(false).expect("a temporary folder");
        let file = rewritten(&folder);
        let len = file.forms[0].target.len;
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(2));
        let mut half = content(2, 0, len);
        half[..WORD].copy_from_slice(&half_written(0));
        for (body, at_once) in [(content(1, 0, len), Verdict::Whole), (half, Verdict::HalfWritten)] {
            assert_eq!(verdict(&file, None, &body, now), Ok(at_once));
            assert!(verdict(&file, None, &body, later).is_err());
        }
        assert_eq!(verdict(&file, None, &content(2, 0, len), later), Ok(Verdict::Whole));
        assert!(verdict(&file, None, &content(3, 0, len), now).is_err(), "it never was so");
    }

    #[test]
    fn a_part_is_all_that_was_asked_for() {
        let folder = Folder::new(false).expect("a temporary folder");
        let file = rewritten(&folder);
        let body = content(2, 0, 4 * WORD);
        assert_eq!(verdict(&file, Some((0, 4 * WORD)), &body, Instant::now()), Ok(Verdict::Part));
        assert!(verdict(&file, Some((0, 5 * WORD)), &body, Instant::now()).is_err());
    }
}
