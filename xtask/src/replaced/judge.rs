//! Is an answer one of those that were promised?

use std::time::{Duration, Instant};

use super::ask::Ask;
use super::content::{Body, read};
use super::history::State;
use super::kind::Kind;
use super::site::{Changing, Form};
use crate::harness::answer::{BodyLength, Head};

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
    let from = seen.asked.checked_sub(FRESH).unwrap_or(seen.asked);
    let was = form.history.was(state, from, Instant::now());
    if was { Ok(()) } else { Err(format!("{state:?}, which it was not for a second or more")) }
}

/// A replaced or removed file is sent to its end.
fn short(kind: Kind, seen: &Seen) -> Result<Verdict, String> {
    match kind {
        Kind::Truncated | Kind::Rewritten => Ok(Verdict::Short),
        Kind::Renamed | Kind::Deleted => Err(format!("{} bytes, short of its length", seen.body.len())),
    }
}

fn part(form: &Form, kind: Kind, ask: &Ask, seen: &Seen) -> Result<Verdict, String> {
    let Some((first, len)) = ask.part else { return Err("a part that was not asked for".to_owned()) };
    let range = seen.head.field("content-range").unwrap_or_default();
    let wanted = format!("bytes {first}-{}/", first + len - 1);
    let Some(Ok(whole)) = range.strip_prefix(&wanted).map(str::parse) else {
        return Err(format!("Content-Range {range}, asked was {wanted}"));
    };
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
        Body::HalfWritten if kind == Kind::Rewritten => return Ok(Verdict::HalfWritten),
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
    if ask.has.as_deref() != Some(tag) {
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
