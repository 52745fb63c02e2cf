//! The manual page `shearwater.toml(5)`, made from the list of keys.

use crate::config::tables;
use crate::print::DEFAULT_HEAD;
use crate::section::{Description, Key, Kind};

/// The beginning of the page; `VERSION` is replaced.
const HEAD: &str = "\
.TH SHEARWATER.TOML 5 \"\" \"shearwater VERSION\" \"Shearwater\"
.SH NAME
shearwater.toml \\- configuration of the shearwater HTTP server
.SH SYNOPSIS
.B shearwater
.I FILE.toml
.br
.B shearwater check
.I FILE.toml
.br
.B shearwater config default
.SH DESCRIPTION
A file in TOML. \\fBshearwater check\\fR checks it and prints a summary; \\fBshearwater config default\\fR prints one with
every key. Errors are reported before the server starts.
";

const FOOT: &str = "\
.SH FILES
.TP
.I /etc/shearwater/shearwater.toml
The configuration of the systemd service.
.SH SEE ALSO
.BR shearwater (1)
";

/// Returns the manual page in roff: every table and key, with default, allowed values and description.
#[must_use]
pub fn manual(version: &str) -> String {
    let mut text = HEAD.replace("VERSION", version);
    for paragraph in DEFAULT_HEAD.split("\n\n").skip(1) {
        text.push_str(&format!(".PP\n{}\n", roff(paragraph)));
    }
    for Description { kind, heading, means, keys } in tables() {
        let heading = kind.heading(heading);
        let inline = if *kind == Kind::Inline { " (an inline table)" } else { "" };
        text.push_str(&format!(".SH \"{}{inline}\"\n{}\n", heading.replace('"', ""), roff(means)));
        for key in keys.iter().filter(|key| !key.has_heading) {
            text.push_str(&entry(key));
        }
    }
    text + FOOT
}

fn entry(Key { name, means, allowed, is_required, default, .. }: &Key) -> String {
    let value = match default {
        Some(default) => format!(" = {}", roff(default)),
        None if *is_required => " (required)".to_owned(),
        None => String::new(),
    };
    let (means, allowed) = (roff(means), roff(allowed));
    format!(".TP\n\\fB{name}\\fR{value}\n{means}\n.br\nAllowed: {allowed}.\n")
}

/// Escapes a text, and prints code in bold.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('\n', " ");
    let parts = escaped.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => part.to_owned(),
        _ => format!("\\fB{part}\\fR"),
    });
    let text: String = parts.collect();
    // A dot or an apostrophe at the beginning of a line would be a request.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::{manual, roff};
    use crate::config::tables;

    #[test]
    fn escapes_what_roff_would_interpret() {
        for (text, expected) in [
            (".x", "\\&.x"),
            ("'x", "\\&'x"),
            ("a `b-c` \\n", "a \\fBb\\-c\\fR \\en"),
            ("one\ntwo", "one two"),
        ] {
            assert_eq!(roff(text), expected);
        }
    }

    #[test]
    fn the_manual_has_every_key() {
        let manual = manual("1.2.3");
        assert!(manual.contains("\"shearwater 1.2.3\""));
        for table in tables() {
            for key in table.keys.iter().filter(|key| !key.has_heading) {
                assert!(manual.contains(&format!("\n\\fB{}\\fR", key.name)), "{}", key.name);
            }
        }
    }
}
