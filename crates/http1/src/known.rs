//! Field names that have a number: known while parsing, found again in constant time.

macro_rules! known {
    ($($variant:ident $name:literal)*) => {
        /// A request field name with a number of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        const ALL: &[Known] = &[$(Known::$variant,)*];
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
    SecFetchDest "Sec-Fetch-Dest"
    SecFetchMode "Sec-Fetch-Mode"
    SecFetchSite "Sec-Fetch-Site"
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

impl Known {
    /// How many names are known. At most 64: a head keeps a set of them in one word.
    pub const COUNT: usize = ALL.len();

    /// All known names, in the order of their numbers.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The usual spelling.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The known name that `name` spells, in any case.
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let candidate = *ALL.get(SLOTS[slot(name)] as usize)?;
        let usual = candidate.name().as_bytes();
        // Nearly everyone sends the usual spelling, and equality is the quicker question.
        (usual == name || usual.eq_ignore_ascii_case(name)).then_some(candidate)
    }
}

// A perfect hash: each known name has a slot of its own, so one comparison decides.
const _: () = assert!(Known::COUNT <= 64);
const SLOT_COUNT: usize = 256;
/// Found by trial; the assertion says whether it still fits when a name is added.
const MULTIPLIER: u32 = 0x0362_1F97;
const _: () = assert!(is_perfect(), "two known names share a slot: try other odd multipliers");
static SLOTS: [u8; SLOT_COUNT] = slots();
/// The content of a slot that belongs to no name.
const FREE: u8 = u8::MAX;

/// A name's slot, from its length and three of its letters in lower case.
#[inline]
const fn slot(name: &[u8]) -> usize {
    if name.is_empty() {
        return 0;
    }
    let first = name[0] | 0x20;
    let middle = name[name.len() / 2] | 0x20;
    let later = name[name.len() * 3 / 4] | 0x20;
    let letters = u32::from_le_bytes([first, middle, later, name.len() as u8]);
    (letters.wrapping_mul(MULTIPLIER) >> (u32::BITS - SLOT_COUNT.ilog2())) as usize
}

const fn is_perfect() -> bool {
    let slots = slots();
    let mut index = 0;
    while index < NAMES.len() {
        if slots[slot(NAMES[index].as_bytes())] as usize != index {
            return false;
        }
        index += 1;
    }
    true
}

const fn slots() -> [u8; SLOT_COUNT] {
    let mut slots = [FREE; SLOT_COUNT];
    let mut index = 0;
    while index < NAMES.len() {
        slots[slot(NAMES[index].as_bytes())] = index as u8;
        index += 1;
    }
    slots
}
