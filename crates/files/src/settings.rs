//! A folder's options, validated and compiled for the workers.

use shearwater_io::fs::Coding;

use crate::cache_control::CacheRules;
use crate::media_type::MediaTypes;
use crate::options::{BadOption, FolderOptions, Hidden, file_name};
use crate::resolve::candidate::Candidates;

/// Compiled options of a folder, shared by all workers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FolderSettings {
    pub(crate) candidates: Candidates,
    /// Fallback file for missing paths.
    pub(crate) spa: Option<Vec<u8>>,
    pub(crate) hidden: Hidden,
    /// Codings by descending preference.
    pub(crate) codings: Vec<Coding>,
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
        Ok(Self {
            candidates: Candidates::new(options)?,
            spa: options.find.spa.as_deref().map(|path| file_name("spa", path)).transpose()?,
            hidden: options.hidden,
            codings: options.precompressed.clone(),
            media_types: MediaTypes::new(&options.media_types)?,
            cache_rules: CacheRules::new(&options.cache_control)?,
        })
    }
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
