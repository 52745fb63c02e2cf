//! The grammar of media types (RFC 9110 8.3.1) and of the tokens in them (5.6.2).

use std::iter;

use crate::scan;

/// Optional white space (RFC 9110 5.6.3).
const OWS: [char; 2] = [' ', '\t'];

/// Returns whether a text is a token: a name, such as that of a header or a charset.
#[must_use]
pub fn is_token(text: &str) -> bool {
    scan::is_token(text.as_bytes())
}

/// Returns whether a text is a media type, perhaps with parameters: `type/subtype *( OWS ";" OWS parameter )`.
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let (essence, parameters) = text.split_at(text.find([';', ' ', '\t']).unwrap_or(text.len()));
    is_media_range(essence) && !essence.ends_with("/*") && are_parameters(parameters)
}

/// Returns whether a text is `type/subtype` or `type/*`, without parameters.
#[must_use]
pub fn is_media_range(text: &str) -> bool {
    let is_range = |(kind, subtype): (&str, &str)| is_token(kind) && is_token(subtype) && kind != "*";
    text.split_once('/').is_some_and(is_range)
}

/// Returns whether a text is `*( OWS ";" OWS name "=" value )`. Empty parameters, which recipients must ignore, aren't sent.
fn are_parameters(text: &str) -> bool {
    iter::successors(Some(text), |text| after_parameter(text)).last() == Some("")
}

/// Returns what follows the parameter that a text begins with.
fn after_parameter(text: &str) -> Option<&str> {
    let parameter = text.trim_start_matches(OWS).strip_prefix(';')?.trim_start_matches(OWS);
    let (name, value) = parameter.split_once('=')?;
    if is_token(name) { after_value(value) } else { None }
}

/// Returns what follows the token or quoted string that a text begins with.
fn after_value(text: &str) -> Option<&str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let rest =
            text.trim_start_matches(|letter: char| u8::try_from(letter).is_ok_and(scan::is_token_byte));
        return (rest.len() < text.len()).then_some(rest);
    };
    let mut is_escaped = false;
    for (place, byte) in quoted.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return Some(&quoted[place + 1..]),
            b'\t' | b' '..=b'~' => is_escaped = byte == b'\\' && !is_escaped,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{is_media_range, is_media_type};

    #[test]
    fn media_types_follow_the_grammar() {
        for line in include_str!("../tests/media_types.txt").lines() {
            let (verdict, text) = line.split_once(": ").expect("a verdict and a text");
            assert_eq!(is_media_type(text), verdict == "valid", "{text:?}");
        }
    }

    #[test]
    fn ranges_have_a_type_and_no_parameters() {
        for text in ["text/html", "a/b+c", "image/*"] {
            assert!(is_media_range(text), "{text}");
        }
        for text in ["*/*", "text/html; q=1", "text", "text/", "/x", ""] {
            assert!(!is_media_range(text), "{text}");
        }
    }
}
