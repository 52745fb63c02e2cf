//! The self-test of tidy: each rule sees what is planted for it, and nothing else does.

mod allowed;
mod clean;
mod planted;
mod surfaces;

use std::collections::BTreeSet;
use std::fs;

use super::finding::Finding;
use super::tree::Tree;
use super::{check, manifest, rules};
use clean::Sources;
use planted::Planted;

fn all_planted() -> impl Iterator<Item = &'static Planted> {
    planted::WALLS.iter().chain(surfaces::PLANTED).chain(planted::HABITS).chain(planted::PAPERS)
}

fn found_with(change: fn(&mut Sources)) -> Vec<Finding> {
    let mut sources = Sources::clean();
    change(&mut sources);
    check(&sources.tree())
}

#[test]
fn a_clean_tree_has_no_findings() {
    assert_eq!(found_with(|_| ()), []);
}

#[test]
fn each_planted_violation_makes_exactly_its_rule_fail() {
    for (index, planted) in all_planted().enumerate() {
        let found = found_with(planted.plant);
        let rules: BTreeSet<&str> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, BTreeSet::from([planted.rule]), "violation {index}: {found:#?}");
        assert!(found.iter().all(|finding| finding.path == planted.path), "violation {index}: {found:#?}");
    }
}

#[test]
fn each_rule_has_a_planted_violation() {
    let planted: BTreeSet<&str> = all_planted().map(|planted| planted.rule).collect();
    let rules: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    assert_eq!(rules, planted);
    assert_eq!(rules.len(), rules::ALL.len(), "two rules share a name");
}

#[test]
fn what_only_looks_like_a_violation_passes() {
    for (what, change) in allowed::ALLOWED.iter().chain(surfaces::ALLOWED) {
        assert_eq!(found_with(*change), [], "{what}");
    }
}

#[test]
fn a_finding_tells_place_rule_fault_and_remedy() {
    let found = found_with(|sources| sources.append("README.md", "\n[gone](docs/gone.md)\n"));
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["README.md:5: links: the link `docs/gone.md` leads nowhere; correct or remove the link"]
    );
}

#[test]
fn a_tree_from_disk_has_all_files_but_the_ignored_ones() {
    let root = std::env::temp_dir().join(format!("shearwater-tidy-{}", std::process::id()));
    let files: [(&str, &[u8]); 5] = [
        (".gitignore", b"/target\n*.log\n"),
        ("docs/paper.md", b"[gone](gone.md)\n"),
        ("picture.bin", &[0xFF, 0xFE]),
        ("target/debug/made.md", b"[gone](gone.md)\n"),
        ("docs/run.log", b"anything\n"),
    ];
    for (path, bytes) in files {
        let place = root.join(path);
        fs::create_dir_all(place.parent().expect("every file is beneath the root"))
            .expect("a folder can be made");
        fs::write(place, bytes).expect("a file can be written");
    }
    let tree = Tree::from_disk(&root);
    fs::remove_dir_all(&root).expect("the folder can be removed");
    let tree = tree.expect("the folder can be read");
    let found: Vec<(&str, &str)> =
        tree.files().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let expected =
        [(".gitignore", "/target\n*.log\n"), ("docs/paper.md", "[gone](gone.md)\n"), ("picture.bin", "")];
    assert_eq!(found, expected);
}

#[test]
fn settings_are_read_with_path_value_and_line() {
    let text = "top = 1 # one\n[a.\"b.c\"]\nd.e = { f = \"g # h\", i = [1, 2] }\nj = [\n  \"k\", # l\n]\n[[m]]\nn = 'o'\n";
    let settings = manifest::parse(text).expect("the text is well formed");
    let read: Vec<(String, &str, usize)> = settings
        .iter()
        .map(|setting| (setting.path.join("/"), setting.value.as_str(), setting.line))
        .collect();
    let expected = [
        ("top", "1", 1),
        ("a/b.c/d/e/f", "g # h", 3),
        ("a/b.c/d/e/i", "[1, 2]", 3),
        ("a/b.c/j", "[ \"k\", ]", 4),
        ("m/n", "o", 8),
    ];
    assert_eq!(read, expected.map(|(path, value, line)| (path.to_owned(), value, line)));
}

#[test]
fn settings_that_cannot_be_read_are_errors() {
    for text in ["word", "= 1", "a =", "a = [\n1,", "a..b = 1", "[]"] {
        assert!(manifest::parse(text).is_err(), "{text:?}");
    }
}
