//! Request targets: what the parser takes them apart into is what stands there; and the name that a path resolves to is decoded once and
//! never leaves the folder.

use std::path::{Component, Path};

use shearwater_files::resolve::{self, Resolved, Shape};
use shearwater_http1::{HeadLimits, HeadParser, Method, Parsed, Target};

/// The methods that a first byte chooses from.
const METHODS: &[&str] = &["GET", "OPTIONS", "CONNECT", "POST"];

/// Sends the target in `input`, behind one byte that chooses the method; resolves its path, and the input itself as one.
///
/// # Panics
/// Where the parts are not those of the target, or a name leaves the folder or differs from a plain decoding.
pub fn run(input: &[u8]) {
    let Some((&choice, target)) = input.split_first() else { return };
    let method = METHODS[usize::from(choice) % METHODS.len()];
    let mut request = format!("{method} ").into_bytes();
    request.extend_from_slice(target);
    request.extend_from_slice(b" HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut parser = HeadParser::new(HeadLimits::default());
    if let Ok(Parsed::Complete { head_len }) = parser.parse(&request) {
        // A target may contain line ends, which make another head of it.
        let head = parser.head(&request);
        if head_len == request.len() && head.target_str().as_bytes() == target {
            check_parts(head.method(), head.target(), head.target_str());
            check_path(head.path());
        }
    }
    check_path(&String::from_utf8_lossy(target));
}

/// The parts put together again are the target; each part is what its form allows.
fn check_parts(method: Method, target: Target<'_>, whole: &str) {
    let with_query = |path: &str, query: Option<&str>| match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let is_path = |path: &str| path.starts_with('/') && !path.contains('?');
    match target {
        Target::Origin { path, query } => {
            assert!(is_path(path) && method != Method::Connect, "a path: {path}");
            assert_eq!(with_query(path, query), whole);
        }
        Target::Absolute { scheme, authority, path, query } => {
            assert!(path.is_empty() || is_path(path), "a path: {path}");
            assert!(scheme.starts_with(|first: char| first.is_ascii_alphabetic()), "a scheme: {scheme}");
            assert!(
                !authority.is_empty() && !authority.contains(['/', '?', '@']),
                "an authority: {authority}"
            );
            assert_eq!(format!("{scheme}://{authority}{}", with_query(path, query)), whole);
        }
        Target::Authority { host, port } => {
            assert!(method == Method::Connect && !host.is_empty(), "a host: {host}");
            assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "a port: {port}");
            assert_eq!(format!("{host}:{port}"), whole);
        }
        Target::Asterisk => assert!(method == Method::Options && whole == "*", "{whole}"),
    }
}

/// The name that `path` resolves to stays inside and is the path decoded once; or there is none.
fn check_path(path: &str) {
    let mut name = b"left over".to_vec();
    let resolved = resolve::resolve(path, &mut name);
    let plain = plain_name(path);
    match resolved {
        Err(_) => assert_eq!(plain, None, "{path:?} is refused"),
        Ok(Resolved { shape, is_hidden }) => {
            assert_inside(&name);
            let is_directory = name.is_empty() || name.ends_with(b"/");
            assert_eq!(shape == Shape::Directory, is_directory, "{path:?}");
            assert_eq!(plain.as_deref(), Some(&name[..]), "the name of {path:?}");
            assert_eq!(is_hidden, has_hidden_segment(&name), "{path:?}");
        }
    }
}

/// A segment begins with a dot; `.well-known` in the first place doesn't count.
fn has_hidden_segment(name: &[u8]) -> bool {
    let open = name == b".well-known" || name.starts_with(b".well-known/");
    let rest = if open { &name[1..] } else { name };
    rest.starts_with(b".") || rest.windows(2).any(|pair| pair == b"/.")
}

/// No way out of the folder, for any reader of names.
fn assert_inside(name: &[u8]) {
    assert!(!name.contains(&0), "a NUL in {}", name.escape_ascii());
    assert!(!name.starts_with(b"/"), "from the root: {}", name.escape_ascii());
    let segments = name.strip_suffix(b"/").unwrap_or(name).split(|&byte| byte == b'/');
    let is_dots = |segment: &[u8]| matches!(segment, b"." | b"..");
    assert!(!segments.into_iter().any(is_dots), "a way out: {}", name.escape_ascii());
    if let Ok(text) = std::str::from_utf8(name) {
        let is_normal = |part| matches!(part, Component::Normal(_));
        assert!(Path::new(text).components().all(is_normal), "a way out: {text}");
    }
}

/// The path's segments without the empty ones, each decoded once; a `/` at the end if there is one. `None` where a segment has a
/// broken escape, a NUL or `/` that was encoded, or is `.` or `..`.
fn plain_name(path: &str) -> Option<Vec<u8>> {
    let inner = path.strip_prefix('/')?;
    let segments = inner.split('/').filter(|segment| !segment.is_empty());
    let names: Vec<Vec<u8>> = segments.map(plain_segment).collect::<Option<_>>()?;
    let mut name = names.join(&b'/');
    if !name.is_empty() && inner.ends_with('/') {
        name.push(b'/');
    }
    Some(name)
}

fn plain_segment(segment: &str) -> Option<Vec<u8>> {
    let mut pieces = segment.split('%');
    let mut name = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        name.push(u8::from_str_radix(digits, 16).ok()?);
        name.extend_from_slice(&piece.as_bytes()[2..]);
    }
    let is_name = !name.contains(&0) && !name.contains(&b'/') && name != b"." && name != b"..";
    is_name.then_some(name)
}
