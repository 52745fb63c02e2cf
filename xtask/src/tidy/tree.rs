//! The workspace as rules see it: every text file that is not ignored, Rust files parsed, manifests read.
//!
//! A tree comes from disk or, in tests, from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::code::Code;
use super::manifest::{self, Setting};

/// Larger files are not read: no text of ours comes near it.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// More files than this mean that the folder is not a checkout of this project.
const FILES_MAX: usize = 50_000;

/// What a part of the code is for. Rules that guard what ships leave tests and examples alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Shipped,
    Example,
    Test,
}

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root, with `/` on every system.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The parsed form of a `.rs` file, or the line and the reason why there is none.
    pub(crate) code: Option<Result<Code, (usize, String)>>,
    /// The settings of a `.toml` file, or the line and what could not be read.
    pub(crate) settings: Option<Result<Vec<Setting>, (usize, String)>>,
    place: Place,
}

impl File {
    fn new(path: String, text: String) -> Self {
        let is = |extension: &str| path.ends_with(extension);
        let code = is(".rs").then(|| Code::parse(&text));
        let settings = is(".toml").then(|| manifest::parse(&text));
        let place = place_by_path(&path);
        Self { path, text, code, settings, place }
    }

    /// The folder under `crates/` that the file belongs to.
    pub(crate) fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once('/').map(|(room, _)| room)
    }

    pub(crate) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or("");
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    pub(crate) fn is_shipped(&self) -> bool {
        self.place == Place::Shipped
    }

    pub(crate) fn is_test(&self) -> bool {
        self.place == Place::Test
    }
}

/// All files of the workspace by path.
#[derive(Debug)]
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
    folders: BTreeSet<String>,
}

impl Tree {
    /// Reads the checkout at `root`, without what its `.gitignore` names.
    pub(crate) fn from_disk(root: &Path) -> Result<Self, String> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let ignored: Vec<&str> = ignored.lines().map(|line| line.trim().trim_matches('/')).collect();
        let mut sources = BTreeMap::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(root.join(&folder)).map_err(|error| format!("{folder}: {error}"))?;
            for entry in entries {
                let entry = entry.map_err(|error| format!("{folder}: {error}"))?;
                let name = entry
                    .file_name()
                    .into_string()
                    .map_err(|name| format!("{folder}: {name:?} is no UTF-8"))?;
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let kind = entry.file_type().map_err(|error| format!("{path}: {error}"))?;
                if name == ".git" || ignored.iter().any(|pattern| is_ignored(pattern, &path, &name)) {
                    continue;
                }
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    sources.insert(path.clone(), read(&entry.path(), &path)?);
                }
                if sources.len() + folders.len() > FILES_MAX {
                    return Err(format!("more than {FILES_MAX} files: is this the right folder?"));
                }
            }
        }
        Ok(Self::from_sources(sources))
    }

    /// A tree of the given texts by path. A path without a text is a file that is no text.
    pub(crate) fn from_sources(sources: BTreeMap<String, Option<String>>) -> Self {
        let folders = sources.keys().flat_map(|path| folders_above(path)).collect();
        let text = |(path, text): (String, Option<String>)| {
            (path.clone(), File::new(path, text.unwrap_or_default()))
        };
        let mut files: BTreeMap<String, File> = sources.into_iter().map(text).collect();
        mark_test_modules(&mut files);
        Self { files, folders }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// Whether a file or folder of this path exists. The root is the empty path.
    pub(crate) fn exists(&self, path: &str) -> bool {
        path.is_empty() || self.files.contains_key(path) || self.folders.contains(path.trim_end_matches('/'))
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// The Rust files that parse, with their code.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Code)> {
        self.files.values().filter_map(|file| Some((file, file.code.as_ref()?.as_ref().ok()?)))
    }

    /// The files with this name that can be read as TOML, with their settings.
    pub(crate) fn manifests<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a File, &'a [Setting])> {
        let named = move |file: &&File| file.path.rsplit('/').next() == Some(name);
        let read = |file: &'a File| Some((file, file.settings.as_ref()?.as_ref().ok()?.as_slice()));
        self.files.values().filter(named).filter_map(read)
    }
}

/// A file's text; none where it is too large or no UTF-8.
fn read(place: &Path, path: &str) -> Result<Option<String>, String> {
    let length = fs::metadata(place).map_err(|error| format!("{path}: {error}"))?.len();
    if length > FILE_BYTES_MAX {
        return Ok(None);
    }
    let bytes = fs::read(place).map_err(|error| format!("{path}: {error}"))?;
    Ok(String::from_utf8(bytes).ok())
}

/// Understands what this project's `.gitignore` uses: a path, a name, or `*` with an ending.
fn is_ignored(pattern: &str, path: &str, name: &str) -> bool {
    if pattern.is_empty() || pattern.starts_with('#') {
        return false;
    }
    pattern == path
        || pattern == name
        || pattern.strip_prefix('*').is_some_and(|ending| name.ends_with(ending))
}

fn folders_above(path: &str) -> impl Iterator<Item = String> {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned())
}

fn place_by_path(path: &str) -> Place {
    let has = |folder: &str| path.split('/').any(|part| part == folder);
    if has("tests") || has("benches") || has("fuzz") {
        Place::Test
    } else if has("examples") {
        Place::Example
    } else {
        Place::Shipped
    }
}

/// Files behind `#[cfg(test)] mod name;` are tests too.
fn mark_test_modules(files: &mut BTreeMap<String, File>) {
    let modules: Vec<String> = files.values().flat_map(test_modules).collect();
    for file in files.values_mut() {
        let stem = file.path.trim_end_matches(".rs");
        let is_inside = |module: &String| stem == module || stem.starts_with(&format!("{module}/"));
        if modules.iter().any(is_inside) {
            file.place = Place::Test;
        }
    }
}

/// Where the modules that this file declares for tests only live, without `.rs`.
fn test_modules(file: &File) -> Vec<String> {
    let Some(Ok(code)) = &file.code else { return Vec::new() };
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let folder = match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => file.path.trim_end_matches(".rs").to_owned(),
    };
    let declared =
        |parts: &[super::code::Token]| parts[0].test && parts[0].is_ident("mod") && parts[2].is_punct(";");
    let windows = code.tokens.windows(3).filter(|parts| declared(parts));
    windows.map(|parts| format!("{folder}/{}", parts[1].text)).collect()
}
