//! Request targets: the parts are those of the target, dot segments are resolved, and the name of a path is decoded once and
//! stays inside the folder.

use std::path::{Component, Path};

use shearwater_files::resolve::path::{ResolvedPath, Shape, resolve};
use shearwater_http1::{HeadLimits, HeadParser, Method, ParseError, Parsed, Target};

/// Methods that the first byte chooses from.
const METHODS: &[&str] = &["GET", "OPTIONS", "CONNECT", "POST"];

/// Parses the target in `input`, after a byte that chooses the method; resolves its path, and the input as a path.
pub fn run(input: &[u8]) {
    let Some((&choice, target)) = input.split_first() else { return };
    let method = METHODS[usize::from(choice) % METHODS.len()];
    let request = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
    let mut parser = HeadParser::new(HeadLimits::default());
    let parsed = parser.parse(&request);
    if parsed == Err(ParseError::PathAboveRoot) {
        let is_encoded = |at: usize| target[at..].starts_with(b".") || target[at..].starts_with(b"%2");
        assert!((0..target.len()).any(is_encoded), "no dots in {}", target.escape_ascii());
    }
    if let Ok(Parsed::Complete { head_len }) = parsed {
        let head = parser.head(&request);
        // With line ends in it, a target is another head.
        if head_len == request.len() && head.target_str().as_bytes() == target {
            check_parts(head.method(), head.target(), head.target_str());
            check_dots(head.target(), head.path());
            check_path(head.path());
        }
    }
    check_path(&String::from_utf8_lossy(target));
}

/// Joins the parts to the target again, and checks each part by its form.
fn check_parts(method: Method, target: Target<'_>, whole: &str) {
    let with_query = |path: &str, query: Option<&str>| match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let is_path = |path: &str| path.starts_with('/') && !path.contains('?');
    let joined = match target {
        Target::Origin { path, query } => {
            assert!(is_path(path) && method != Method::Connect, "a path: {path}");
            with_query(path, query)
        }
        Target::Absolute { scheme, authority, path, query } => {
            assert!(path.is_empty() || is_path(path), "a path: {path}");
            assert!(scheme.starts_with(|first: char| first.is_ascii_alphabetic()), "a scheme: {scheme}");
            assert!(
                !authority.is_empty() && !authority.contains(['/', '?', '@']),
                "an authority: {authority}"
            );
            format!("{scheme}://{authority}{}", with_query(path, query))
        }
        Target::Authority { host, port } => {
            assert!(method == Method::Connect && !host.is_empty(), "a host: {host}");
            assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "a port: {port}");
            format!("{host}:{port}")
        }
        Target::Asterisk => {
            assert_eq!(method, Method::Options);
            "*".to_owned()
        }
    };
    assert_eq!(joined, whole);
}

/// Checks that `path` is the target's with each dot segment removed, by the steps of RFC 3986 section 5.2.4.
fn check_dots(target: Target<'_>, path: &str) {
    let (Target::Origin { path: sent, .. } | Target::Absolute { path: sent, .. }) = target else { return };
    if sent.is_empty() {
        return assert!(matches!(path, "/" | "*"), "{path}");
    }
    let (mut rest, mut output) = (sent.to_owned(), String::new());
    while !rest.is_empty() {
        let end = rest[1..].find('/').map_or(rest.len(), |at| at + 1);
        let after = rest.split_off(end);
        let plain = rest.replace("%2e", ".").replace("%2E", ".");
        let is_last = after.is_empty();
        match &*plain {
            "/." => {}
            "/.." => {
                let parent = output.rfind('/').unwrap_or_else(|| panic!("{sent} leaves the root"));
                output.truncate(parent);
            }
            _ => output.push_str(&rest),
        }
        rest = if is_last && matches!(&*plain, "/." | "/..") { "/".to_owned() } else { after };
    }
    assert_eq!(path, output, "{sent}");
}

/// Checks that `path` resolves to its plain decoding, inside the folder, or to nothing.
fn check_path(path: &str) {
    let mut name = b"left over".to_vec();
    let resolved = resolve(path, &mut name);
    let plain = plain_name(path);
    let Ok(ResolvedPath { shape, is_hidden }) = resolved else {
        return assert_eq!(plain, None, "{path:?} is rejected");
    };
    assert_inside(&name);
    let is_directory = name.is_empty() || name.ends_with(b"/");
    assert_eq!(shape == Shape::Directory, is_directory, "{path:?}");
    assert_eq!(plain.as_deref(), Some(&name[..]), "the name of {path:?}");
    // A leading `.well-known` is not hidden.
    let open = name == b".well-known" || name.starts_with(b".well-known/");
    let rest = if open { &name[1..] } else { &name[..] };
    let has_dot = rest.starts_with(b".") || rest.windows(2).any(|pair| pair == b"/.");
    assert_eq!(is_hidden, has_dot, "{path:?}");
}

/// Asserts that no reader of names can leave the folder by `name`.
fn assert_inside(name: &[u8]) {
    assert!(!name.contains(&0) && !name.starts_with(b"/"), "a name: {}", name.escape_ascii());
    let segments = name.strip_suffix(b"/").unwrap_or(name).split(|&byte| byte == b'/');
    let is_dots = |segment: &[u8]| matches!(segment, b"." | b"..");
    assert!(!segments.into_iter().any(is_dots), "a way out: {}", name.escape_ascii());
    if let Ok(text) = std::str::from_utf8(name) {
        let is_normal = |part| matches!(part, Component::Normal(_));
        assert!(Path::new(text).components().all(is_normal), "a way out: {text}");
    }
}

/// Decodes a path's segments once, without the empty ones. Returns `None` for an encoded NUL or `/`, `.` or `..`.
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
        match piece.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Some(digits) => {
                name.push(u8::from_str_radix(digits, 16).ok()?);
                name.extend_from_slice(&piece.as_bytes()[2..]);
            }
            None => name.extend([b"%", piece.as_bytes()].concat()),
        }
    }
    let is_name = !name.contains(&0) && !name.contains(&b'/') && name != b"." && name != b"..";
    is_name.then_some(name)
}
