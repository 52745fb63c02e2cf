//! A reader for the TOML of Cargo manifests: every setting as a full path with its value and line.
//!
//! It knows what manifests use: tables, arrays of tables, dotted and quoted keys, strings, inline tables, arrays that
//! go over several lines. Anything else is an error, so nothing passes unread.

/// One setting. `[a]`, `b.c = { d = "e" }` is the path `a b c d` with the value `e`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) path: Vec<String>,
    /// A string without its quotes; anything else as written.
    pub(crate) value: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Setting {
    /// Whether the path begins with these keys.
    pub(crate) fn is_under(&self, keys: &[&str]) -> bool {
        self.path.len() >= keys.len() && self.path.iter().zip(keys).all(|(part, key)| part == key)
    }
}

/// Reads a manifest. The error is the line and what could not be read there.
pub(crate) fn parse(text: &str) -> Result<Vec<Setting>, (usize, String)> {
    let mut settings = Vec::new();
    let mut table: Vec<String> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, raw)) = lines.next() {
        let line = index + 1;
        let mut statement = without_comment(raw).trim().to_owned();
        if statement.is_empty() {
            continue;
        }
        if statement.starts_with('[') {
            let name = statement.trim_matches(['[', ']']);
            table = keys(name).ok_or((line, format!("the table name {statement}")))?;
            continue;
        }
        while open_brackets(&statement) > 0 {
            let (_, more) = lines.next().ok_or((line, "an array or table without an end".to_owned()))?;
            statement.push(' ');
            statement.push_str(without_comment(more).trim());
        }
        pair(&statement, &table, line, &mut settings)?;
    }
    Ok(settings)
}

/// Reads `key = value` under `table`.
fn pair(text: &str, table: &[String], line: usize, into: &mut Vec<Setting>) -> Result<(), (usize, String)> {
    let unread = || (line, format!("the setting {text}"));
    let key = split_outside(text, '=')[0];
    let value = text.get(key.len() + 1..).ok_or_else(unread)?.trim();
    let mut path = table.to_vec();
    path.extend(keys(key).ok_or_else(unread)?);
    match value.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
        Some(inner) => {
            let members = split_outside(inner, ',');
            let mut members = members.iter().filter(|member| !member.trim().is_empty());
            members.try_for_each(|member| pair(member, &path, line, into))
        }
        None if value.is_empty() => Err(unread()),
        None => {
            into.push(Setting { path, value: unquoted(value).to_owned(), line });
            Ok(())
        }
    }
}

/// The parts of a dotted key. None where a part is empty.
fn keys(text: &str) -> Option<Vec<String>> {
    let parts = split_outside(text, '.');
    let parts: Vec<String> = parts.iter().map(|part| unquoted(part.trim()).to_owned()).collect();
    parts.iter().all(|part| !part.is_empty()).then_some(parts)
}

fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn without_comment(line: &str) -> &str {
    split_flat(line, '#')[0]
}

fn open_brackets(text: &str) -> usize {
    let count = |brackets: [char; 2]| {
        brackets.iter().map(|bracket| split_flat(text, *bracket).len() - 1).sum::<usize>()
    };
    count(['[', '{']).saturating_sub(count([']', '}']))
}

/// Splits at `separator` where it stands outside of strings and brackets. Never empty.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    split(text, separator, true)
}

/// Splits at `separator` where it stands outside of strings. Never empty.
fn split_flat(text: &str, separator: char) -> Vec<&str> {
    split(text, separator, false)
}

fn split(text: &str, separator: char, mind_brackets: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quote, mut escaped) = (0, 0_usize, None, false);
    for (at, c) in text.char_indices() {
        if let Some(open) = quote {
            if c == open && !escaped {
                quote = None;
            }
            escaped = open == '"' && c == '\\' && !escaped;
            continue;
        }
        if c == separator && depth == 0 {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
        match c {
            '"' | '\'' => quote = Some(c),
            '[' | '{' if mind_brackets => depth += 1,
            ']' | '}' if mind_brackets => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
