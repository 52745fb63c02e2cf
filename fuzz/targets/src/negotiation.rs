//! `Accept-Encoding` and lists of entity tags: the chosen coding is available and preferred, and a tag is found where it is.

use std::sync::LazyLock;

use regex::bytes::Regex;
use shearwater_compress::negotiation::{Codings, choose_coding};
use shearwater_files::Coding;
use shearwater_files::conditional::preconditions::{Weak, matches_any};

use crate::input::{is_content, pattern};

/// Orders of preference that the first byte chooses from.
const ORDERS: [&[Coding]; 5] = [
    &[Coding::Br, Coding::Zstd, Coding::Gzip],
    &[Coding::Gzip, Coding::Zstd, Coding::Br],
    &[Coding::Zstd, Coding::Gzip, Coding::Br],
    &[Coding::Gzip],
    &[],
];
/// The tag to find.
const TAG: &str = "\"tag\"";
/// The same, weak.
const WEAK_TAG: &str = "W/\"tag\"";

/// A name and its weight, if there is one.
static ELEMENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\A[\t ]*([^;]*?)[\t ]*(?:;[\t ]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)[\t ]*)?\z")
});
/// A tag and what precedes it in a list.
static LISTED_TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\A[\t ,]*(W/)?"([^"]*)""#));

/// Reads the fields, one a line, after the first byte of `input`, which chooses the available codings and their order.
pub fn run(input: &[u8]) {
    let Some((&choice, text)) = input.split_first() else { return };
    let fields: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    if fields.iter().all(|field| is_content(field)) {
        check_codings(&fields, choice);
        fields.into_iter().for_each(check_tags);
    }
}

fn check_codings(fields: &[&[u8]], choice: u8) {
    let order = ORDERS[usize::from(choice >> 3) % ORDERS.len()];
    let mut available = Codings::NONE;
    for (bit, coding) in Coding::ALL.into_iter().enumerate() {
        if choice & (1 << bit) != 0 {
            available.add(coding);
        }
    }
    let others = weight(fields, &["*"]);
    let weight_of = |coding: Coding| {
        let names: &[&str] = if coding == Coding::Gzip { &["gzip", "x-gzip"] } else { &[coding.name()] };
        weight(fields, names).or(others).unwrap_or(0)
    };
    let identity = weight(fields, &["identity"]).or(others).unwrap_or(0);
    let mut acceptable: Vec<Coding> = order.iter().copied().filter(|coding| available.has(*coding)).collect();
    acceptable.retain(|coding| weight_of(*coding) > 0 && weight_of(*coding) >= identity);
    // The first of those with the highest weight.
    let best = acceptable.iter().map(|coding| weight_of(*coding)).max();
    let expected = acceptable.iter().copied().find(|coding| Some(weight_of(*coding)) == best);
    assert_eq!(choose_coding(fields.iter().copied(), available, order), expected, "coding");
}

/// Returns the weight, in thousandths, of the first element with one of these names.
fn weight(fields: &[&[u8]], names: &[&str]) -> Option<u16> {
    let mut elements = fields.iter().flat_map(|field| field.split(|&byte| byte == b','));
    elements.find_map(|element| {
        let found = ELEMENT.captures(element)?;
        let is_named = names.iter().any(|name| found[1].eq_ignore_ascii_case(name.as_bytes()));
        let weight =
            found.get(2).map_or("1", |weight| std::str::from_utf8(weight.as_bytes()).unwrap_or_default());
        let (whole, decimals) = weight.split_once('.').unwrap_or((weight, ""));
        is_named.then(|| format!("{whole}{decimals:0<3}").parse().unwrap_or_default())
    })
}

fn check_tags(field: &[u8]) {
    let is_any = field.trim_ascii() == b"*";
    let (mut weakly, mut strongly, mut rest) = (is_any, is_any, field);
    // Text that can't be read ends the list.
    while let Some(found) = LISTED_TAG.captures(rest) {
        let is_same = found[2] == *TAG.trim_matches('"').as_bytes();
        weakly |= is_same;
        strongly |= is_same && found.get(1).is_none();
        rest = &rest[found[0].len()..];
    }
    let shown = field.escape_ascii();
    assert_eq!(matches_any(field, TAG, Weak::Matches), weakly, "weakly in {shown}");
    assert_eq!(matches_any(field, TAG, Weak::Differs), strongly, "strongly in {shown}");
    assert_eq!(matches_any(field, WEAK_TAG, Weak::Matches), weakly, "a weak tag in {shown}");
    assert_eq!(matches_any(field, WEAK_TAG, Weak::Differs), is_any, "a weak tag strongly in {shown}");
}
