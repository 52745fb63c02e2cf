//! A minimal workspace that breaks no rule, to plant violations in.

use std::collections::BTreeMap;

use crate::tidy::tree::Tree;

/// Texts by path, to be changed before they become a tree.
#[derive(Clone)]
pub(super) struct Sources(BTreeMap<String, Option<String>>);

impl Sources {
    /// The clean workspace.
    pub(super) fn clean() -> Self {
        let mut sources = Self(BTreeMap::new());
        for (path, text) in PAPERS.iter().chain(CODE) {
            sources.put(path, text);
        }
        for (folder, name, uses) in CRATES {
            let uses: String = uses.iter().map(|used| format!("{used}.workspace = true\n")).collect();
            let text = format!("[package]\nname = \"{name}\"\n\n[dependencies]\n{uses}");
            sources.put(&format!("crates/{folder}/Cargo.toml"), &text);
        }
        sources
    }

    /// Adds or replaces a file.
    pub(super) fn put(&mut self, path: &str, text: &str) {
        self.0.insert(path.to_owned(), Some(text.to_owned()));
    }

    /// Appends to a file.
    pub(super) fn append(&mut self, path: &str, text: &str) {
        let file =
            self.0.get_mut(path).and_then(Option::as_mut).expect("only files of the clean tree are changed");
        file.push_str(text);
    }

    /// Replaces a part of a file, which must be there.
    pub(super) fn replace(&mut self, path: &str, old: &str, new: &str) {
        let file =
            self.0.get_mut(path).and_then(Option::as_mut).expect("only files of the clean tree are changed");
        assert!(file.contains(old), "{path} does not contain {old:?}");
        *file = file.replace(old, new);
    }

    /// Removes a file, which must be there.
    pub(super) fn remove(&mut self, path: &str) {
        assert!(self.0.remove(path).is_some(), "{path} is not in the clean tree");
    }

    pub(super) fn tree(self) -> Tree {
        Tree::from_sources(self.0)
    }
}

/// Folder, package, dependencies.
const CRATES: &[(&str, &str, &[&str])] = &[
    ("http1", "shearwater-http1", &[]),
    ("io", "shearwater-io", &["mio", "rustix", "socket2"]),
    ("tasks", "shearwater-tasks", &["corosensei"]),
    ("engine", "shearwater-engine", &["shearwater-http1", "shearwater-io", "shearwater-tasks", "httpdate"]),
    ("shearwater", "shearwater", &["shearwater-engine"]),
    ("files", "shearwater-files", &["shearwater", "shearwater-io"]),
    ("site", "shearwater-site", &["shearwater", "shearwater-files"]),
    ("config", "shearwater-config", &["toml"]),
    ("allocator", "shearwater-allocator", &["mimalloc"]),
    ("precompress", "shearwater-precompress", &["flate2"]),
    ("tower", "shearwater-tower", &["shearwater", "tower-service"]),
    ("cli", "shearwater-cli", &["shearwater", "shearwater-files", "clap"]),
];

const PAPERS: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace]\nmembers = [\n    \"crates/*\", # all rooms\n]\n\n[profile.release]\npanic = \"unwind\"\n\n\
         [profile.dist]\ninherits = \"release\"\npanic = \"unwind\"\n",
    ),
    (
        "README.md",
        "# Program\n\nSee [the map](ARCHITECTURE.md#the-way-of-a-request) and [limits](docs/limits.md).\n",
    ),
    ("ARCHITECTURE.md", "# Map\n\n## The way of a request\n\n1. `crates/engine/src/read.rs::received`\n"),
    ("docs/limits.md", "# Limits\n\n| `PIECES_MAX` | 16 | more are refused |\n"),
    ("xtask/tidy-ratchet.txt", "# Exceptions with their exact figures.\n"),
];

const CODE: &[(&str, &str)] = &[
    (
        "crates/http1/src/lib.rs",
        "//! Reads requests, whole.\n\n#![deny(unsafe_code)]\n\nmod framing;\nmod known;\n",
    ),
    (
        "crates/http1/src/known.rs",
        "//! The known fields' table.\n\npub enum Known {\n    ContentLength,\n    TransferEncoding,\n}\n",
    ),
    (
        "crates/http1/src/framing.rs",
        "//! Where a message ends.\n\npub fn ends(k: Known) -> bool {\n    matches!(k, Known::ContentLength)\n}\n",
    ),
    (
        "crates/io/src/lib.rs",
        "//! The kernel, as one contract.\n\npub mod limits;\n\n#[cfg(target_os = \"linux\")]\nmod os;\n",
    ),
    (
        "crates/io/src/limits.rs",
        "//! Bounds of the drivers.\n\n/// Pieces of one output.\npub const PIECES_MAX: usize = 16;\n",
    ),
    ("crates/engine/src/lib.rs", "//! Workers of the server.\n\n#![forbid(unsafe_code)]\n"),
    (
        "crates/engine/src/worker.rs",
        "//! The one loop.\n\nfn turn(event: Event) {\n    match event {\n        Event::Woken => (),\n        _ => (),\n    }\n}\n",
    ),
    (
        "crates/engine/src/read.rs",
        "//! Bytes come in.\n\npub fn received(bytes: &[u8]) -> usize {\n    bytes.len()\n}\n",
    ),
    ("crates/engine/src/dispatch.rs", "//! Requests find handlers.\n"),
    ("crates/engine/src/respond.rs", "//! Answers become bytes.\n"),
    ("crates/engine/src/write.rs", "//! Bytes go out.\n"),
    ("crates/shearwater/src/lib.rs", "//! The public crate.\n\n#![forbid(unsafe_code)]\n"),
    ("crates/files/src/lib.rs", "//! Static files, served.\n\n#![forbid(unsafe_code)]\n"),
    ("crates/site/src/lib.rs", "//! Hosts and routes of sites.\n\n#![forbid(unsafe_code)]\n"),
    ("crates/config/src/lib.rs", "//! The file of settings.\n\n#![forbid(unsafe_code)]\n"),
    (
        "crates/allocator/src/lib.rs",
        "//! What the program allocates with.\n\n#![deny(unsafe_code)]\n\npub use mimalloc::MiMalloc;\n",
    ),
    ("crates/precompress/src/lib.rs", "//! Siblings, made beforehand.\n\n#![forbid(unsafe_code)]\n"),
    ("crates/cli/src/main.rs", "//! The program itself.\n\n#![forbid(unsafe_code)]\n\nfn main() {}\n"),
    (
        "crates/engine/tests/it/main.rs",
        "//! Tests of the engine.\n\n#[test]\nfn turns() {\n    assert_eq!(1 + 1, 2);\n}\n",
    ),
];
