//! Rule `foreign-types`: public items name types of other people's crates only as `xtask/tidy.toml` allows.
//!
//! It reads formatted text: signatures, public fields, enums, traits, heads of implementations, re-exports. It does not follow
//! an import of an import, nor look into macros and derives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::tree::{File, Tree, line_at};
use super::walls::{OURS, dependencies};
use super::{CONFIG, CONFIG_PATH, Finding, Rule};

const NAME: &str = "foreign-types";

pub(super) const RULE: Rule = Rule {
    reasons: || {
        vec![(
            NAME,
            "public items name other people's types only as the table allows: each binds our versions to theirs",
        )]
    },
    check,
};

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is constant"));
    };
}

pattern!(
    ITEM,
    r"(?m)^( *)(?:pub (?:unsafe |const |async )*(fn|struct|enum|union|trait|type|const|static|use) |(impl)\b)"
);
pattern!(FIELD, r"(?m)^ +pub \w+: [^;{}]*?,\n");
pattern!(PATH, r"(?:::)?\b([A-Za-z_]\w*)((?:::\w+)*(?:::\*)?)");
pattern!(IMPORT, r"(?m)^ *(?:pub(?:\([^)]*\))? )?use (?:::)?(\w+)((?:::|;)[^;]*)");
pattern!(IMPORTED, r"(\w+)(?: as (\w+))?\s*(?:[,};]|$)");
pattern!(ALIAS, r"(?m)^type (\w+)[^=]*=([^;]*);");
pattern!(ASSOCIATED, r"(?m)^ +type \w+[^;]*;");
pattern!(DECLARED, r"(pub )?\b(?:struct|enum|union|trait) (\w+)");

fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let workspace = tree.text("Cargo.toml").parse().unwrap_or_default();
    let is_library = |room: &str| tree.file(&format!("crates/{room}/src/lib.rs")).is_some();
    let mut used = BTreeSet::new();
    for manifest in tree.files().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let Some(room) = manifest.room().filter(|room| is_library(room)) else { continue };
        let packages = dependencies(&manifest.text.parse().unwrap_or_default(), &workspace).into_iter();
        let foreign = packages.filter(|package| package != "shearwater" && !package.starts_with(OURS));
        let foreign: BTreeSet<String> = foreign.map(|package| package.replace('-', "_")).collect();
        let files: Vec<&File> =
            tree.files().filter(|file| file.room() == Some(room) && file.is_shipped()).collect();
        let private = private_types(&files);
        for file in files {
            let names = Names::of(&file.code, &foreign);
            for (at, item) in public_items(&file.code, &private) {
                for (offset, path) in names.mentions(&item) {
                    let line = line_at(&file.code, at + offset);
                    let allowed = CONFIG
                        .foreign_types
                        .get(room)
                        .into_iter()
                        .flatten()
                        .find(|allowed| **allowed == path);
                    if allowed.is_none() && !file.is_test(line) {
                        let help = format!("keep it inside, or argue for an entry in {CONFIG_PATH}");
                        findings.push(Finding::new(
                            &file.path,
                            line,
                            NAME,
                            format!("`{path}` in a public item"),
                            help,
                        ));
                    }
                    used.extend(allowed);
                }
            }
        }
    }
    for (room, types) in CONFIG.foreign_types.iter().filter(|(room, _)| is_library(room)) {
        for unused in types.iter().filter(|path| !used.contains(path)) {
            let what = format!("no public item of `{room}` names `{unused}`");
            findings.push(Finding::new(CONFIG_PATH, 1, NAME, what, "remove its entry"));
        }
    }
}

/// Returns the names of types and traits that a crate declares without `pub`, and nowhere with it.
fn private_types<'a>(files: &[&'a File]) -> BTreeSet<&'a str> {
    let declared: Vec<_> = files.iter().flat_map(|file| DECLARED.captures_iter(&file.code)).collect();
    let names = |is_public: bool| {
        let chosen = declared.iter().filter(move |found| found.get(1).is_some() == is_public);
        chosen.filter_map(|found| Some(found.get(2)?.as_str())).collect::<BTreeSet<_>>()
    };
    &names(false) - &names(true)
}

/// Returns the parts of a source that users of the crate see, each with the byte it begins at.
fn public_items(code: &str, private: &BTreeSet<&str>) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> =
        FIELD.find_iter(code).map(|found| (found.start(), found.as_str().to_owned())).collect();
    for found in ITEM.captures_iter(code) {
        let start = found.get(0).map_or(0, |item| item.start());
        let rest = &code[start..];
        let head = &rest[..rest.find(['{', ';']).unwrap_or(rest.len())];
        let block = &rest[..rest.find(&format!("\n{}}}", &found[1])).unwrap_or(rest.len())];
        match found.get(2).or(found.get(3)).map_or("", |kind| kind.as_str()) {
            "enum" | "trait" => items.push((start, block.to_owned())),
            "const" | "static" => {
                items.push((start, head.split(" = ").next().unwrap_or_default().to_owned()));
            }
            "use" => items.push((start, rest[..rest.find(';').unwrap_or(rest.len())].to_owned())),
            "struct" => {
                // Private fields of a tuple are left out.
                let (name, fields) = head.split_once('(').unwrap_or((head, ""));
                let fields = fields.split(',').filter(|field| field.trim_start().starts_with("pub "));
                items.push((start, format!("{name} {}", fields.collect::<String>())));
            }
            "impl" => {
                let words = head.split(|c: char| !c.is_alphanumeric() && c != '_');
                if !words.into_iter().any(|word| private.contains(word)) {
                    items.push((start, head.to_owned()));
                    let types = ASSOCIATED.find_iter(block);
                    items.extend(types.map(|found| (start + found.start(), found.as_str().to_owned())));
                }
            }
            _ => items.push((start, head.to_owned())),
        }
    }
    items
}

/// The names that mean other people's types in a source.
struct Names<'a> {
    foreign: &'a BTreeSet<String>,
    code: &'a str,
    /// By the names that imports and private aliases give them.
    named: BTreeMap<&'a str, String>,
}

impl<'a> Names<'a> {
    fn of(code: &'a str, foreign: &'a BTreeSet<String>) -> Self {
        let mut names = Self { foreign, code, named: BTreeMap::new() };
        for import in IMPORT.captures_iter(code) {
            let (package, rest) = (
                import.get(1).map_or("", |part| part.as_str()),
                import.get(2).map_or("", |part| part.as_str()),
            );
            if !names.is_foreign(package) {
                continue;
            }
            for leaf in IMPORTED.captures_iter(rest) {
                let original = leaf.get(1).map_or("", |part| part.as_str());
                let name = leaf.get(2).map_or(original, |part| part.as_str());
                let path =
                    if original == "self" { package.to_owned() } else { format!("{package}::{original}") };
                names.named.insert(name, path);
            }
        }
        for alias in ALIAS.captures_iter(code) {
            if let Some((_, path)) = names.mentions(&alias[2]).pop() {
                names.named.insert(alias.get(1).map_or("", |name| name.as_str()), path);
            }
        }
        names
    }

    /// Returns true for a package, unless a module of the source has its name.
    fn is_foreign(&self, name: &str) -> bool {
        self.foreign.contains(name) && !self.code.contains(&format!("mod {name}"))
    }

    /// Returns the foreign types in a text as `crate::Type`, each with its byte.
    fn mentions(&self, text: &str) -> Vec<(usize, String)> {
        let mention = |found: regex::Captures<'_>| {
            let path = match self.named.get(&found[1]) {
                Some(path) => format!("{path}{}", &found[2]),
                None if self.is_foreign(&found[1]) => format!("{}{}", &found[1], &found[2]),
                None => return None,
            };
            let mut segments = path.split("::");
            let package = segments.next().unwrap_or_default();
            let segments: Vec<&str> = segments.collect();
            let named =
                segments.iter().find(|segment| segment.starts_with(char::is_uppercase)).or(segments.last())?;
            Some((found.get(0)?.start(), format!("{package}::{named}")))
        };
        PATH.captures_iter(text).filter_map(mention).collect()
    }
}
