//! The files of a folder without symbolic links and names that start with a dot, except `.well-known`: those to compress,
//! and siblings that exist but are not sent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shearwater_io::fs::{Coding, Meta};

use crate::limits::{FILES_MAX, FOLDERS_DEEP_MAX, UNUSED_NAMES_MAX};
use crate::sibling::{SiblingState, remove_left_over};

/// Served although it starts with a dot (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// An entry of a folder.
enum Visited {
    File(PathBuf),
    /// A file whose name starts with a dot.
    HiddenFile(PathBuf),
    /// An entry or folder that can't be read.
    FailedFile(PathBuf, io::Error),
}

/// Collects the files of a folder that aren't siblings, sorted by name. Passes read errors to `failed`, and removes
/// temporary files of killed runs if `removes`.
///
/// # Errors
/// The folder can't be read, or has too many files.
pub(crate) fn files(
    folder: &Path,
    removes: bool,
    failed: &mut dyn FnMut(&Path, &io::Error),
) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(folder, usize::MAX, &mut |visited| {
        match visited {
            Visited::File(_) if files.len() >= FILES_MAX => {
                return Err(io::Error::other(format!("more than {FILES_MAX} files")));
            }
            Visited::File(path) => files.push(path),
            Visited::HiddenFile(path) if removes => remove_left_over(&path),
            Visited::HiddenFile(_) => {}
            Visited::FailedFile(path, error) => failed(&path, &error),
        }
        Ok(())
    })?;
    sort(&mut files);
    Ok(files.iter().filter(|file| bases(file, &Coding::ALL, &files).next().is_none()).cloned().collect())
}

/// Siblings that servers don't send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Number of those that may have earlier content of their files.
    pub count: u64,
    /// Path of the first of them.
    pub example: Option<PathBuf>,
    /// Number of those that aren't in their coding, such as empty ones.
    pub damaged: u64,
    /// Path of the first of them.
    pub damaged_example: Option<PathBuf>,
    /// `false` if the search stopped after [`UNUSED_NAMES_MAX`] names.
    pub is_whole: bool,
}

/// Counts unused siblings of the files that [`precompress`](crate::precompress) would process.
///
/// # Errors
/// The folder can't be read. Folders within it that can't be read are skipped.
pub fn unused(folder: &Path, codings: &[Coding]) -> io::Result<Unused> {
    let mut files = Vec::new();
    let is_whole = walk(folder, UNUSED_NAMES_MAX, &mut |visited| {
        if let Visited::File(path) = visited {
            files.push(path);
        }
        Ok(())
    })?;
    sort(&mut files);
    let is_coded =
        |base: &Path| Coding::ALL.iter().any(|coding| bytes(base).ends_with(coding.extension().as_bytes()));
    let state = |sibling: &PathBuf| {
        let coding = codings.iter().find(|coding| bytes(sibling).ends_with(coding.extension().as_bytes()))?;
        let base = bases(sibling, codings, &files).next().filter(|base| !is_coded(base))?;
        Some(SiblingState::of(sibling, *coding, &Meta::from(&fs::metadata(base).ok()?)))
    };
    let mut unused = Unused { count: 0, example: None, damaged: 0, damaged_example: None, is_whole };
    for sibling in &files {
        let (count, example) = match state(sibling) {
            Some(SiblingState::Unused) => (&mut unused.count, &mut unused.example),
            Some(SiblingState::Damaged) => (&mut unused.damaged, &mut unused.damaged_example),
            _ => continue,
        };
        *count += 1;
        example.get_or_insert_with(|| sibling.clone());
    }
    Ok(unused)
}

/// Visits the files of a folder and of those within it. Returns false if it stopped after `names_max` names.
///
/// # Errors
/// The folder can't be read, or `visit` fails.
fn walk(
    folder: &Path,
    names_max: usize,
    visit: &mut dyn FnMut(Visited) -> io::Result<()>,
) -> io::Result<bool> {
    let mut names_left = names_max;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((within, depth)) = folders.pop() {
        let entries = match fs::read_dir(&within) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                visit(Visited::FailedFile(within, error))?;
                continue;
            }
        };
        for entry in entries {
            if names_left == 0 {
                return Ok(false);
            }
            names_left -= 1;
            let (kind, entry) = match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok(found) => found,
                Err(error) => {
                    visit(Visited::FailedFile(within.clone(), error))?;
                    continue;
                }
            };
            let (name, path) = (entry.file_name(), entry.path());
            let is_hidden = name != WELL_KNOWN && name.as_encoded_bytes().first() == Some(&b'.');
            match (kind.is_file(), kind.is_dir()) {
                (true, _) if is_hidden => visit(Visited::HiddenFile(path))?,
                (true, _) => visit(Visited::File(path))?,
                (_, true) if is_hidden => {}
                (_, true) if depth < FOLDERS_DEEP_MAX => folders.push((path, depth + 1)),
                (_, true) => {
                    let why = format!("folders are nested deeper than {FOLDERS_DEEP_MAX}");
                    visit(Visited::FailedFile(path, io::Error::other(why)))?;
                }
                (false, false) => {}
            }
        }
    }
    Ok(true)
}

/// Returns the files that a file may be a sibling of, among these sorted ones.
fn bases<'a>(
    file: &'a Path,
    codings: &'a [Coding],
    files: &'a [PathBuf],
) -> impl Iterator<Item = &'a PathBuf> {
    let stripped =
        codings.iter().filter_map(|coding| bytes(file).strip_suffix(coding.extension().as_bytes()));
    stripped.filter_map(|base| Some(&files[files.binary_search_by(|other| bytes(other).cmp(base)).ok()?]))
}

/// Sorts files by the bytes of their paths.
fn sort(files: &mut [PathBuf]) {
    files.sort_unstable_by(|one, other| bytes(one).cmp(bytes(other)));
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}
