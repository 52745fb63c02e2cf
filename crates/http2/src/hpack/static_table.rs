//! The static table (RFC 7541 appendix A).

/// Its entries, numbered from 1.
#[rustfmt::skip]
const ENTRIES: [(&str, &str); LEN] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""),
    ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""),
    ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""),
    ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""),
    ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""),
    ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// Number of entries.
pub(super) const LEN: usize = 61;

/// First entry of a status; the next ones have those of [`STATUSES`].
pub(super) const STATUS: usize = 8;
/// Statuses with an entry.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// Entry of the content's length.
pub(super) const LENGTH: usize = 28;

/// Returns name and value of the entry with a number from 1 to 61.
pub(super) fn get(number: usize) -> Option<(&'static [u8], &'static [u8])> {
    let (name, value) = ENTRIES.get(number.checked_sub(1)?)?;
    Some((name.as_bytes(), value.as_bytes()))
}

/// Returns the entry of a whole `:status` field.
pub(super) fn of_status(status: u16) -> Option<usize> {
    STATUSES.iter().position(|&entry| entry == status).map(|place| STATUS + place)
}

/// First entry of a regular name.
const REGULAR: usize = 15;

/// For each length of a name, the entries with a regular name of that length: a set of bits.
static BY_LENGTH: [u64; NAME_BYTES_MAX + 1] = by_length();
const NAME_BYTES_MAX: usize = "access-control-allow-origin".len();

const fn by_length() -> [u64; NAME_BYTES_MAX + 1] {
    let mut sets = [0; NAME_BYTES_MAX + 1];
    let mut number = REGULAR;
    while number <= LEN {
        sets[ENTRIES[number - 1].0.len()] |= 1 << number;
        number += 1;
    }
    sets
}

/// Returns the entry with a regular name in lower case.
pub(super) fn of_name(name: &[u8]) -> Option<usize> {
    let mut candidates = *BY_LENGTH.get(name.len())?;
    while candidates != 0 {
        let number = candidates.trailing_zeros() as usize;
        if ENTRIES[number - 1].0.as_bytes() == name {
            return Some(number);
        }
        candidates &= candidates - 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_it_has() {
        assert_eq!(get(1), Some((&b":authority"[..], &b""[..])));
        assert_eq!(get(61), Some((&b"www-authenticate"[..], &b""[..])));
        assert_eq!((get(0), get(62)), (None, None));
        assert_eq!(get(LENGTH).map(|(name, _)| name), Some(&b"content-length"[..]));
        for number in REGULAR..=LEN {
            assert_eq!(of_name(get(number).expect("an entry").0), Some(number));
        }
        assert_eq!((of_name(b":path"), of_name(b""), of_name(b"x-own")), (None, None, None));
        for status in STATUSES {
            let number = of_status(status).expect("an entry");
            assert_eq!(get(number), Some((&b":status"[..], status.to_string().as_bytes())));
        }
        assert_eq!(of_status(201), None);
    }
}
