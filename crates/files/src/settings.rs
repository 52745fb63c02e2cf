//! A folder's options, validated and compiled for the workers.

use crate::cache_control::CacheRules;
use crate::candidate::Candidates;
use crate::coding::Coding;
use crate::media_types::MediaTypes;
use crate::options::{BadOption, FolderOptions, Hidden};
use crate::resolve::{BadPath, resolve};

/// Compiled options of a folder, shared by all workers.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) candidates: Candidates,
    /// Fallback file for missing paths.
    pub(crate) spa: Option<Vec<u8>>,
    /// True if each page has one path, without its extension.
    pub(crate) clean_urls: bool,
    pub(crate) hidden: Hidden,
    pub(crate) listing: bool,
    /// Codings by descending preference.
    pub(crate) codings: Vec<Coding>,
    pub(crate) media_types: MediaTypes,
    pub(crate) cache_rules: CacheRules,
}

impl Settings {
    /// # Errors
    /// The first invalid value.
    pub(crate) fn new(options: &FolderOptions) -> Result<Self, BadOption> {
        let find = &options.find;
        Ok(Self {
            candidates: Candidates::new(find)?,
            spa: find.spa.as_deref().map(|path| file_name("spa", path)).transpose()?,
            clean_urls: find.clean_urls,
            hidden: options.hidden,
            listing: options.listing,
            codings: codings(&options.precompressed)?,
            media_types: MediaTypes::new(&options.media_types)?,
            cache_rules: CacheRules::new(&options.cache_control)?,
        })
    }
}

#[cfg(test)]
impl Settings {
    /// Returns the settings of a folder with default options.
    pub(crate) fn default_for_test() -> Self {
        Self::new(&FolderOptions::default()).expect("default options are valid")
    }
}

/// Resolves the path of a fixed file in an option, percent-decoded like the path of a request.
pub(crate) fn file_name(option: &'static str, path: &str) -> Result<Vec<u8>, BadOption> {
    let bad = |why| BadOption::new(option, path, why);
    let segments = path.strip_prefix('/').ok_or_else(|| bad("a path begins with a slash"))?;
    if let Some(why) = segments.split('/').find_map(bad_segment) {
        return Err(bad(why));
    }
    decoded(path).map_err(bad)
}

/// Resolves a path in an option to a name, like the path of a request.
///
/// # Errors
/// The reason why the path has no name.
pub(crate) fn decoded(path: &str) -> Result<Vec<u8>, &'static str> {
    let mut name = Vec::new();
    match resolve(path, &mut name) {
        Ok(_) => Ok(name),
        Err(BadPath::Escape) => {
            Err("a percent sign is followed by two hexadecimal digits (a real one is written %25)")
        }
        Err(BadPath::Dots) => Err("it has . or .. in it"),
        Err(BadPath::NoName) => Err("a name must not contain a slash or a NUL"),
    }
}

/// Returns the error in one segment of a file's path.
pub(crate) fn bad_segment(segment: &str) -> Option<&'static str> {
    match segment {
        "" => Some("empty name: a path names a file, with one slash between names"),
        "." | ".." => Some("it has . or .. in it"),
        _ if segment.contains('\0') => Some("a name must not contain a NUL"),
        _ if segment.contains(['{', '}']) => {
            Some("braces are reserved for {path}, which is allowed once and only in try_files")
        }
        _ => None,
    }
}

fn codings(preferred: &[Coding]) -> Result<Vec<Coding>, BadOption> {
    for (place, coding) in preferred.iter().enumerate() {
        if preferred[..place].contains(coding) {
            return Err(BadOption::new("precompressed", coding.name(), "listed twice"));
        }
    }
    Ok(preferred.to_vec())
}
