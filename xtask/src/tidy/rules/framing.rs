//! Rule `framing`: one file decides where a request ends.
//!
//! Request smuggling lives on two opinions about a message's length. So the fields that tell it are read in one file,
//! and everybody else asks that file.

use super::Rule;
use crate::tidy::code::Code;
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;
use crate::tidy::uses::imports;

pub(crate) const RULE: Rule = Rule {
    name: "framing",
    reason: "Content-Length and Transfer-Encoding of requests are read in http1's framing.rs alone: two opinions on a length are request smuggling",
    check,
};

const PLACE: &str = "crates/http1/src/framing.rs";

const FIELDS: &[&str] = &["ContentLength", "TransferEncoding"];

/// The same fields as a text, looked up by name.
const NAMES: &[&str] = &["content-length", "transfer-encoding"];

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust().filter(|(file, _)| file.is_shipped() && file.room().is_some()) {
        if file.path == PLACE || defines_known(code) {
            continue;
        }
        for (line, what) in readings(code) {
            report.add(&file.path, line, what, format!("ask `Head::framing`, which {PLACE} answers"));
        }
    }
}

/// The file with the table of known fields has to name all of them.
fn defines_known(code: &Code) -> bool {
    code.tokens.windows(2).any(|pair| pair[0].is_ident("enum") && pair[1].is_ident("Known"))
}

fn readings(code: &Code) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for field in FIELDS {
        let paths = code.paths(&["Known", field]).filter(|token| !token.test);
        found.extend(paths.map(|token| (token.line, format!("names `Known::{field}`"))));
    }
    for import in imports(code).iter().filter(|import| !code.is_test_line(import.line)) {
        let hidden = import.ends_with(&["Known", "*"])
            || FIELDS.iter().any(|field| import.ends_with(&["Known", field]));
        // A path without a group was found above.
        if hidden && !found.iter().any(|(line, _)| *line == import.line) {
            found.push((import.line, format!("imports `{}`", import.path.join("::"))));
        }
    }
    for parts in code.tokens.windows(3).filter(|parts| !parts[0].test && parts[0].is_ident("field_named")) {
        let asked = parts[2].text.trim_matches(['"', 'b']).to_ascii_lowercase();
        if NAMES.contains(&asked.as_str()) {
            found.push((parts[2].line, format!("looks up `{asked}` by name")));
        }
    }
    found
}
