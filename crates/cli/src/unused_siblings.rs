//! Warnings about compressed siblings that are not sent, with the command that makes them current.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use shearwater_precompress::{Format, Unused, unused};

use crate::banner::grouped;
use crate::json::Json;
use crate::site::Root;

/// A folder with such siblings.
pub(crate) struct Found {
    folder: PathBuf,
    unused: Unused,
}

/// Looks into each of these folders once. One that can't be read is left out: that shows when it is served.
pub(crate) fn look(roots: Vec<Root>) -> Vec<Found> {
    let mut folders: BTreeMap<PathBuf, Vec<Format>> = BTreeMap::new();
    for Root { path, formats } in roots {
        folders.entry(path).or_default().extend(formats);
    }
    let look = |(folder, formats): (PathBuf, Vec<Format>)| {
        let unused = unused(&folder, &formats).ok().filter(|unused| unused.count > 0)?;
        Some(Found { folder, unused })
    };
    folders.into_iter().filter_map(look).collect()
}

/// Prints the warnings to standard error, from a thread of its own: the start doesn't wait for it.
pub(crate) fn warn_in_background(roots: Vec<Root>) {
    let warn = move || drop(write!(std::io::stderr(), "{}", as_text(&look(roots))));
    // Without a thread there is no warning at the start; `shearwater check` prints it.
    drop(thread::Builder::new().name("siblings".to_owned()).spawn(warn));
}

/// A warning for each folder.
pub(crate) fn as_text(found: &[Found]) -> String {
    let mut text = String::new();
    for Found { folder, unused } in found {
        let (folder, count) = (folder.display(), grouped(unused.count));
        let more = if unused.is_whole { "" } else { " or more" };
        let example = example(unused);
        text.push_str(&format!(
            "warning: {count}{more} compressed siblings in {folder} are not sent, such as {example}: \
             their files were changed, or copied there, after them\n\
             help: `shearwater precompress {folder}` compares them with their files and makes them current\n"
        ));
    }
    text
}

/// The same for programs.
pub(crate) fn as_json(found: &[Found]) -> Json {
    let folder = |Found { folder, unused }: &Found| {
        Json::Object(vec![
            ("folder", Json::text(folder.display())),
            ("count", Json::Number(unused.count)),
            ("example", Json::text(example(unused))),
            ("is_whole", Json::Flag(unused.is_whole)),
        ])
    };
    Json::List(found.iter().map(folder).collect())
}

fn example(unused: &Unused) -> impl std::fmt::Display {
    unused.example.as_deref().unwrap_or(Path::new("")).display()
}
