//! Rule `crate-walls`: which crate may use which.
//!
//! Crates are the one wall that keeps cycles out. The table is the architecture: a new line in it is a decision, made
//! in review, not a side effect of a convenient import. Development dependencies are free.

use std::collections::BTreeMap;

use super::Rule;
use crate::tidy::finding::Report;
use crate::tidy::manifest::Setting;
use crate::tidy::tree::Tree;

pub(crate) const RULE: Rule = Rule {
    name: "crate-walls",
    reason: "each crate uses only the crates its line in the table allows: walls keep cycles out and new dependencies a decision",
    check,
};

/// A crate's folder under `crates/` and the packages it may use.
struct Room {
    folder: &'static str,
    may_use: &'static [&'static str],
}

const ROOMS: &[Room] = &[
    Room { folder: "allocator", may_use: &["libmimalloc-sys", "mimalloc"] },
    Room { folder: "http1", may_use: &[] },
    Room { folder: "io", may_use: &["io-uring", "libc", "mio", "rustix", "socket2"] },
    Room { folder: "tasks", may_use: &["corosensei", "libc"] },
    Room {
        folder: "engine",
        may_use: &["shearwater-http1", "shearwater-io", "shearwater-tasks", "httpdate"],
    },
    Room {
        folder: "shearwater",
        may_use: &["shearwater-engine", "shearwater-http1", "shearwater-io", "matchit"],
    },
    Room { folder: "files", may_use: &["shearwater", "shearwater-io", "foldhash", "httpdate", "twox-hash"] },
    Room { folder: "site", may_use: &["shearwater", "shearwater-files"] },
    Room { folder: "config", may_use: &["strsim", "toml"] },
    Room { folder: "precompress", may_use: &["shearwater-io", "brotli", "flate2", "rustix", "zstd"] },
    Room {
        folder: "tower",
        may_use: &[
            "shearwater",
            "axum",
            "bytes",
            "http",
            "http-body",
            "hyper",
            "hyper-util",
            "tokio",
            "tower-service",
        ],
    },
    Room {
        folder: "cli",
        may_use: &[
            "shearwater",
            "shearwater-allocator",
            "shearwater-config",
            "shearwater-files",
            "shearwater-precompress",
            "shearwater-site",
            "clap",
            "serde_json",
        ],
    },
];

/// Other people's frameworks: one crate alone may know them, so that the engine stays free of their types.
const FRAMEWORKS: &[&str] = &[
    "axum",
    "axum-core",
    "bytes",
    "http",
    "http-body",
    "http-body-util",
    "hyper",
    "hyper-util",
    "tokio",
    "tower",
    "tower-layer",
    "tower-service",
];
const FRAMEWORKS_ROOM: &str = "tower";

const TABLE: &str = "xtask/src/tidy/rules/crate_walls.rs";

fn check(tree: &Tree, report: &mut Report<'_>) {
    let renamed = renamed_in_workspace(tree);
    for (file, settings) in tree.manifests("Cargo.toml") {
        let Some(folder) = file.room().filter(|folder| file.path == format!("crates/{folder}/Cargo.toml"))
        else {
            continue;
        };
        check_name(folder, &file.path, settings, report);
        let Some(room) = ROOMS.iter().find(|room| room.folder == folder) else {
            report.add(
                &file.path,
                1,
                format!("crate `{folder}` has no line in the table"),
                format!("add it to {TABLE}"),
            );
            continue;
        };
        for (name, line) in dependencies(settings, &renamed) {
            if FRAMEWORKS.contains(&name.as_str()) && folder != FRAMEWORKS_ROOM {
                let instead = format!("keep it to crates/{FRAMEWORKS_ROOM}");
                report.add(
                    &file.path,
                    line,
                    format!("`{folder}` uses the framework crate `{name}`"),
                    instead,
                );
            } else if !room.may_use.contains(&name.as_str()) {
                let instead = format!("do without, or argue for a new entry in {TABLE}");
                report.add(&file.path, line, format!("`{folder}` may not use `{name}`"), instead);
            }
        }
    }
    for room in ROOMS.iter().filter(|room| tree.file(&format!("crates/{}/Cargo.toml", room.folder)).is_none())
    {
        report.add(
            TABLE,
            1,
            format!("the table names crate `{}`, which does not exist", room.folder),
            "remove its line",
        );
    }
}

/// The folder is the package's name without the project's prefix, so that a path tells the crate.
fn check_name(folder: &str, path: &str, settings: &[Setting], report: &mut Report<'_>) {
    let expected = if folder == "shearwater" { folder.to_owned() } else { format!("shearwater-{folder}") };
    let name = settings.iter().find(|setting| setting.path == ["package", "name"]);
    match name {
        Some(name) if name.value == expected => {}
        Some(name) => {
            report.add(
                path,
                name.line,
                format!("package `{}` in folder `{folder}`", name.value),
                format!("call it `{expected}`"),
            );
        }
        None => report.add(path, 1, "the package has no name", format!("call it `{expected}`")),
    }
}

/// Packages that the workspace's dependency table gives another name: name used -> package.
fn renamed_in_workspace(tree: &Tree) -> BTreeMap<String, String> {
    let root = tree.file("Cargo.toml").and_then(|file| file.settings.as_ref()?.as_ref().ok());
    let settings = root.map(Vec::as_slice).unwrap_or_default();
    let is_rename = |setting: &&Setting| {
        setting.is_under(&["workspace", "dependencies"])
            && setting.path.len() == 4
            && setting.path[3] == "package"
    };
    settings
        .iter()
        .filter(is_rename)
        .map(|setting| (setting.path[2].clone(), setting.value.clone()))
        .collect()
}

/// The packages used when the crate or its build script is built, each with its first line.
fn dependencies(settings: &[Setting], renamed: &BTreeMap<String, String>) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    for setting in settings {
        let path =
            if setting.is_under(&["target"]) { setting.path.get(2..) } else { Some(setting.path.as_slice()) };
        let Some([table, name, rest @ ..]) = path else { continue };
        if table != "dependencies" && table != "build-dependencies" {
            continue;
        }
        let package = renamed.get(name).unwrap_or(name).clone();
        let entry = found.entry(name).or_insert((package, setting.line));
        if rest == ["package"] {
            entry.0 = setting.value.clone();
        }
    }
    found.into_values().collect()
}
