//! Rule `names`: functions, types, constants and files that a document names in backticks exist, and files that a comment names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::documents::{FOLDERS, code_spans, current};
use super::tree::{Checkout, SourceFile};
use super::words::folder;
use super::{CONFIG, CONFIG_PATH, TidyFinding, TidyRule};

const NAME: &str = "names";

/// Pages for users about other programs, metrics and keys; tests execute them.
const PAGES: &[&str] = &["docs/tasks/"];
/// Heading of a section, or bold beginning of a paragraph, that may name what is gone. It ends at the next one.
const GONE: &str = "Not kept";

static IDENTIFIERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\w+(?:(?:::|\.)\w+)*(?:\(\))?$").expect("the pattern is constant"));
static FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\w./-]+\.(?:rs|md|toml|sh)(?:::|$)").expect("the pattern is constant"));
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)\b(?:fn|mod) (\w+)|^ *(?:pub(?:\([^)]*\))? )?([a-z]\w*):[^:]")
        .expect("the pattern is constant")
});

pub(super) const RULE: TidyRule = TidyRule {
    reasons: || {
        vec![(
            NAME,
            "names in backticks exist in the code, or are listed as foreign: only a section `Not kept` may name what is gone",
        )]
    },
    check,
};

fn check(tree: &Checkout, findings: &mut Vec<TidyFinding>) {
    let known = KnownNames::of(tree);
    let foreign: BTreeSet<&str> = CONFIG.foreign.iter().flat_map(|line| line.split_whitespace()).collect();
    let mut used = BTreeSet::new();
    for file in current(tree).filter(|file| !PAGES.iter().any(|page| file.path.starts_with(page))) {
        let gone = gone_lines(file);
        for (line, span) in code_spans(&file.text).filter(|(line, _)| !gone.contains(line)) {
            let Some(name) = known.missing(tree, span) else { continue };
            match foreign.get(name) {
                Some(name) => _ = used.insert(*name),
                None => findings.push(TidyFinding::new(
                    &file.path,
                    line,
                    NAME,
                    format!("there is no `{name}`"),
                    format!(
                        "name what took its place, list it in {CONFIG_PATH} if it is foreign, or say `{GONE}`"
                    ),
                )),
            }
        }
    }
    for file in tree.files().filter(|file| file.is_rust()) {
        findings.extend(stale_comments(tree, file));
    }
    // A small tree of a test uses none of them.
    if tree.exists(CONFIG_PATH) {
        for name in foreign.difference(&used) {
            let what = format!("`{name}` of `foreign` is in no document, or in the code");
            findings.push(TidyFinding::new(CONFIG_PATH, 1, NAME, what, "remove it"));
        }
    }
}

/// Words of the checkout's files without documents and comments.
struct KnownNames<'a> {
    words: HashSet<&'a str>,
    /// Functions, modules and fields of shipped code, with the files that define them.
    defined: HashMap<&'a str, Vec<&'a SourceFile>>,
}

impl<'a> KnownNames<'a> {
    fn of(tree: &'a Checkout) -> Self {
        let is_source = |file: &&SourceFile| {
            !file.is_markdown() && file.path != CONFIG_PATH && !file.path.starts_with("lab/results/")
        };
        let text = |file: &'a SourceFile| if file.is_rust() { &file.statements } else { &file.text };
        let words = tree.files().filter(is_source).flat_map(|file| text(file).split(is_no_part_of_a_word));
        let mut defined: HashMap<&str, Vec<&SourceFile>> = HashMap::new();
        for file in tree.files().filter(|file| file.is_rust() && !file.is_test(0)) {
            for found in DEFINED.captures_iter(&file.code) {
                let name = found.get(1).or(found.get(2)).map_or("", |name| name.as_str());
                defined.entry(name).or_default().push(file);
            }
        }
        Self { words: words.collect(), defined }
    }

    /// Returns the part of a span that is a name and doesn't exist.
    fn missing<'s>(&self, tree: &Checkout, span: &'s str) -> Option<&'s str> {
        if FOLDERS.iter().any(|folder| span.starts_with(folder)) {
            // The rule `map` has it.
            return None;
        }
        if FILE.is_match(span) {
            return missing_file(tree, "", span);
        }
        if !IDENTIFIERS.is_match(span) {
            return None;
        }
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let mut words = span.split(is_no_part_of_a_word).filter(|word| !word.is_empty() && !is_number(word));
        if let Some(missing) = words.find(|word| !self.words.contains(word)) {
            return Some(missing);
        }
        // A method or field of a type is defined where the type is known. A module may be another crate's.
        let (owner, last) = span.trim_end_matches("()").rsplit_once("::")?;
        let owner = owner.rsplit("::").next().unwrap_or(owner);
        let is_lower = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
        let is_its = |file: &&SourceFile| is_lower(owner) || file.code.contains(owner);
        let exists = self.defined.get(last).is_some_and(|files| files.iter().any(is_its));
        (is_lower(last) && !exists).then_some(span)
    }
}

/// Finds names of Rust files in comments that aren't in the file's crate.
fn stale_comments(tree: &Checkout, file: &SourceFile) -> impl Iterator<Item = TidyFinding> {
    let comments = file.text.lines().zip(1..).filter(|(line, _)| line.trim_start().starts_with("//"));
    let spans = comments
        .flat_map(|(line, number)| line.split('`').skip(1).step_by(2).map(move |span| (span, number)));
    spans.filter(|(span, _)| FILE.is_match(span) && span.contains(".rs")).filter_map(|(span, number)| {
        let path = missing_file(tree, folder(&file.path), span)?;
        let help = "name what took its place, with its path where it is in another crate";
        Some(TidyFinding::new(&file.path, number, NAME, format!("there is no `{path}`"), help))
    })
}

/// Returns the file that a span names if there is none in a folder. A path may be one from the checkout's root.
fn missing_file<'s>(tree: &Checkout, folder: &str, span: &'s str) -> Option<&'s str> {
    let path = span.split("::").next().unwrap_or(span);
    let is_it = |file: &SourceFile| {
        let before = file.path.strip_suffix(path);
        before
            .is_some_and(|before| before.is_empty() || (before.ends_with('/') && before.starts_with(folder)))
    };
    (!tree.files().any(is_it)).then_some(path)
}

fn is_no_part_of_a_word(c: char) -> bool {
    !c.is_alphanumeric() && c != '_'
}

/// Returns the lines of sections and paragraphs that may name what is gone.
fn gone_lines(file: &SourceFile) -> BTreeSet<usize> {
    let mut is_gone = false;
    let starts = |line: &str| line.starts_with('#') || line.starts_with("**");
    let lines = file.text.lines().zip(1..).map(|(line, number)| {
        if starts(line) {
            is_gone = line.trim_start_matches(['#', '*', ' ']).starts_with(GONE);
        }
        (number, is_gone)
    });
    lines.filter(|(_, is_gone)| *is_gone).map(|(number, _)| number).collect()
}
