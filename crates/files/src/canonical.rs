//! Canonical paths of files: pages without their extension, indexes as their folder.

use crate::candidate::{Candidate, PAGE_EXTENSION};
use crate::settings::Settings;

/// Returns a file's canonical name: the folder of an index, a page without its extension, or the file itself.
pub(crate) fn canonical<'a>(file: &'a [u8], index: &[Vec<u8>]) -> &'a [u8] {
    let start = file.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let last = &file[start..];
    if index.iter().any(|index| index == last) {
        return &file[..start];
    }
    match file.strip_suffix(PAGE_EXTENSION) {
        Some(page) if last.len() > PAGE_EXTENSION.len() => page,
        _ => file,
    }
}

/// Returns the name that a file is redirected to if it exists. `None` if there is no redirect, or if it depends on
/// other files.
pub(crate) fn redirect_target<'a>(file: &'a [u8], settings: &Settings) -> Option<&'a [u8]> {
    let (each, index) = (&settings.candidates.each, &settings.candidates.index);
    if !settings.clean_urls || each.first() != Some(&Candidate::Itself) {
        return None;
    }
    let name = canonical(file, index);
    let is_folder = matches!(name, [] | [.., b'/']);
    let is_found = match is_folder {
        // Only the first index of a folder doesn't depend on other files.
        true => first_for_folders(each) == Some(&Candidate::Folder) && index.first()? == &file[name.len()..],
        false => each.get(1).is_some_and(Candidate::is_page),
    };
    (name != file && is_found).then_some(name)
}

/// Returns the first candidate for a path with a trailing slash.
fn first_for_folders(each: &[Candidate]) -> Option<&Candidate> {
    each.iter().find(|candidate| **candidate != Candidate::Itself && !candidate.is_page())
}

#[cfg(test)]
mod tests {
    use super::{canonical, redirect_target};
    use crate::options::{FindOptions, FolderOptions};
    use crate::settings::Settings;

    #[test]
    fn a_file_has_one_path() {
        let index = [b"index.html".to_vec(), b"home.htm".to_vec()];
        for (file, path) in [
            ("index.html", ""),
            ("a/index.html", "a/"),
            ("a/home.htm", "a/"),
            ("a/xindex.html", "a/xindex"),
            ("about.html", "about"),
            ("a/b.c.html", "a/b.c"),
            ("a.htm", "a.htm"),
            ("a/.html", "a/.html"),
            (".html", ".html"),
            ("a.HTML", "a.HTML"),
            ("html", "html"),
        ] {
            assert_eq!(canonical(file.as_bytes(), &index), path.as_bytes(), "{file}");
        }
    }

    #[test]
    fn what_is_certain_by_the_name_alone() {
        const USUAL: &[&str] = &[];
        for (clean_urls, try_files, file, name) in [
            (true, USUAL, "about.html", Some("about")),
            (true, USUAL, "a/index.html", Some("a/")),
            (true, USUAL, "index.html", Some("")),
            (true, USUAL, "about", None),
            (true, USUAL, "a/", None),
            (false, USUAL, "about.html", None),
            // There may be an index.html, which takes precedence.
            (true, USUAL, "a/home.html", None),
            (true, &["{path}", "{path}.html", "/x"], "about.html", Some("about")),
            (true, &["{path}", "/x", "{path}.html"], "about.html", None),
            (true, &["{path}", "/x", "{path}/"], "a/index.html", None),
            (true, &["/x", "{path}"], "about.html", None),
        ] {
            let find = FindOptions {
                index: vec!["index.html".to_owned(), "home.html".to_owned()],
                try_files: try_files.iter().map(|&tried| tried.to_owned()).collect(),
                clean_urls,
                ..FindOptions::default()
            };
            let settings =
                Settings::new(&FolderOptions { find, ..FolderOptions::default() }).expect("valid options");
            assert_eq!(
                redirect_target(file.as_bytes(), &settings),
                name.map(str::as_bytes),
                "{file} {try_files:?}"
            );
        }
    }
}
