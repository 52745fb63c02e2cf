//! What an answer says, apart from what each server may say in its own words.

use super::exchange::{After, Answer};
use super::sites;

/// Shown where a field is not there.
pub(super) const NONE: &str = "–";
/// Shown where a value is each server's own.
const OWN: &str = "its own";

/// An answer, as it is compared: aspects by their names, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The status, or what came in its place.
    pub(super) status: String,
    aspects: Vec<(String, String)>,
}

/// One thing in which two answers differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) aspect: String,
    pub(super) ours: String,
    pub(super) theirs: String,
}

impl Outcome {
    /// `is_list`: where it has no content, it is about a text of the server's own.
    pub(super) fn of(answer: Option<&Answer>, is_list: bool) -> Self {
        let Some(answer) = answer else { return Self { status: "closed".to_owned(), aspects: Vec::new() } };
        let Some(version) = &answer.version else {
            return Self { status: "HTTP/0.9".to_owned(), aspects: Vec::new() };
        };
        let body = body(answer);
        let mut aspects: Vec<(String, String)> = answer
            .fields
            .iter()
            .map(|(name, value)| (name.clone(), normal(name, value, answer, &body, is_list)))
            .collect();
        if let Some(length) = answer.field("content-length") {
            let wrong = !answer.body.is_empty() && length.parse() != Ok(answer.body.len());
            aspects
                .extend(wrong.then(|| ("length of the content".to_owned(), answer.body.len().to_string())));
        }
        let (after, connection) = connection(answer);
        aspects.retain(|(name, _)| name != "connection");
        aspects.push(("Connection".to_owned(), connection));
        aspects.push(("the connection".to_owned(), after));
        aspects.push(("the version".to_owned(), version.clone()));
        aspects.push(("the content".to_owned(), body));
        if !answer.interim.is_empty() {
            aspects.push(("before it".to_owned(), format!("{:?}", answer.interim)));
        }
        aspects.sort();
        Self { status: answer.status.to_string(), aspects }
    }

    /// A short number that changes with anything in it (FNV-1a).
    pub(super) fn digest(&self) -> u32 {
        let fold = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        self.shown().bytes().fold(0x811c_9dc5, fold)
    }

    /// All of it, in one line.
    pub(super) fn shown(&self) -> String {
        let aspects = self.aspects.iter().map(|(name, value)| format!("; {name}: {value}"));
        format!("{}{}", self.status, aspects.collect::<String>())
    }

    /// What differs. Where the status does, nothing else is looked at: the rest follows from it.
    pub(super) fn differences(&self, other: &Self) -> Vec<Difference> {
        let difference = |aspect: &str, ours: &str, theirs: &str| Difference {
            aspect: aspect.to_owned(),
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
        };
        if self.status != other.status {
            return vec![difference("status", &self.status, &other.status)];
        }
        let mut names: Vec<&str> =
            self.aspects.iter().chain(&other.aspects).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let pairs = names.into_iter().map(|name| (name, self.value(name), other.value(name)));
        pairs
            .filter(|(_, ours, theirs)| ours != theirs)
            .map(|(name, ours, theirs)| difference(name, &ours, &theirs))
            .collect()
    }

    /// Values of fields that are there twice stand side by side.
    fn value(&self, name: &str) -> String {
        let values: Vec<&str> =
            self.aspects.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str()).collect();
        if values.is_empty() { NONE.to_owned() } else { values.join(" | ") }
    }
}

/// What is in it: which file, or text of the server's own.
fn body(answer: &Answer) -> String {
    let is_part = answer.status == 206;
    match sites::name_of(&answer.body) {
        _ if answer.body.is_empty() => "empty".to_owned(),
        Some(name) => name.to_owned(),
        None if is_part && !is_multipart(answer) => format!("{:?}", String::from_utf8_lossy(&answer.body)),
        None => OWN.to_owned(),
    }
}

fn is_multipart(answer: &Answer) -> bool {
    answer.field("content-type").is_some_and(|value| value.starts_with("multipart/byteranges"))
}

/// A field's value, without what has to differ.
fn normal(name: &str, value: &str, answer: &Answer, body: &str, is_list: bool) -> String {
    let there = "there".to_owned();
    match name {
        "date" | "last-modified" if value.ends_with(" GMT") && value.len() == 29 => there,
        "server" | "content-security-policy" => there,
        "etag" if value.starts_with("W/\"") => "weak".to_owned(),
        "etag" if value.starts_with('"') => "strong".to_owned(),
        "content-length" | "transfer-encoding" if body == OWN => there,
        // Without its content it can't be told whose text it is about.
        "content-length" if body == "empty" && (is_list || answer.status >= 300) && value != "0" => there,
        "content-type" if is_multipart(answer) => "multipart/byteranges".to_owned(),
        _ => value.to_owned(),
    }
}

/// What becomes of the connection, and what is said of it.
fn connection(answer: &Answer) -> (String, String) {
    let after = match answer.after {
        After::Closes => "closes".to_owned(),
        After::Stays(200) => "stays".to_owned(),
        After::Stays(status) => format!("stays; the next request gets {status}"),
    };
    (after, answer.field("connection").unwrap_or(NONE).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{After, Answer, Difference, Outcome};

    fn outcome(status: u16, fields: &[(&str, &str)], body: &str) -> Outcome {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let version = Some("HTTP/1.1".to_owned());
        let (body, interim) = (body.as_bytes().to_vec(), Vec::new());
        Outcome::of(Some(&Answer { version, status, fields, body, interim, after: After::Stays(200) }), false)
    }

    #[test]
    fn what_has_to_differ_is_no_difference() {
        let ours = outcome(200, &[("etag", "\"1\""), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")], "a note\n");
        let theirs =
            outcome(200, &[("date", "Mon, 07 Nov 1994 08:49:37 GMT"), ("etag", "\"2\"")], "a note\n");
        assert_eq!(ours.differences(&theirs), []);
        let theirs = outcome(200, &[("etag", "W/\"1\"")], "{}\n");
        let difference = |aspect: &str, ours: &str, theirs: &str| Difference {
            aspect: aspect.to_owned(),
            ours: ours.to_owned(),
            theirs: theirs.to_owned(),
        };
        let found = ours.differences(&theirs);
        assert_eq!(
            found,
            [
                difference("date", "there", "–"),
                difference("etag", "strong", "weak"),
                difference("the content", "note.xyz", "data.json"),
            ]
        );
        assert_eq!(ours.differences(&Outcome::of(None, false)), [difference("status", "200", "closed")]);
        assert_ne!(ours.digest(), theirs.digest());
    }

    #[test]
    fn texts_of_errors_are_each_servers_own() {
        let ours = outcome(404, &[("content-length", "10")], "Not Found\n");
        let theirs = outcome(404, &[("content-length", "4")], "None");
        assert_eq!(ours.differences(&theirs), []);
        assert_ne!(ours.differences(&outcome(404, &[("content-length", "7")], "a note\n")), []);
        assert_ne!(ours.differences(&outcome(404, &[("content-length", "0")], "")), []);
    }
}
