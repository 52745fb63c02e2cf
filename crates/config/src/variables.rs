//! Environment variables in strings: `${NAME}`, `${NAME:-default}`; `$${` is a literal `${`.

use crate::limits::VALUE_BYTES_MAX;

/// A message and a help text, without the value of any variable.
type Invalid = (String, String);

/// Substitutes the variables of a text; `None` if it has none.
pub(crate) fn substitute(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, Invalid> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            whole.push_str(before);
            whole.push_str("${");
            rest = &from[2..];
            continue;
        }
        whole.push_str(before);
        let Some((inside, after)) = from[2..].split_once('}') else {
            return Err(("unclosed `${`".to_owned(), "a literal `${` is written `$${`".to_owned()));
        };
        whole.push_str(&variable(inside, environment)?);
        if whole.len() > VALUE_BYTES_MAX {
            break;
        }
        rest = after;
    }
    whole.push_str(rest);
    Ok(Some(whole))
}

/// Returns the value of a variable from the text between the braces.
fn variable(inside: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Invalid> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        let help = "a name consists of letters, digits and `_`, and doesn't start with a digit";
        return Err(("invalid variable name between `${` and `}`".to_owned(), help.to_owned()));
    }
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err((
            format!("environment variable `{name}` is not set, or not UTF-8"),
            format!("`${{{name}:-default}}` uses a default"),
        )),
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::substitute;

    fn environment(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn substitutes_variables_once() {
        for (text, whole) in [
            ("plain", None),
            ("$A {A} $", None),
            ("${A}", Some("one")),
            ("x${A}y${A}z", Some("xoneyonez")),
            ("${EMPTY}", Some("")),
            ("${EMPTY:-other}", Some("other")),
            ("${NONE:-other}", Some("other")),
            ("${NONE:-}", Some("")),
            ("${A:-other}", Some("one")),
            ("${NONE:-a:-b}", Some("a:-b")),
            ("$${A}", Some("${A}")),
            ("$$${A}", Some("$${A}")),
            ("$${A} ${A}", Some("${A} one")),
            ("${NESTED}", Some("${A}")),
        ] {
            assert_eq!(substitute(text, &environment), Ok(whole.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_and_missing_variables() {
        let invalid = "invalid variable name";
        for (text, start) in [
            ("${A", "unclosed"),
            ("${", "unclosed"),
            ("${}", invalid),
            ("${1}", invalid),
            ("${a b}", invalid),
            ("${é}", invalid),
            ("${:-x}", invalid),
            ("${A} ${NONE}", "environment variable `NONE` is not set"),
        ] {
            let (message, help) = substitute(text, &environment).expect_err(text);
            assert!(message.starts_with(start), "{text}: {message}");
            assert!(!message.contains("one") && !help.contains("one"), "{text}: {message}, {help}");
        }
    }
}
