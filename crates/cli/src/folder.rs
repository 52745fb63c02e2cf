//! Keys of `[[site]]` and `[[site.route]]` as options of a folder.

use shearwater_config as config;
use shearwater_files::{
    CacheRule, Coding, FileMatch, FindOptions, FolderOptions, Hidden, Links, MediaTypeOptions,
};
use shearwater_precompress::Format;

/// Returns the options of a folder.
pub(crate) fn options(serving: &config::Serving) -> FolderOptions {
    FolderOptions {
        find: FindOptions {
            index: serving.index.clone(),
            try_files: serving.try_files.clone(),
            spa: serving.spa.clone(),
            clean_urls: serving.clean_urls,
        },
        hidden: match serving.hidden {
            config::Hidden::Deny => Hidden::Deny,
            config::Hidden::Serve => Hidden::Serve,
        },
        symlinks: match serving.symlinks {
            config::Symlinks::Inside => Links::Inside,
            config::Symlinks::Never => Links::Never,
            config::Symlinks::Follow => Links::Follow,
        },
        listing: serving.listing,
        precompressed: serving.precompressed.iter().copied().map(coding).collect(),
        media_types: MediaTypeOptions {
            by_extension: serving.mime.iter().map(|(name, kind)| (name.clone(), kind.clone())).collect(),
            otherwise: None,
        },
        cache_control: serving.cache_control.iter().filter_map(rule).collect(),
    }
}

/// Returns the key of an option.
pub(crate) fn key(option: &str) -> &str {
    match option {
        "by_extension" | "otherwise" => "mime",
        same => same,
    }
}

/// Returns the format of precompressed files in a coding.
pub(crate) fn format(coding: config::Coding) -> Format {
    match coding {
        config::Coding::Br => Format::Br,
        config::Coding::Zstd => Format::Zstd,
        config::Coding::Gzip => Format::Gzip,
    }
}

fn coding(coding: config::Coding) -> Coding {
    match coding {
        config::Coding::Br => Coding::Br,
        config::Coding::Zstd => Coding::Zstd,
        config::Coding::Gzip => Coding::Gzip,
    }
}

/// Every rule that was parsed matches something.
fn rule(rule: &config::CacheControl) -> Option<CacheRule> {
    let files = match rule.applies()? {
        config::Applies::MediaType(kind) => FileMatch::Type(kind.to_owned()),
        config::Applies::Path(path) => FileMatch::Path(path.to_owned()),
    };
    Some(CacheRule { files, value: rule.value.clone() })
}
