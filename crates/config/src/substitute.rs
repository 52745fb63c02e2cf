//! Variables of the environment in texts: `${NAME}`, `${NAME:-otherwise}`; `$${` is a plain `${`.

use crate::limits::VALUE_BYTES_MAX;

/// The text with its variables put in; `None` where it has none and is right as it stands.
///
/// # Errors
/// A sentence, without the value of any variable.
pub(crate) fn substitute(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
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
            return Err("a `${` has no `}`; a plain `${` is written `$${`".to_owned());
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

/// The value of what stands between the braces.
fn variable(inside: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, otherwise) = match inside.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inside, None),
    };
    if !is_name(name) {
        return Err("between `${` and `}` stands the name of a variable: letters, digits and `_`".to_owned());
    }
    match (environment(name), otherwise) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(otherwise)) => Ok(otherwise.to_owned()),
        (None, None) => Err(format!(
            "the environment has no variable {name} (or it is no UTF-8); `${{{name}:-otherwise}}` does without"
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
    fn variables_are_put_in_once() {
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
    fn what_can_not_be_put_in_is_told() {
        for (text, told) in [
            ("${A", "has no `}`"),
            ("${", "has no `}`"),
            ("${}", "the name of a variable"),
            ("${1}", "the name of a variable"),
            ("${a b}", "the name of a variable"),
            ("${é}", "the name of a variable"),
            ("${:-x}", "the name of a variable"),
            ("${A} ${NONE}", "has no variable NONE"),
        ] {
            let why = substitute(text, &environment).expect_err(text);
            assert!(why.contains(told) && !why.contains("one"), "{text}: {why}");
        }
    }
}
