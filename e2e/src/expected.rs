//! A response as it must arrive, byte for byte apart from its date.

use std::ops::Range;

use testkit::Response;

/// A date of RFC 9110 section 5.6.7: `A` is a capital letter, `a` a small one, `0` a digit.
const DATE_SHAPE: &[u8; 29] = b"Aaa, 00 Aaa 0000 00:00:00 GMT";

/// A response with the place of its date.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    bytes: Vec<u8>,
    date: Range<usize>,
}

impl Expected {
    /// Takes a response as the expected one.
    pub(crate) fn new(response: &Response) -> Result<Self, String> {
        let head = response.head.text();
        let name = head.to_ascii_lowercase().find("\r\ndate: ").ok_or("a response without Date")?;
        let start = name + "\r\ndate: ".len();
        let date = start..start + DATE_SHAPE.len();
        let bytes = [head.as_bytes(), &response.body].concat();
        let expected = Self { date: 0..0, bytes };
        let has_date = expected.bytes.get(date.clone()).is_some_and(|date| (0..).zip(date).all(is_in_date));
        if has_date { Ok(Self { date, ..expected }) } else { Err(format!("a malformed Date in {head:?}")) }
    }

    /// Length of head and body.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if the response may have these bytes at `at`.
    pub(crate) fn matches(&self, at: usize, found: &[u8]) -> bool {
        let end = at + found.len();
        let same = |from: usize, to: usize| {
            let (from, to) = (from.max(at), to.min(end));
            from >= to || found[from - at..to - at] == self.bytes[from..to]
        };
        let mut date = at.max(self.date.start)..end.min(self.date.end);
        end <= self.len()
            && same(0, self.date.start)
            && date.all(|place| is_in_date((place - self.date.start, &found[place - at])))
            && same(self.date.end, self.len())
    }

    /// Returns true if this is the response.
    pub(crate) fn equals(&self, response: &Response) -> bool {
        self.is(&[response.head.text().as_bytes(), &response.body].concat())
    }

    /// Returns true if these bytes are the whole response.
    pub(crate) fn is(&self, found: &[u8]) -> bool {
        found.len() == self.len() && self.matches(0, found)
    }
}

fn is_in_date((place, byte): (usize, &u8)) -> bool {
    match DATE_SHAPE[place] {
        b'A' => byte.is_ascii_uppercase(),
        b'a' => byte.is_ascii_lowercase(),
        b'0' => byte.is_ascii_digit(),
        other => *byte == other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use testkit::{Head, Response};

    use super::Expected;

    pub(crate) const HEAD: &str =
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 4\r\n\r\n";

    pub(crate) fn expected(body: &str) -> Expected {
        let head = Head::parse(HEAD.as_bytes()).unwrap();
        Expected::new(&Response { head, body: body.as_bytes().to_vec() }).unwrap()
    }

    #[test]
    fn any_date_matches_and_any_other_byte_does_not() {
        let good = format!("{HEAD}body")
            .replace("Thu, 01 Jan 1970 00:00:00", "Sat, 21 Nov 2026 23:59:58")
            .into_bytes();
        let expected = expected("body");
        assert!(expected.is(&good));
        for (piece, at) in (1..good.len()).flat_map(|piece| [(piece, 0), (piece, good.len() - piece)]) {
            assert!(expected.matches(at, &good[at..at + piece]), "{piece} bytes at {at}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] = b'#';
            assert!(!expected.is(&bad), "byte {at}");
        }
        assert!(!expected.is(&good[..good.len() - 1]));
        assert!(!expected.is(&[good.as_slice(), b"x"].concat()));
    }
}
