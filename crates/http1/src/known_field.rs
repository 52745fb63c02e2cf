//! Known field names: recognized while parsing, found in constant time by a perfect, case-insensitive hash.

macro_rules! known {
    ($($variant:ident $name:literal)*) => {
        /// A known request field name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum KnownField {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        const ALL: &[KnownField] = &[$(KnownField::$variant,)*];
        const NAMES: &[&str] = &[$($name,)*];
    };
}

known! {
    Accept "Accept"
    AcceptCharset "Accept-Charset"
    AcceptEncoding "Accept-Encoding"
    AcceptLanguage "Accept-Language"
    AccessControlRequestHeaders "Access-Control-Request-Headers"
    AccessControlRequestMethod "Access-Control-Request-Method"
    Authorization "Authorization"
    CacheControl "Cache-Control"
    Connection "Connection"
    ContentEncoding "Content-Encoding"
    ContentLength "Content-Length"
    ContentType "Content-Type"
    Cookie "Cookie"
    Date "Date"
    Dnt "DNT"
    Expect "Expect"
    Forwarded "Forwarded"
    Host "Host"
    IfMatch "If-Match"
    IfModifiedSince "If-Modified-Since"
    IfNoneMatch "If-None-Match"
    IfRange "If-Range"
    IfUnmodifiedSince "If-Unmodified-Since"
    KeepAlive "Keep-Alive"
    MaxForwards "Max-Forwards"
    Origin "Origin"
    Pragma "Pragma"
    Priority "Priority"
    ProxyAuthorization "Proxy-Authorization"
    ProxyConnection "Proxy-Connection"
    Range "Range"
    Referer "Referer"
    SecChUa "Sec-CH-UA"
    SecChUaMobile "Sec-CH-UA-Mobile"
    SecChUaPlatform "Sec-CH-UA-Platform"
    SecFetchDest "Sec-Fetch-Dest"
    SecFetchMode "Sec-Fetch-Mode"
    SecFetchSite "Sec-Fetch-Site"
    SecFetchUser "Sec-Fetch-User"
    SecWebSocketExtensions "Sec-WebSocket-Extensions"
    SecWebSocketKey "Sec-WebSocket-Key"
    SecWebSocketProtocol "Sec-WebSocket-Protocol"
    SecWebSocketVersion "Sec-WebSocket-Version"
    Te "TE"
    Traceparent "Traceparent"
    Trailer "Trailer"
    TransferEncoding "Transfer-Encoding"
    Upgrade "Upgrade"
    UpgradeInsecureRequests "Upgrade-Insecure-Requests"
    UserAgent "User-Agent"
    Via "Via"
    XForwardedFor "X-Forwarded-For"
    XForwardedHost "X-Forwarded-Host"
    XForwardedProto "X-Forwarded-Proto"
    XRealIp "X-Real-IP"
    XRequestId "X-Request-ID"
}

impl KnownField {
    /// Number of known names. At most 64: a head keeps a set of them in one word.
    pub const COUNT: usize = ALL.len();

    /// Returns all known names, in the order of their numbers.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        ALL
    }

    /// Returns the usual spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Returns the known name that `name` spells, case-insensitively.
    #[inline]
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        find(name)
    }
}

// Field tables keep sets of names in one word.
const _: () = assert!(KnownField::COUNT <= u64::BITS as usize);

const WORD_BYTES: usize = size_of::<u64>();
/// Longest name in the table, in bytes: it fits four words.
const NAME_BYTES_MAX: usize = 4 * WORD_BYTES;
/// Longest name that fits the outer words, in bytes.
const OUTER_BYTES: usize = 2 * WORD_BYTES;

const SLOT_COUNT: usize = 256;
/// Found by trial; the assertion fails if it no longer fits after a name is added.
const MULTIPLIER: u64 = 0x550D_40DD_C255_7035;
static TABLE: NameTable = {
    assert!(is_perfect(), "two known names share a slot: try other odd multipliers");
    NameTable { slots: slots(), inner: inners() }
};

struct NameTable {
    slots: [NameSlot; SLOT_COUNT],
    /// NameWords between the outer words of names of more than 16 bytes.
    inner: [NameWords; KnownField::COUNT],
}

/// The first and the last eight bytes of a name. A shorter name is in both words: at the low end of `first`
/// and the high end of `last`, padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NameWords {
    first: u64,
    last: u64,
}

/// A known name in its usual spelling, or none, prepared for comparison. Aligned to one cache line, because
/// the kernel evicts most lines between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
struct NameSlot {
    outer: NameWords,
    /// Bits that all spellings share.
    mask: NameWords,
    /// `NO_NAME` if the slot is empty.
    len: u32,
    known: KnownField,
}

/// Longer than any name.
const NO_NAME: u32 = u32::MAX;

/// Returns the known name that `name` spells, case-insensitively.
fn find(name: &[u8]) -> Option<KnownField> {
    find_by(words(name), name.len(), |number| is_like_within(name, number))
}

/// Returns the known name at `start..end` of `bytes`. Faster than [`find`] if there are eight bytes after
/// `start` and before `end`, whatever their values.
#[inline(always)]
pub(crate) fn find_at(bytes: &[u8], start: usize, end: usize) -> Option<KnownField> {
    let first = bytes.get(start..start + WORD_BYTES).and_then(<[u8]>::first_chunk);
    let last = bytes.get(end.wrapping_sub(WORD_BYTES)..end).and_then(<[u8]>::first_chunk);
    let (Some(first), Some(last)) = (first, last) else { return find(&bytes[start..end]) };
    let len = end - start;
    // The words of an empty name begin with the colon after it, unlike any name.
    let beside = WORD_BYTES.saturating_sub(len) as u32 * u8::BITS;
    let first = u64::from_le_bytes(*first).wrapping_shl(beside).wrapping_shr(beside);
    let last = u64::from_le_bytes(*last).wrapping_shr(beside).wrapping_shl(beside);
    find_by(NameWords { first, last }, len, |number| is_like_within(&bytes[start..end], number))
}

#[inline(always)]
fn find_by(outer: NameWords, len: usize, is_like_within: impl Fn(KnownField) -> bool) -> Option<KnownField> {
    let slot = &TABLE.slots[place(outer)];
    let is_same = is_like(outer, slot.outer, slot.mask)
        && len == slot.len as usize
        && (len <= OUTER_BYTES || is_like_within(slot.known));
    is_same.then_some(slot.known)
}

/// Returns true if a name of more than 16 bytes also equals `known` between its outer words.
#[inline(never)]
fn is_like_within(name: &[u8], known: KnownField) -> bool {
    let usual = TABLE.inner[known as usize];
    is_like(inner(name), usual, mask(usual))
}

#[inline(always)]
fn is_like(words: NameWords, usual: NameWords, mask: NameWords) -> bool {
    ((words.first ^ usual.first) & mask.first) | ((words.last ^ usual.last) & mask.last) == 0
}

/// Returns the outer words.
const fn words(name: &[u8]) -> NameWords {
    match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => {
            NameWords { first: u64::from_le_bytes(*first), last: u64::from_le_bytes(*last) }
        }
        _ => words_of_short(name),
    }
}

const fn words_of_short(name: &[u8]) -> NameWords {
    let (mut first, mut last) = (0, 0);
    let mut index = 0;
    while index < name.len() {
        first |= (name[index] as u64) << (u8::BITS * index as u32);
        last = last >> u8::BITS | (name[index] as u64) << (u64::BITS - u8::BITS);
        index += 1;
    }
    NameWords { first, last }
}

/// Returns the words between the outer words of a name of more than 16 bytes.
const fn inner(name: &[u8]) -> NameWords {
    if name.len() <= OUTER_BYTES {
        return NameWords { first: 0, last: 0 };
    }
    let (_, behind_first) = name.split_at(WORD_BYTES);
    let (between, _) = behind_first.split_at(behind_first.len() - WORD_BYTES);
    words(between)
}

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD_BYTES])
}

/// Returns the slot; ignores bit 5, which distinguishes upper from lower case.
#[inline(always)]
const fn place(words: NameWords) -> usize {
    let mixed = (words.first ^ (words.last >> 1)) & splat(!0x30);
    (mixed.wrapping_mul(MULTIPLIER) >> (u64::BITS - SLOT_COUNT.ilog2())) as usize
}

const fn slots() -> [NameSlot; SLOT_COUNT] {
    let nothing = NameWords { first: 0, last: 0 };
    let empty = NameSlot { outer: nothing, mask: nothing, len: NO_NAME, known: KnownField::all()[0] };
    let mut slots = [empty; SLOT_COUNT];
    let mut index = 0;
    while index < KnownField::COUNT {
        let known = KnownField::all()[index];
        let name = known.name().as_bytes();
        assert!(name.len() <= NAME_BYTES_MAX, "a known name is longer than names are looked for");
        let outer = words(name);
        slots[place(outer)] = NameSlot { outer, mask: mask(outer), len: name.len() as u32, known };
        index += 1;
    }
    slots
}

const fn is_perfect() -> bool {
    let slots = slots();
    let mut index = 0;
    while index < KnownField::COUNT {
        let slot = &slots[place(words(KnownField::all()[index].name().as_bytes()))];
        if slot.len == NO_NAME || slot.known as usize != index {
            return false;
        }
        index += 1;
    }
    true
}

const fn inners() -> [NameWords; KnownField::COUNT] {
    let mut inners = [NameWords { first: 0, last: 0 }; KnownField::COUNT];
    let mut index = 0;
    while index < KnownField::COUNT {
        inners[index] = inner(KnownField::all()[index].name().as_bytes());
        index += 1;
    }
    inners
}

const fn mask(words: NameWords) -> NameWords {
    NameWords { first: !case_bits(words.first), last: !case_bits(words.last) }
}

/// Returns bit 5 of each letter: known names consist of letters and hyphens, which bit 6 distinguishes.
const fn case_bits(word: u64) -> u64 {
    (word & splat(0x40)) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_name_once() {
        assert!(is_perfect());
        let (slots, inners) = (slots(), inners());
        assert_eq!((slots, inners), (TABLE.slots, TABLE.inner));
        let taken = || slots.iter().filter(|slot| slot.len != NO_NAME);
        assert_eq!(taken().count(), KnownField::COUNT);
        for slot in taken() {
            let name = slot.known.name().as_bytes();
            assert_eq!((slot.outer, slot.len as usize), (words(name), name.len()));
            assert!(is_like(words(&name.to_ascii_lowercase()), slot.outer, slot.mask), "{:?}", slot.known);
            assert_eq!(inners[slot.known as usize], inner(name));
        }
    }

    /// Tests each known name, and each with one byte changed, in both cases, at the start, at the end and
    /// within a head.
    #[test]
    fn finds_a_name_wherever_it_is() {
        for known in KnownField::all() {
            assert_eq!(find(known.name().to_ascii_uppercase().as_bytes()), Some(*known));
            for place in 0..=known.name().len() {
                for byte in *b"\0\r-_aA" {
                    let mut name = known.name().to_ascii_lowercase().into_bytes();
                    if let Some(other) = name.get_mut(place) {
                        *other = byte;
                    }
                    let expected = name.eq_ignore_ascii_case(known.name().as_bytes()).then_some(*known);
                    for (before, behind) in
                        [("", ""), ("a\r\n", ":"), ("12345678", "12345678"), ("", ": long enough")]
                    {
                        let head = [before.as_bytes(), &name, behind.as_bytes()].concat();
                        let found = find_at(&head, before.len(), before.len() + name.len());
                        assert_eq!((found, find(&name)), (expected, expected), "{}", head.escape_ascii());
                    }
                }
            }
        }
        assert_eq!((find(b""), find_at(b"12345678:12345678", 8, 8)), (None, None));
    }
}
