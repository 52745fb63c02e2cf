//! Symbolic links that lead out of a folder, for messages to the operator. Clients never see where they lead.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use shearwater_io::fs::{EntryKind, OpenError, Root};

/// A symbolic link that leads out of its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingLink {
    /// Path of the link beneath the folder.
    pub link: PathBuf,
    /// Target, as it is written in the link.
    pub target: PathBuf,
}

/// Result of [`Folder::leaving_links`](crate::Folder::leaving_links).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingLinks {
    /// Number of links found.
    pub count: usize,
    /// One of them.
    pub example: Option<LeavingLink>,
    /// True if the folder has no more entries than were checked.
    pub is_whole: bool,
}

impl LeavingLink {
    /// Returns the first link that leads out in a path that was rejected with [`OpenError::Escapes`].
    #[cold]
    pub(crate) fn in_path(root: &Root, folder: &Path, name: &[u8]) -> Option<Self> {
        let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut prefixes = slashes.chain([name.len()]).map(|end| &name[..end]);
        Self::read(folder, prefixes.find(|prefix| leads_out(root, prefix))?)
    }

    /// Returns `None` if there is no such link any more.
    fn read(folder: &Path, name: &[u8]) -> Option<Self> {
        let link = PathBuf::from(OsStr::from_bytes(name));
        let target = fs::read_link(folder.join(&link)).ok()?;
        Some(Self { link, target })
    }
}

fn leads_out(root: &Root, name: &[u8]) -> bool {
    matches!(root.open_beneath(name), Err(OpenError::Escapes))
}

/// Searches a folder for links that lead out. Checks `entries_max` entries at most, and only those that `is_served`.
pub(crate) fn search(
    root: &Root,
    folder: &Path,
    entries_max: usize,
    is_served: impl Fn(&[u8]) -> bool,
) -> LeavingLinks {
    let mut found = LeavingLinks { count: 0, example: None, is_whole: true };
    let (mut left, mut directories) = (entries_max, vec![Vec::new()]);
    while let Some(directory) = directories.pop() {
        // Serving it reports why it can't be read.
        let Ok(opened) = root.open_beneath(&directory) else { continue };
        let mut entries: Vec<(Vec<u8>, Option<EntryKind>)> = Vec::new();
        let mut checked = 0;
        let is_read = opened.names(left, |name, kind| {
            checked += 1;
            if is_served(name) {
                entries.push((name.to_vec(), kind));
            }
        });
        left -= checked;
        found.is_whole &= is_read.unwrap_or(true);
        for (name, kind) in entries {
            let kind = kind.or_else(|| opened.entry(&name).map(|entry| entry.kind));
            let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
            let path = [&directory, separator, &name].concat();
            match kind {
                Some(EntryKind::Directory) => directories.push(path),
                Some(EntryKind::Link) if leads_out(root, &path) => {
                    found.count += 1;
                    found.example = found.example.or_else(|| LeavingLink::read(folder, &path));
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use shearwater_io::fs::Root;

    use super::{LeavingLink, search};

    fn link(link: &str, target: &str) -> LeavingLink {
        LeavingLink { link: link.into(), target: target.into() }
    }

    fn folder() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).expect("a folder");
        fs::write(at("a/b/f"), "f").expect("written");
        for (link, target) in [("a/b/out", "/usr"), ("inside", "a/b"), ("gone", "none"), (".hidden", "/")] {
            symlink(target, at(link)).expect("a link");
        }
        let root = Root::open(folder.path()).expect("a folder");
        (folder, root)
    }

    #[test]
    fn names_the_link_of_a_rejected_path() {
        let (folder, root) = folder();
        let found = |name: &str| LeavingLink::in_path(&root, folder.path(), name.as_bytes());
        assert_eq!(found("a/b/out"), Some(link("a/b/out", "/usr")));
        assert_eq!(found("a/b/out/lib/x"), Some(link("a/b/out", "/usr")));
        assert_eq!(found("inside/out/x"), Some(link("inside/out", "/usr")));
        assert_eq!(found("a/b/f"), None, "it doesn't lead out now");
    }

    #[test]
    fn searches_a_bounded_number_of_entries() {
        let (folder, root) = folder();
        let search = |entries_max| {
            let found = search(&root, folder.path(), entries_max, |name| !name.starts_with(b"."));
            (found.count, found.example, found.is_whole)
        };
        let out = Some(link("a/b/out", "/usr"));
        assert_eq!(search(7), (1, out, true));
        let (count, example, is_whole) = search(6);
        assert!(count <= 1 && example.is_some() == (count == 1) && !is_whole);
        assert_eq!(search(0), (0, None, false));
    }

    #[test]
    fn finds_nothing_if_links_are_followed() {
        let (folder, root) = folder();
        let root = root.with_links(shearwater_io::fs::Links::Follow);
        assert_eq!(search(&root, Path::new(folder.path()), 100, |_| true).count, 0);
    }
}
