//! Checks of an open folder before it serves requests: redirects of its paths, missing files.

use std::borrow::Cow;

use shearwater_io::fs::{Kind, OpenError};

use crate::candidate::{Candidate, Candidates};
use crate::folder::Folder;
use crate::options::Hidden;
use crate::resolve::{Shape, resolve};
use crate::search::{Found, Search};
use crate::{canonical, redirect};

impl Folder {
    /// Returns the path that a file at this path is redirected to if it exists.
    ///
    /// `None` if there is no redirect, or if it depends on other files. Opens no file.
    #[must_use]
    pub fn leads_to(&self, path: &str) -> Option<String> {
        let mut name = Vec::new();
        let resolved = resolve(path, &mut name).ok()?;
        if resolved.is_hidden && self.settings.hidden == Hidden::Deny {
            return None;
        }
        canonical::redirect_target(&name, &self.settings).map(redirect::encoded)
    }

    /// Returns the path that this one is redirected to by the folder's present files.
    #[must_use]
    pub fn leads_to_now(&self, path: &str) -> Option<String> {
        let mut name = Vec::new();
        let resolved = resolve(path, &mut name).ok()?;
        if resolved.is_hidden && self.settings.hidden == Hidden::Deny {
            return None;
        }
        self.redirected(&name, resolved.shape).ok().flatten()
    }

    fn redirected(&self, name: &[u8], shape: Shape) -> Result<Option<String>, OpenError> {
        let search = Search { root: &self.root, settings: &self.settings };
        let (mut file, mut other) = (Vec::new(), Vec::new());
        Ok(match search.find(name, shape, &mut file)? {
            Found::Folder => Some(format!("{}/", redirect::encoded(name))),
            Found::File { depends_on_path: true, .. } if self.settings.clean_urls => {
                search.canonical(name, &file, &mut other)?.map(redirect::encoded)
            }
            Found::Nothing if search.page_without_slash(name, shape, &mut file)? => {
                name.strip_suffix(b"/").map(redirect::encoded)
            }
            _ => None,
        })
    }

    /// Returns a warning if `/` is not found now: the folder has no index, no list and no fallback.
    #[must_use]
    pub fn no_index(&self) -> Option<String> {
        let Candidates { each, index } = &self.settings.candidates;
        if self.settings.spa.is_some() || !each.contains(&Candidate::Folder) {
            return None;
        }
        let search = Search { root: &self.root, settings: &self.settings };
        let found = search.find(b"", Shape::Directory, &mut Vec::new());
        matches!(found, Ok(Found::Nothing)).then(|| {
            let index = index.first().map_or(Cow::Borrowed("index"), |name| String::from_utf8_lossy(name));
            format!("there is no {index} now, so / is not found: add one, or list the folder with `listing = true`")
        })
    }

    /// Returns whether there is such a file now. The path is decoded; its leading slash is optional.
    #[must_use]
    pub fn has_file(&self, name: &str) -> bool {
        self.has_file_of(name.strip_prefix('/').unwrap_or(name).as_bytes())
    }

    fn has_file_of(&self, name: &[u8]) -> bool {
        self.root.open_beneath(name).is_ok_and(|opened| opened.kind == Kind::File)
    }

    /// Returns the options whose fallback file is missing now.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let last = self.settings.candidates.each.last().and_then(|candidate| candidate.fixed_file());
        let named = [("spa", self.settings.spa.as_deref()), ("try_files", last)];
        let is_missing = |(option, file): (_, Option<&[u8]>)| (!self.has_file_of(file?)).then_some(option);
        named.into_iter().filter_map(is_missing).collect()
    }
}
