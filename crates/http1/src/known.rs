//! KnownField field names: recognized while parsing, found in constant time.

use crate::name_hash;

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
        name_hash::find(name)
    }
}

// Field tables keep sets of names in one word.
const _: () = assert!(KnownField::COUNT <= u64::BITS as usize);
