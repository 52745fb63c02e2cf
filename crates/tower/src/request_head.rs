//! Conversion of request heads from the engine's form to that of `http`.

use std::mem::{self, ManuallyDrop};
use std::sync::LazyLock;

use bytes::Bytes;
use http::uri::{self, Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use shearwater::Method;
use shearwater::engine::{Field, Head, KnownField, Version};

use crate::head_pool::{HeadPool, HeaderValueCache};

/// Maximum length in bytes of a target in `http`.
const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;

/// The status and text of the response to a request that the engine accepts and `http` can't represent.
pub(crate) type HeadError = (u16, &'static str);

const BAD: HeadError = (400, "The request has no form that the application could read.\n");
const TARGET_TOO_LONG: HeadError = (414, "The target is too long.\n");
const TOO_MANY_FIELDS: HeadError = (431, "There are too many fields.\n");
const UNKNOWN_METHOD: HeadError = (501, "The method is unknown.\n");

/// Converts a head. The target and field values are slices of one copy of the head, or cached values.
///
/// The target keeps the form in which it was sent: `/path?query`, absolute or `*` (RFC 9112 section 3.2). Values may
/// contain bytes above 0x7F (obs-text).
///
/// An HTTP/2 request with an authority has an absolute target with `scheme`, and no `Host`, as with hyper.
pub(crate) fn request<B>(
    head: &Head<'_>,
    scheme: Option<Scheme>,
    body: B,
    pool: &mut HeadPool,
) -> Result<Request<B>, HeadError> {
    let method = method(head)?;
    let raw = head.raw();
    let copy = pool.copy(raw);
    let cut = |part: &[u8]| cut(raw, &copy, part);
    let origin = scheme.zip(head.authority());
    let is_host_in_uri = origin.is_some();
    let target = head.target_str();
    let uri = match origin {
        Some((scheme, sent)) if is_path(target) => from_parts(scheme, sent, target, &mut pool.values, cut)?,
        _ => uri(target, cut)?,
    };
    let fields = head.fields();
    let mut map = pool.map(fields.size_hint().0);
    let fields = fields.filter(|field| !(is_host_in_uri && field.known == Some(KnownField::Host)));
    if let Err(error) = fill(&mut map, fields, &mut pool.values, cut) {
        pool.put(map);
        return Err(error);
    }
    let mut request = Request::new(body);
    *request.version_mut() = version(head.version());
    fill_in(request.method_mut(), method);
    fill_in(request.uri_mut(), uri);
    fill_in(request.headers_mut(), map);
    Ok(request)
}

/// Replaces an empty part of a new request without dropping it, which would cost a check each time.
fn fill_in<T>(target: &mut T, part: T) {
    let _empty = ManuallyDrop::new(mem::replace(target, part));
}

fn fill<'a>(
    map: &mut HeaderMap,
    fields: impl Iterator<Item = Field<'a>>,
    cache: &mut HeaderValueCache,
    cut: impl Fn(&[u8]) -> Bytes,
) -> Result<(), HeadError> {
    for field in fields {
        let name = match field.known {
            Some(known) => name(known).clone(),
            None => HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| BAD)?,
        };
        let value = match field.known.and_then(|known| cache.get(known, field.value)) {
            Some(value) => value,
            None => HeaderValue::from_maybe_shared(cut(field.value)).map_err(|_| BAD)?,
        };
        map.try_append(name, value).map_err(|_| TOO_MANY_FIELDS)?;
    }
    Ok(())
}

/// Returns the slice of `copy` with the same bytes as `part` of `raw`.
fn cut(raw: &[u8], copy: &Bytes, part: &[u8]) -> Bytes {
    let start = (part.as_ptr() as usize).wrapping_sub(raw.as_ptr() as usize);
    match start.checked_add(part.len()) {
        Some(end) if end <= copy.len() => copy.slice(start..end),
        // An empty part may point anywhere.
        _ => Bytes::copy_from_slice(part),
    }
}

fn method(head: &Head<'_>) -> Result<http::Method, HeadError> {
    Ok(match head.method() {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Delete => http::Method::DELETE,
        Method::Connect => http::Method::CONNECT,
        Method::Options => http::Method::OPTIONS,
        Method::Trace => http::Method::TRACE,
        Method::Patch => http::Method::PATCH,
        _ => {
            let name = head.method_name().as_bytes();
            http::Method::from_bytes(name).map_err(|_| UNKNOWN_METHOD)?
        }
    })
}

fn uri(target: &str, cut: impl Fn(&[u8]) -> Bytes) -> Result<Uri, HeadError> {
    if target.starts_with('/') {
        return path(target, cut).map(Uri::from);
    }
    if target.len() > TARGET_BYTES_MAX {
        return Err(TARGET_TOO_LONG);
    }
    Uri::from_maybe_shared(cut(target.as_bytes())).map_err(|_| BAD)
}

fn path(target: &str, cut: impl Fn(&[u8]) -> Bytes) -> Result<PathAndQuery, HeadError> {
    if target == "/" {
        return Ok(PathAndQuery::from_static("/"));
    }
    if target.len() > TARGET_BYTES_MAX {
        return Err(TARGET_TOO_LONG);
    }
    PathAndQuery::from_maybe_shared(cut(target.as_bytes())).map_err(|_| BAD)
}

/// Returns false for a target with an authority of its own.
fn is_path(target: &str) -> bool {
    target.starts_with('/') || target == "*"
}

/// Returns the URI of an HTTP/2 request.
fn from_parts(
    scheme: Scheme,
    sent: &str,
    target: &str,
    cache: &mut HeaderValueCache,
    cut: impl Fn(&[u8]) -> Bytes,
) -> Result<Uri, HeadError> {
    let authority = match cache.authority(sent.as_bytes()) {
        Some(authority) => authority,
        None => Authority::from_maybe_shared(cut(sent.as_bytes())).map_err(|_| BAD)?,
    };
    let mut parts = uri::Parts::default();
    (parts.scheme, parts.authority) = (Some(scheme), Some(authority));
    parts.path_and_query = Some(path(target, cut)?);
    Uri::from_parts(parts).map_err(|_| BAD)
}

fn version(version: Version) -> http::Version {
    match version {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http11 => http::Version::HTTP_11,
        Version::Http2 => http::Version::HTTP_2,
    }
}

/// Names of known request fields as `http` has them, indexed by [`KnownField`], so that no request allocates one.
static NAMES: LazyLock<Box<[HeaderName]>> =
    LazyLock::new(|| KnownField::all().iter().map(|known| of(*known)).collect());

/// Returns the name of a field. Cloning it doesn't allocate.
fn name(known: KnownField) -> &'static HeaderName {
    &NAMES[known as usize]
}

/// Creates a name. About twenty that `http` doesn't know itself are leaked.
fn of(known: KnownField) -> HeaderName {
    HeaderName::from_static(Box::leak(known.name().to_ascii_lowercase().into_boxed_str()))
}

#[cfg(test)]
mod tests {
    use http::uri::Scheme;
    use http::{Request, header};
    use shearwater::engine::KnownField;
    use shearwater_http1::{HeadLimits, HeadParser, Parsed};

    use super::{HeadError, HeadPool, TARGET_TOO_LONG, name};

    /// Converts a head that the engine accepts.
    fn parsed(text: impl AsRef<[u8]>) -> Result<Request<()>, HeadError> {
        parsed_if_read(text.as_ref()).expect("the engine takes it")
    }

    /// Converts a head, or returns `None` if the engine rejects it.
    fn parsed_if_read(text: &[u8]) -> Option<Result<Request<()>, HeadError>> {
        parsed_with(None, text)
    }

    fn parsed_with(scheme: Option<Scheme>, text: &[u8]) -> Option<Result<Request<()>, HeadError>> {
        let mut parser = HeadParser::new(HeadLimits {
            target_bytes_max: 100_000,
            head_bytes_max: 200_000,
            ..HeadLimits::default()
        });
        match parser.parse(text) {
            Ok(Parsed::Complete { head_len }) if head_len == text.len() => {}
            _ => return None,
        }
        Some(super::request(&parser.head(text), scheme, (), &mut HeadPool::new()))
    }

    #[test]
    fn converts_method_target_and_version() {
        for (line, method, uri, version) in [
            ("GET / HTTP/1.1", "GET", "/", http::Version::HTTP_11),
            ("GET /a%20b?c=d&e HTTP/1.0", "GET", "/a%20b?c=d&e", http::Version::HTTP_10),
            ("GET /? HTTP/1.1", "GET", "/?", http::Version::HTTP_11),
            ("HEAD //a/../b HTTP/1.1", "HEAD", "//a/../b", http::Version::HTTP_11),
            ("OPTIONS * HTTP/1.1", "OPTIONS", "*", http::Version::HTTP_11),
            (
                "POST http://example.org:8080/x?y HTTP/1.1",
                "POST",
                "http://example.org:8080/x?y",
                http::Version::HTTP_11,
            ),
            ("PROPFIND /dav HTTP/1.1", "PROPFIND", "/dav", http::Version::HTTP_11),
            (
                "A-RATHER-LONG-METHOD-OF-32-BYTES /x HTTP/1.1",
                "A-RATHER-LONG-METHOD-OF-32-BYTES",
                "/x",
                http::Version::HTTP_11,
            ),
        ] {
            let request = parsed(format!("{line}\r\nHost: example.org\r\n\r\n")).expect(line);
            assert_eq!(request.method().as_str(), method);
            assert_eq!(request.uri().to_string(), uri);
            assert_eq!(request.version(), version);
        }
    }

    #[test]
    fn splits_a_target_into_its_parts() {
        let request =
            parsed("GET http://example.org:81/p?q HTTP/1.1\r\nHost: example.org:81\r\n\r\n").expect("fit");
        let uri = request.uri();
        assert_eq!(uri.scheme_str(), Some("http"));
        assert_eq!(uri.authority().map(|authority| authority.as_str()), Some("example.org:81"));
        assert_eq!((uri.path(), uri.query()), ("/p", Some("q")));
        let request = parsed("GET /p?q HTTP/1.1\r\nHost: example.org\r\n\r\n").expect("fit");
        assert_eq!(
            (request.uri().host(), request.uri().path(), request.uri().query()),
            (None, "/p", Some("q"))
        );
    }

    /// RFC 9112 section 3.2.2.
    #[test]
    fn replaces_host_by_that_of_an_absolute_target() {
        let request =
            parsed("GET http://target.example:81/p HTTP/1.1\r\nX: 1\r\nhost: field.example\r\n\r\n");
        let request = request.expect("fit");
        let hosts: Vec<_> = request.headers().get_all(header::HOST).iter().collect();
        assert_eq!(hosts, ["target.example:81"]);
        assert_eq!(request.headers()["x"], "1");
    }

    /// The form of HTTP/2 requests of another scheme than that of the connection.
    #[test]
    fn leaves_an_absolute_target_its_scheme() {
        let head = b"GET https://target.example/p HTTP/1.1\r\nHost: target.example\r\nX: 1\r\n\r\n";
        let request = parsed_with(Some(Scheme::HTTP), head).expect("the engine takes it").expect("fit");
        assert_eq!(request.uri(), "https://target.example/p");
        assert_eq!(
            (request.headers().len(), &request.headers()["x"]),
            (1, &header::HeaderValue::from_static("1"))
        );
    }

    #[test]
    fn keeps_bytes_and_order_of_fields() {
        let head = b"GET / HTTP/1.1\r\nHost: h\r\nx-own: 1\r\nCOOKIE: a=b\r\nCookie: c=d\r\nX-Own: \xE9t\xE9\r\nX-Empty:\r\nDNT: 1\r\n\r\n";
        let request = parsed(head).expect("fit");
        let all = |name: &str| -> Vec<Vec<u8>> {
            request.headers().get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect()
        };
        assert_eq!(all("cookie"), [b"a=b".to_vec(), b"c=d".to_vec()]);
        assert_eq!(all("x-own"), [b"1".to_vec(), b"\xE9t\xE9".to_vec()]);
        assert_eq!(all("x-empty"), [b"".to_vec()]);
        assert_eq!(request.headers()[header::HOST], "h");
        assert_eq!(request.headers()[header::DNT], "1");
        assert_eq!(request.headers().len(), 7);
    }

    #[test]
    fn rejects_what_http_cannot_represent() {
        let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(70_000));
        assert_eq!(parsed(long).expect_err("too long"), TARGET_TOO_LONG);
        let (mut fit, mut unfit) = (0, 0);
        for byte in 0..=u8::MAX {
            for (before, behind) in [
                ("GET /a", "b HTTP/1.1\r\nHost: h\r\n\r\n"),
                ("GET /?a", "b HTTP/1.1\r\nHost: h\r\n\r\n"),
                ("GET http://h", "/ HTTP/1.1\r\nHost: h\r\n\r\n"),
                ("A", "B / HTTP/1.1\r\nHost: h\r\n\r\n"),
                ("GET / HTTP/1.1\r\nHost: h\r\nx-", "a: b\r\n\r\n"),
                ("GET / HTTP/1.1\r\nHost: h\r\nx: a", "b\r\n\r\n"),
            ] {
                let text = [before.as_bytes(), &[byte], behind.as_bytes()].concat();
                match parsed_if_read(&text) {
                    None => {}
                    Some(Ok(_)) => fit += 1,
                    Some(Err((status, _))) => {
                        assert!((400..=501).contains(&status));
                        unfit += 1;
                    }
                }
            }
        }
        assert!(fit > 500, "{fit} fit, {unfit} don't");
    }

    #[test]
    fn knows_the_name_of_each_field() {
        for known in KnownField::all() {
            assert_eq!(name(*known).as_str(), known.name().to_ascii_lowercase());
        }
    }
}
