//! Warnings about precompressed files that are not sent because they are older than their originals.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use shearwater_precompress::{Coding, Unused, unused};

use crate::report::grouped;
use crate::site::Root;

/// A folder with unused siblings.
pub(crate) struct Found {
    folder: PathBuf,
    unused: Unused,
}

/// Searches each folder once. A folder that can't be read is skipped: serving it reports the error.
pub(crate) fn find(roots: &[Root]) -> Vec<Found> {
    let mut folders: BTreeMap<PathBuf, Vec<Coding>> = BTreeMap::new();
    for Root { path, formats } in roots {
        folders.entry(path.clone()).or_default().extend(formats);
    }
    let search = |(folder, formats): (PathBuf, Vec<Coding>)| {
        let unused = unused(&folder, &formats).ok().filter(|unused| unused.count > 0)?;
        Some(Found { folder, unused })
    };
    folders.into_iter().filter_map(search).collect()
}

/// Prints the warnings to standard error from a background thread, so that the start isn't delayed.
pub(crate) fn warn_in_background(roots: Vec<Root>) {
    let warn = move || drop(write!(std::io::stderr(), "{}", as_text(&find(&roots))));
    // Without a thread there is no warning at the start; `shearwater check` prints it.
    drop(thread::Builder::new().name("siblings".to_owned()).spawn(warn));
}

/// Formats a warning for each folder.
pub(crate) fn as_text(found: &[Found]) -> String {
    let mut text = String::new();
    for Found { folder, unused } in found {
        let (folder, count) = (folder.display(), grouped(unused.count));
        let more = if unused.is_whole { "" } else { " or more" };
        let example = example(unused);
        text.push_str(&format!(
            "warning: {count}{more} precompressed files in {folder} are not sent because their originals are newer, such as {example}\n\
             help: `shearwater precompress {folder}` updates them\n"
        ));
    }
    text
}

/// Formats the warnings as JSON.
pub(crate) fn as_json(found: &[Found]) -> Vec<Value> {
    let folder = |Found { folder, unused }: &Found| {
        json!({
            "folder": folder.to_string_lossy(),
            "count": unused.count,
            "example": example(unused).to_string(),
            "is_whole": unused.is_whole,
        })
    };
    found.iter().map(folder).collect()
}

fn example(unused: &Unused) -> impl std::fmt::Display {
    unused.example.as_deref().unwrap_or(Path::new("")).display()
}
