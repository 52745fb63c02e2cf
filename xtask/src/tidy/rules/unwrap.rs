//! Rule `unwrap`: a panic outside of tests is argued for.
//!
//! `unwrap` says nothing about why it cannot fail. `expect` with a proof can be checked by the next reader; better
//! still is code in which the question does not come up.

use super::Rule;
use crate::tidy::code::{Code, Kind, Token};
use crate::tidy::finding::Report;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "unwrap",
    reason: "no unwrap() outside of tests, no expect() without a proof in words: bad input never panics",
    check,
};

/// Fewer words are no proof.
const PROOF_WORDS_MIN: usize = 3;

fn check(tree: &Tree, report: &mut Report<'_>) {
    for (file, code) in tree.rust().filter(|(file, _)| !file.is_test()) {
        for token in unwraps(code) {
            let instead = "handle the other case, or say in `expect` why there is none";
            report.add(&file.path, token.line, "`unwrap` outside of tests", instead);
        }
        for token in unproven(code) {
            report.add(
                &file.path,
                token.line,
                "`expect` without a proof",
                "say in its text why it cannot fail",
            );
        }
    }
}

/// `.unwrap` and `::unwrap`, called or passed on.
fn unwraps(code: &Code) -> impl Iterator<Item = &Token> {
    let pairs = code.tokens.windows(2).filter(|pair| pair[0].is_punct(".") || pair[0].is_punct(":"));
    pairs.map(|pair| &pair[1]).filter(|token| token.is_ident("unwrap") && !token.test)
}

/// `.expect("…")` with too few words. A method of that name with further arguments is another one.
fn unproven(code: &Code) -> impl Iterator<Item = &Token> {
    let calls = code.tokens.windows(6).filter(|parts| {
        let alone = parts[4].kind == Kind::Close || (parts[4].is_punct(",") && parts[5].kind == Kind::Close);
        parts[0].is_punct(".") && parts[1].is_ident("expect") && parts[3].text.starts_with('"') && alone
    });
    let text = calls.map(|parts| &parts[3]).filter(|token| !token.test);
    text.filter(|token| token.text.split_whitespace().count() < PROOF_WORDS_MIN)
}
