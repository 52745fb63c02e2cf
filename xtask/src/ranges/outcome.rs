//! What an answer says, apart from what two servers may say in different words.

use crate::harness::answer::Head;
use crate::harness::client::Answer;

/// What is compared of two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aspect {
    /// The status; where it differs nothing else is compared.
    Status,
    ContentType,
    ContentRange,
    ContentEncoding,
    AcceptRanges,
    LastModified,
    /// Whether there is a tag: its text is each server's own.
    Tag,
    Vary,
    /// The length that is told, where the answer is no multipart one: boundaries and line ends are each server's own.
    Length,
    /// The content: ranges with their bytes.
    Content,
}

/// An answer, as it is compared.
pub(super) struct Outcome {
    status: u16,
    aspects: Vec<(Aspect, String)>,
}

impl Outcome {
    pub(super) fn of(answer: Answer, is_head: bool) -> Result<Self, String> {
        let Answer { head, body } = answer;
        let status = head.status;
        let value = |name: &str| head.field(name).unwrap_or("none").to_owned();
        let mut aspects = vec![(Aspect::ContentRange, value("content-range")), (Aspect::Vary, value("vary"))];
        // An error's page and what is said of it are each server's own.
        if status < 400 {
            aspects.extend([
                (Aspect::ContentEncoding, value("content-encoding")),
                (Aspect::AcceptRanges, value("accept-ranges")),
                (Aspect::LastModified, value("last-modified")),
                (Aspect::Tag, head.field("etag").map_or("none", |_| "there").to_owned()),
            ]);
        }
        if matches!(status, 200 | 206) {
            aspects.extend(of_content(&head, &body, is_head)?);
        }
        Ok(Self { status, aspects })
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// What differs, with both values.
    pub(super) fn differences(&self, other: &Self) -> Vec<(Aspect, String, String)> {
        if self.status != other.status {
            return vec![(Aspect::Status, self.status.to_string(), other.status.to_string())];
        }
        let pairs = self.aspects.iter().zip(&other.aspects);
        let differing = pairs.filter(|(own, other)| own != other);
        differing.map(|(own, other)| (own.0, own.1.clone(), other.1.clone())).collect()
    }
}

fn of_content(head: &Head, body: &[u8], is_head: bool) -> Result<[(Aspect, String); 3], String> {
    let media_type = head.field("content-type").unwrap_or_default();
    let Some(boundary) = media_type.strip_prefix("multipart/byteranges; boundary=") else {
        let length = head.field("content-length").unwrap_or("none").to_owned();
        let content = format!("{} bytes ({:016x})", body.len(), digest(body));
        return Ok([
            (Aspect::ContentType, media_type.to_owned()),
            (Aspect::Length, length),
            (Aspect::Content, content),
        ]);
    };
    let content = if is_head { String::new() } else { parts(body, boundary)? };
    let media_type = "multipart/byteranges".to_owned();
    Ok([
        (Aspect::ContentType, media_type),
        (Aspect::Length, "its own".to_owned()),
        (Aspect::Content, content),
    ])
}

/// The parts of a multipart body (RFC 2046 section 5.1): fields and bytes of each.
fn parts(body: &[u8], boundary: &str) -> Result<String, String> {
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter may stand at the very start.
    let body = [b"\r\n", body].concat();
    let starts: Vec<usize> =
        (0..body.len()).filter(|&at| body[at..].starts_with(delimiter.as_bytes())).collect();
    let mut shown = Vec::new();
    for pair in starts.windows(2) {
        let part = &body[pair[0] + delimiter.len()..pair[1]];
        let end =
            part.windows(4).position(|window| window == b"\r\n\r\n").ok_or("a part without an empty line")?;
        let mut fields: Vec<_> =
            String::from_utf8_lossy(&part[..end]).trim().lines().map(str::to_ascii_lowercase).collect();
        fields.sort();
        let content = &part[end + 4..];
        shown.push(format!("[{}] {} bytes ({:016x})", fields.join("; "), content.len(), digest(content)));
    }
    match starts.last() {
        Some(&last) if body[last + delimiter.len()..] == *b"--\r\n" => Ok(shown.join(", ")),
        _ => Err("the parts do not end with their last delimiter".to_owned()),
    }
}

/// FNV-1a: short to show, and nobody here forges.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn parts_are_the_same_in_both_ways_to_write_them() {
        let ours =
            b"--b\r\nContent-Type: x\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--b\r\nContent-Type: x\r\n\
                     Content-Range: bytes 4-4/9\r\n\r\ne\r\n--b--\r\n";
        let theirs = [b"\r\n", &ours[..]].concat();
        let shown = parts(ours, "b").expect("parts");
        assert_eq!(parts(&theirs, "b"), Ok(shown.clone()));
        assert!(shown.starts_with("[content-range: bytes 0-1/9; content-type: x] 2 bytes "), "{shown}");
        assert!(parts(&ours[..ours.len() - 4], "b").is_err());
        assert!(parts(b"--b\r\nab\r\n--b--\r\n", "b").is_err());
    }
}
