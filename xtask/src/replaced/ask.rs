//! What a client asks for.

use super::content::WORD;
use super::kind::Kind;
use super::site::Changing;
use crate::harness::client::request_with;
use crate::harness::random::Random;

/// One request for a file.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) target: &'static str,
    /// Whether a packed sibling would do.
    pub(super) takes_packed: bool,
    /// The first byte and the number of bytes that are asked for.
    pub(super) part: Option<(usize, usize)>,
    /// The version that the client has.
    pub(super) has: Option<String>,
    /// Whether the body is read with pauses.
    pub(super) is_slow: bool,
}

impl Ask {
    /// A request by chance. `has` is the last tag that was seen.
    pub(super) fn random(file: &Changing, kind: Kind, has: Option<&String>, random: &mut Random) -> Self {
        let len = file.forms[0].target.len;
        let kinds = random.below(16);
        Self {
            target: file.path,
            takes_packed: file.forms.len() > 1 && random.below(2) == 0,
            part: (kinds < 3).then(|| part(len, kind, random)),
            has: if (3..5).contains(&kinds) { has.cloned() } else { None },
            is_slow: kinds == 5,
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut fields = String::new();
        if self.takes_packed {
            fields.push_str("Accept-Encoding: gzip\r\n");
        }
        if let Some((first, len)) = self.part {
            fields.push_str(&format!("Range: bytes={first}-{}\r\n", first + len - 1));
        }
        if let Some(tag) = &self.has {
            fields.push_str(&format!("If-None-Match: {tag}\r\n"));
        }
        request_with("GET", self.target, &fields)
    }
}

/// A part that a file of a quarter of the length still has. Of a file that is rewritten in place it has the first word, which
/// says whether it is half written.
fn part(len: usize, kind: Kind, random: &mut Random) -> (usize, usize) {
    let words = (len / WORD / 8) as u64;
    let first = if kind == Kind::Rewritten { 0 } else { random.below(words) as usize * WORD };
    (first, (1 + random.below(words) as usize) * WORD)
}
