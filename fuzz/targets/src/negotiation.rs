//! `Accept-Encoding` values and lists of entity tags: the coding that is sent is there and is the one that is liked best, and a tag is found where
//! a plain reading finds it.

use shearwater_files::Coding;
use shearwater_files::accept_encoding::choose;
use shearwater_files::coding::Codings;
use shearwater_files::entity_tag::{Weak, matches_any};

/// Orders of preference that the first byte chooses from.
const ORDERS: [&[Coding]; 5] = [
    &[Coding::Br, Coding::Zstd, Coding::Gzip],
    &[Coding::Gzip, Coding::Zstd, Coding::Br],
    &[Coding::Zstd, Coding::Gzip, Coding::Br],
    &[Coding::Gzip],
    &[],
];
/// The tag that is looked for.
const TAG: &str = "\"tag\"";
/// The same, weak.
const WEAK_TAG: &str = "W/\"tag\"";

/// Reads the fields behind the first byte of `input`, which says what codings there are; a line end stands between two fields.
///
/// # Panics
/// Where the plain reading differs.
pub fn run(input: &[u8]) {
    let Some((&choice, said)) = input.split_first() else { return };
    let fields: Vec<&[u8]> = said.split(|&byte| byte == b'\n').collect();
    // The parser lets no other bytes into a field's value.
    if said.iter().any(|byte| (*byte < b' ' && !b"\t\n".contains(byte)) || *byte == 0x7F) {
        return;
    }
    check_codings(&fields, choice);
    for field in fields {
        check_tags(field);
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
    let chosen = choose(fields.iter().copied(), available, order);
    let liked = |name: &str| weight(fields, name);
    let others = liked("*");
    let weight_of = |coding: Coding| {
        let old = if coding == Coding::Gzip {
            first_named(fields, &["gzip", "x-gzip"])
        } else {
            liked(coding.name())
        };
        old.or(others).unwrap_or(0)
    };
    let identity = liked("identity").or(others).unwrap_or(0);
    let sent = || order.iter().copied().filter(|coding| available.has(*coding));
    match chosen {
        Some(coding) => {
            assert!(sent().any(|there| there == coding), "{coding:?} is not there");
            assert!(weight_of(coding) > 0 && weight_of(coding) >= identity, "{coding:?} is not liked");
            assert!(sent().all(|other| weight_of(other) <= weight_of(coding)), "another is liked better");
            let first = sent().find(|other| weight_of(*other) == weight_of(coding));
            assert_eq!(first, Some(coding), "another is preferred");
        }
        None => assert!(
            sent().all(|coding| weight_of(coding) == 0 || weight_of(coding) < identity),
            "one is liked and not sent"
        ),
    }
}

/// The weight of the first element with this name.
fn weight(fields: &[&[u8]], name: &str) -> Option<u16> {
    first_named(fields, &[name])
}

fn first_named(fields: &[&[u8]], names: &[&str]) -> Option<u16> {
    let texts: Vec<String> =
        fields.iter().map(|field| field.iter().copied().map(char::from).collect()).collect();
    let mut elements = texts.iter().flat_map(|text| text.split(','));
    elements.find_map(|element| {
        let element = element.trim_matches(is_space);
        let (name, weight) = match element.split_once(';') {
            None => (element, 1000),
            Some((name, weight)) => {
                (name.trim_end_matches(is_space), thousandths(weight.trim_matches(is_space))?)
            }
        };
        names.iter().any(|wanted| name.eq_ignore_ascii_case(wanted)).then_some(weight)
    })
}

const fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// `q=` with a weight of the grammar, as a whole number.
fn thousandths(weight: &str) -> Option<u16> {
    let digits = weight.strip_prefix("q=").or_else(|| weight.strip_prefix("Q="))?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let is_grammar = matches!(whole, "0" | "1")
        && decimals.len() <= 3
        && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let number: u16 = format!("{whole}{decimals:0<3}").parse().ok()?;
    (is_grammar && number <= 1000).then_some(number)
}

fn check_tags(field: &[u8]) {
    let text: String = field.iter().copied().map(char::from).collect();
    let found = |weak| matches_any(field, TAG, weak);
    let weakly = |weak| matches_any(field, WEAK_TAG, weak);
    assert_eq!(weakly(Weak::Matches), found(Weak::Matches), "a weak tag in {field:?}");
    assert_eq!(weakly(Weak::Differs), field.trim_ascii() == b"*", "a weak tag in {field:?}");
    let (plain_weak, plain_strong) = plain_tags(&text);
    assert_eq!(found(Weak::Matches), plain_weak, "weakly in {text:?}");
    assert_eq!(found(Weak::Differs), plain_strong, "strongly in {text:?}");
}

/// Whether the tag is in a list: weakly, and strongly. What can't be read ends the list.
fn plain_tags(text: &str) -> (bool, bool) {
    if text.trim_matches(is_space) == "*" {
        return (true, true);
    }
    let (mut weakly, mut strongly) = (false, false);
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (is_weak, quoted) = rest.strip_prefix("W/").map_or((false, rest), |rest| (true, rest));
        let Some((tag, behind)) = quoted.strip_prefix('"').and_then(|inner| inner.split_once('"')) else {
            return (weakly, strongly);
        };
        if tag == TAG.trim_matches('"') {
            weakly = true;
            strongly |= !is_weak;
        }
        rest = behind;
    }
}
