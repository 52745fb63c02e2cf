//! `headers`: fields of answers that are set or removed.

use std::collections::BTreeMap;

use crate::checks::{field_name, field_value};
use crate::fields::{Fields, Present, Visit};
use crate::reading::Reading;
use crate::rules::{List, Map, Text};

/// Fields of answers that are set or removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers {
    /// By name: what the field is set to.
    pub set: BTreeMap<String, String>,
    /// Names of fields that are left out.
    pub remove: Vec<String>,
}

/// Fields that nobody else may change, each with the end of a sentence that says why.
const OWN: &[(&[&str], &str)] = &[
    (
        &["connection", "content-length", "keep-alive", "trailer", "transfer-encoding", "upgrade"],
        "is the server's own: it says how the message is framed",
    ),
    (&["date"], "is the server's own: it is its clock"),
    (
        &["content-type"],
        "belongs to the content: `mime` says that of files, `respond.type` that of an answer",
    ),
    (&["allow", "content-encoding", "content-range", "location"], "is the answer itself"),
];

/// Fields that nobody else may set, but leave out.
const OWN_VALUE: &[(&[&str], &str)] =
    &[(&["etag", "last-modified"], "says which version of the content it is, which the server alone knows")];

/// Fields that nobody may leave out, but add to.
const NEEDED: &[(&[&str], &str)] =
    &[(&["vary"], "says that others get something else: without it a shared cache gives them this")];

impl Fields for Headers {
    fn fields(&mut self, visit: &mut impl Visit) {
        visit.field(
            "set",
            "Fields that every answer has, in place of its own of that name. Errors don't get those that say how long to keep \
             them, such as Cache-Control, and Content-… is for content: with 2xx and 304 only. Content-Security-Policy \
             applies to the site's own content: folder lists and the server's own error pages have a policy of their own.",
            Map(
                "a table of fields, such as { X-Frame-Options = \"DENY\" }",
                name_to_set,
                Text("a field's value", field_value),
            ),
            &mut self.set,
        );
        visit.field(
            "remove",
            "Fields that no answer of this site has, such as Server.",
            List(Text("a field's name", name_to_remove)),
            &mut self.remove,
        );
    }

    fn check(&mut self, table: &Present<'_>, reading: &mut Reading<'_>) {
        let mut names: Vec<String> = self.set.keys().map(|name| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
            let what = format!("{} is set twice: case makes no difference in a field's name", pair[0]);
            reading.within("set", |reading| reading.problem(&table.span_of("set"), what));
        }
        let is_set = |name: &str| names.contains(&name.to_ascii_lowercase());
        for (index, name) in self.remove.iter().enumerate().filter(|(_, name)| is_set(name)) {
            reading.within("remove", |reading| {
                let name = reading.shown_element(index, name);
                let what =
                    format!("{name} is both set and removed: what is set replaces the answer's own anyway");
                reading.problem(&table.span_of("remove"), what);
            });
        }
    }

    fn example() -> Self {
        let set = [("X-Frame-Options".to_owned(), "DENY".to_owned())];
        Self { set: BTreeMap::from(set), remove: vec!["Server".to_owned()] }
    }
}

/// A field's name that may be set.
fn name_to_set(name: &str) -> Result<String, String> {
    name_but(name, OWN_VALUE)
}

/// A field's name that may be left out.
fn name_to_remove(name: &str) -> Result<String, String> {
    name_but(name, NEEDED)
}

/// A field's name that is neither the server's own nor one of these.
fn name_but(name: &str, more: &[(&[&str], &str)]) -> Result<String, String> {
    let plain = name.to_ascii_lowercase();
    if let Some((_, why)) = OWN.iter().chain(more).find(|(names, _)| names.contains(&plain.as_str())) {
        return Err((*why).to_owned());
    }
    field_name(name)
}
