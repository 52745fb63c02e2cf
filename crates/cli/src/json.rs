//! What a machine reads: values written as JSON (RFC 8259).

use std::fmt;

/// A value.
#[derive(Debug)]
pub(crate) enum Json {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// A text.
    pub(crate) fn text(text: impl fmt::Display) -> Self {
        Self::Text(text.to_string())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => quoted(f, text),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}\"{name}\":{value}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn values_are_written_as_json_has_them() {
        let value = Json::Object(vec![
            ("a", Json::List(vec![Json::Number(1), Json::Flag(true)])),
            ("b", Json::text("x\"\\\n\u{1f}é")),
            ("c", Json::Object(Vec::new())),
        ]);
        assert_eq!(value.to_string(), r#"{"a":[1,true],"b":"x\"\\\u000a\u001fé","c":{}}"#);
    }
}
