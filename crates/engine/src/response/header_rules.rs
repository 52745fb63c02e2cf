//! Header changes that are applied to any response as it is encoded: set, replaced or removed.

use crate::response::fields::{
    CONTENT_TYPE, append_field, each_line, encode_field, is_content_type, name_of,
};

const SERVER: &str = "Server";

/// Responses that a header change applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum On {
    /// All responses.
    Every,
    /// Responses with a status below 400 (RFC 9110 section 15).
    NoError,
    /// Successful and `304` responses.
    Content,
}

/// Header changes, encoded once, for [`Response::header_rules`](crate::Response::header_rules). Each worker has its
/// own.
#[derive(Debug, Clone, Default)]
pub struct HeaderRules {
    /// Replacement of the `Server` line; `None` keeps it.
    server: Option<Vec<u8>>,
    content: Layer,
    redirect: Layer,
    error: Layer,
}

/// Changes for one class of responses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    lines: Vec<u8>,
    without: Names,
    unless: Vec<Unless>,
}

/// A line that is added unless the response has the field `other`.
#[derive(Debug, Clone)]
struct Unless {
    other: Box<[u8]>,
    line: Vec<u8>,
}

impl HeaderRules {
    /// Returns rules without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field, possibly `Server`, and replaces all fields of this name.
    ///
    /// # Errors
    /// The reason why the field is invalid, or reserved: `Connection`, `Content-Length`, `Content-Type`,
    /// `Date` and `Transfer-Encoding`. Nothing is changed then.
    pub fn set(&mut self, name: &str, value: &str, on: On) -> Result<&mut Self, String> {
        if name.eq_ignore_ascii_case(SERVER) {
            let mut line = Vec::new();
            encode_field(&mut line, SERVER, value.as_bytes())?;
            self.server = Some(line);
            return Ok(self);
        }
        self.add(name, value, on)?;
        self.layers(on).for_each(|layer| layer.without.push(name));
        Ok(self)
    }

    /// Adds a field and keeps existing ones of this name.
    ///
    /// # Errors
    /// As [`set`](Self::set), and `Server`.
    pub fn add(&mut self, name: &str, value: &str, on: On) -> Result<&mut Self, String> {
        let mut line = Vec::new();
        check_name(name)?;
        append_field(&mut line, name, value.as_bytes())?;
        self.layers(on).for_each(|layer| layer.lines.extend_from_slice(&line));
        Ok(self)
    }

    /// Adds a field to responses that have no field `other` of their own.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_unless(&mut self, other: &str, name: &str, value: &str, on: On) -> Result<&mut Self, String> {
        let mut line = Vec::new();
        check_name(name)?;
        append_field(&mut line, name, value.as_bytes())?;
        let unless = Unless { other: other.as_bytes().into(), line };
        self.layers(on).for_each(|layer| layer.unless.push(unless.clone()));
        Ok(self)
    }

    /// Removes a field, possibly `Server`, from every response.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn remove(&mut self, name: &str) -> Result<&mut Self, String> {
        if name.eq_ignore_ascii_case(SERVER) {
            self.server = Some(Vec::new());
            return Ok(self);
        }
        check_name(name)?;
        append_field(&mut Vec::new(), name, b"")?;
        self.layers(On::Every).for_each(|layer| layer.without.push(name));
        Ok(self)
    }

    fn layers(&mut self, on: On) -> impl Iterator<Item = &mut Layer> {
        let redirect = (on != On::Content).then_some(&mut self.redirect);
        let error = (on == On::Every).then_some(&mut self.error);
        std::iter::once(&mut self.content).chain(redirect).chain(error)
    }

    /// Returns the replacement of the `Server` line, which may be empty.
    #[inline]
    pub(crate) fn server(&self) -> Option<&[u8]> {
        self.server.as_deref()
    }

    /// Returns the changes for a response with this status.
    #[inline]
    pub(crate) fn layer(&self, status: u16) -> &Layer {
        match status {
            200..=299 | 304 => &self.content,
            ..=199 | 300..=399 => &self.redirect,
            _ => &self.error,
        }
    }
}

impl Layer {
    /// Appends the added lines. `has` returns whether the response has a field of this name.
    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, has: impl Fn(&[u8]) -> bool) {
        out.extend_from_slice(&self.lines);
        for Unless { other, line } in &self.unless {
            if !has(other) {
                out.extend_from_slice(line);
            }
        }
    }

    /// Returns the removed names.
    #[inline]
    pub(crate) fn without(&self) -> &Names {
        &self.without
    }
}

/// Rejects `Content-Type`, which belongs to the content.
fn check_name(name: &str) -> Result<(), String> {
    match is_content_type(name) {
        true => Err(format!("{CONTENT_TYPE} belongs to the content")),
        false => Ok(()),
    }
}

/// A set of field names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    mask: u64,
    names: Vec<Box<[u8]>>,
}

impl Names {
    /// The empty set.
    pub(crate) const NONE: &'static Self = &Self { mask: 0, names: Vec::new() };

    fn push(&mut self, name: &str) {
        self.mask |= mask_of(name.as_bytes());
        self.names.push(name.as_bytes().into());
    }

    fn has(&self, name: &[u8]) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns true if fields with this [`mask_of_lines`] may have one of the names.
    #[inline]
    pub(crate) const fn may_meet(&self, mask: u64) -> bool {
        self.mask & mask != 0
    }

    /// Appends encoded field lines except those with one of the names.
    #[inline]
    pub(crate) fn append_others(&self, out: &mut Vec<u8>, lines: &[u8]) {
        if self.mask == 0 {
            return out.extend_from_slice(lines);
        }
        for line in each_line(lines) {
            if !self.has(name_of(line)) {
                out.extend_from_slice(line);
            }
        }
    }
}

/// Returns a mask by which most names can be ruled out quickly.
pub(crate) fn mask_of_lines(lines: &[u8]) -> u64 {
    each_line(lines).fold(0, |mask, line| mask | mask_of(name_of(line)))
}

/// Returns one of 64 bits, by length, first and last letter, case-insensitively.
pub(crate) fn mask_of(name: &[u8]) -> u64 {
    let letter = |byte: Option<&u8>| byte.map_or(0, |byte| usize::from(byte | 0x20));
    let mixed = name.len() * 5 + letter(name.first()) * 3 + letter(name.last()) * 7;
    1 << (mixed % 64)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use shearwater_http1::Method;
    use shearwater_io::{Item, Shared};

    use super::{HeaderRules, On, mask_of};
    use crate::response::responder::Responder;
    use crate::{FieldLines, Prebuilt, Response};

    /// Returns the encoded response without status line and `Date`.
    fn sent(handler: impl FnOnce(&mut Response<'_>)) -> String {
        let text = String::from_utf8(Responder::new(0).encoded(Method::Get, handler)).expect("ASCII");
        let kept = text.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).skip(1);
        kept.collect()
    }

    fn prebuilt() -> Rc<Prebuilt> {
        let mut lines = FieldLines::new();
        lines
            .push("ETag", "\"1\"")
            .and_then(|lines| lines.push("Cache-Control", "no-store"))
            .expect("fields");
        let body = Item::Shared(Shared::Static(b"abc"));
        Rc::new(Prebuilt::new("text/plain", &lines, body).expect("a media type"))
    }

    fn header_rules() -> Rc<HeaderRules> {
        let mut header_rules = HeaderRules::new();
        header_rules.set("cache-control", "max-age=1", On::NoError).expect("a field");
        header_rules.set("X-Own", "own", On::Every).expect("a field");
        header_rules.set("Content-Language", "en", On::Content).expect("a field");
        header_rules.add("Vary", "Origin", On::Every).expect("a field");
        header_rules
            .remove("Gone")
            .and_then(|header_rules| header_rules.set("server", "S", On::Every))
            .expect("fields");
        Rc::new(header_rules)
    }

    #[test]
    fn replaces_adds_and_removes_fields() {
        let header_rules = header_rules();
        let moved = "Server: S\r\ncache-control: max-age=1\r\nX-Own: own\r\nVary: Origin\r\n";
        let own = moved.replace("Vary", "Content-Language: en\r\nVary");
        let end = "Content-Type: text/plain\r\nETag: \"1\"\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(
            sent(|response| {
                response.header_rules(&header_rules).prebuilt(&prebuilt());
            }),
            format!("{own}{end}")
        );
        let fields = |response: &mut Response<'_>, status| {
            let fields = [("GONE", "1"), ("Vary", "Accept"), ("x-own", "2"), ("Cache-Control", "private")];
            fields.iter().for_each(|(name, value)| {
                response.field(name, value);
            });
            response.status(status).header_rules(&header_rules);
        };
        let rest = "Vary: Accept\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(sent(|response| fields(response, 200)), format!("{own}{rest}"));
        assert_eq!(sent(|response| fields(response, 308)), format!("{moved}{rest}"));
        assert!(sent(|response| fields(response, 304)).starts_with(&own));
        let own = "Server: S\r\nX-Own: own\r\nVary: Origin\r\n";
        let rest = "Vary: Accept\r\nCache-Control: private\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(sent(|response| fields(response, 404)), format!("{own}{rest}"));
    }

    #[test]
    fn leaves_other_fields_unchanged() {
        let whole = sent(|response| {
            response.prebuilt(&prebuilt());
        });
        let under = sent(|response| {
            response.header_rules(&Rc::new(HeaderRules::new())).prebuilt(&prebuilt());
        });
        assert_eq!(whole, under);
        let mut header_rules = HeaderRules::new();
        header_rules.remove("Server").expect("it can be left out");
        let bare = sent(|response| {
            response.header_rules(&Rc::new(header_rules)).prebuilt(&prebuilt());
        });
        assert_eq!(Some(bare.as_str()), whole.strip_prefix("Server: shearwater\r\n"));
    }

    #[test]
    fn add_unless_skips_responses_with_the_other_field() {
        let mut header_rules = HeaderRules::new();
        header_rules.add_unless("etag", "X-Own", "own", On::NoError).expect("a field");
        let header_rules = Rc::new(header_rules);
        let has_own = |handler: &dyn Fn(&mut Response<'_>)| {
            let text = sent(|response| {
                response.header_rules(&header_rules);
                handler(response);
            });
            text.contains("X-Own: own\r\n")
        };
        assert!(has_own(&|response| {
            response.field("ETagX", "1").text("text");
        }));
        assert!(!has_own(&|response| {
            response.field("ETag", "1").text("text");
        }));
        assert!(!has_own(&|response| {
            response.prebuilt(&prebuilt());
        }));
        assert!(!has_own(&|response| {
            response.status(304).prebuilt(&prebuilt());
        }));
        assert!(!has_own(&|response| {
            response.field("ETag", "1").body_static(b"bytes");
        }));
        assert!(!has_own(&|response| {
            response.status(404);
        }));
        let other = Item::Shared(Shared::Static(b"abc"));
        let other = Prebuilt::new("text/plain", &FieldLines::new(), other).expect("a media type");
        let other = Rc::new(other);
        assert!(has_own(&|response| {
            response.prebuilt(&other);
        }));
        assert!(!has_own(&|response| {
            response.prebuilt(&other).field("etag", "1");
        }));
    }

    #[test]
    fn keep_fields_removes_all_others() {
        let text = sent(|response| {
            response.field("Allow", "GET").field("ETag", "1").field("Retry-After", "1").field("Age", "0");
            response.keep_fields(&["retry-after", "ALLOW", "Other"]);
        });
        assert_eq!(text, "Server: shearwater\r\nAllow: GET\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n");
    }

    #[test]
    fn field_once_does_not_repeat_a_line() {
        let text = sent(|response| {
            response
                .field("Vary", "Accept")
                .field_once("Vary", "Accept")
                .field_once("Vary", "Accept-Encoding");
        });
        assert_eq!(
            text,
            "Server: shearwater\r\nVary: Accept\r\nVary: Accept-Encoding\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn a_panic_drops_the_header_rules() {
        let header_rules = header_rules();
        let text = sent(|response| {
            response.header_rules(&header_rules);
            panic!("on purpose");
        });
        assert!(text.starts_with("Server: shearwater\r\nConnection: close\r\n"), "{text}");
    }

    #[test]
    fn rejects_rules_for_the_fields_that_frame_a_response() {
        let mut header_rules = HeaderRules::new();
        for name in ["Connection", "content-length", "Content-Type", "DATE", "Transfer-Encoding", "a b", ""] {
            assert!(header_rules.set(name, "1", On::Every).is_err(), "{name}");
            assert!(header_rules.add(name, "1", On::Every).is_err(), "{name}");
            assert!(header_rules.remove(name).is_err(), "{name}");
        }
        for name in ["X", "Server"] {
            assert!(header_rules.set(name, "a\r\nB: c", On::Every).is_err(), "{name}");
        }
        assert!(header_rules.add("Server", "1", On::Every).is_err());
        assert!(header_rules.add_unless("X", "Content-Type", "1", On::Every).is_err());
        assert!(header_rules.layer(200).lines.is_empty() && header_rules.layer(400).lines.is_empty());
        assert!(header_rules.layer(200).unless.is_empty());
        assert!(header_rules.server().is_none() && !header_rules.layer(200).without().may_meet(u64::MAX));
    }

    #[test]
    fn masks_tell_usual_names_from_those_of_files() {
        let of_files = ["ETag", "Last-Modified", "Accept-Ranges", "Vary", "Content-Encoding"];
        let usual = [
            "X-Frame-Options",
            "X-Content-Type-Options",
            "Referrer-Policy",
            "Strict-Transport-Security",
            "Content-Security-Policy",
            "Permissions-Policy",
            "Access-Control-Allow-Origin",
            "Cross-Origin-Opener-Policy",
            "Cross-Origin-Resource-Policy",
            "Cache-Control",
            "X-Robots-Tag",
        ];
        let of_files = of_files.iter().fold(0, |mask, name| mask | mask_of(name.as_bytes()));
        for name in usual {
            assert_eq!(mask_of(name.as_bytes()) & of_files, 0, "{name}");
        }
    }
}
