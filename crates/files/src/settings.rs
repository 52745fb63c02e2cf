//! A folder's options, validated and compiled for the workers.

use shearwater_compress::is_compressible;
use shearwater_compress::limits::CONTENT_BYTES_MIN;
use shearwater_io::fs::Coding;

use crate::cache_control::CacheRules;
use crate::limits::COMPRESSED_FILE_BYTES_MAX;
use crate::media_type::{MediaTypes, is_gzipped};
use crate::options::{BadOption, FolderOptions, Hidden, file_name};
use crate::resolve::candidate::Candidates;

/// Compiled options of a folder, shared by all workers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FolderSettings {
    pub(crate) candidates: Candidates,
    /// Fallback file for missing paths.
    pub(crate) spa: Option<Vec<u8>>,
    pub(crate) hidden: Hidden,
    /// Codings of siblings.
    pub(crate) codings: Vec<Coding>,
    /// Codings that responses can have, by descending preference: those of siblings come first.
    pub(crate) preferred: Vec<Coding>,
    /// Files are compressed on the fly.
    compress: bool,
    pub(crate) media_types: MediaTypes,
    pub(crate) cache_rules: CacheRules,
}

impl FolderSettings {
    /// # Errors
    /// The first invalid value.
    pub(crate) fn new(options: &FolderOptions) -> Result<Self, BadOption> {
        for (place, coding) in options.precompressed.iter().enumerate() {
            if options.precompressed[..place].contains(coding) {
                return Err(BadOption::new("precompressed", coding.name(), "listed twice"));
            }
        }
        let mut preferred = options.precompressed.clone();
        if options.compress {
            preferred.extend(Coding::ALL.iter().filter(|coding| !options.precompressed.contains(coding)));
        }
        Ok(Self {
            candidates: Candidates::new(options)?,
            spa: options.find.spa.as_deref().map(|path| file_name("spa", path)).transpose()?,
            hidden: options.hidden,
            codings: options.precompressed.clone(),
            preferred,
            compress: options.compress,
            media_types: MediaTypes::new(&options.media_types)?,
            cache_rules: CacheRules::new(&options.cache_control)?,
        })
    }

    /// Returns whether a file of this name and length is compressed on the fly.
    pub(crate) fn compresses(&self, name: &[u8], len: u64) -> bool {
        if !self.compress || !(CONTENT_BYTES_MIN as u64..=COMPRESSED_FILE_BYTES_MAX).contains(&len) {
            return false;
        }
        let media_type = self.media_types.of(name);
        is_compressible(media_type.as_bytes())
            && !is_gzipped(name, &media_type)
            && !self.cache_rules.of(name, &media_type).is_some_and(forbids_transform)
    }
}

/// Returns whether a `Cache-Control` says that content stays as it is (RFC 9111 section 5.2.2.6).
fn forbids_transform(cache_control: &str) -> bool {
    cache_control.split(',').any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
}

impl FolderOptions {
    /// Validates all values without reading files.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), BadOption> {
        FolderSettings::new(self).map(drop)
    }
}

#[cfg(test)]
impl FolderSettings {
    /// Returns the settings of a folder with default options.
    pub(crate) fn default_for_test() -> Self {
        Self::new(&FolderOptions::default()).expect("default options are valid")
    }
}
