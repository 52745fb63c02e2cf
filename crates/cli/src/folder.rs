//! Keys of `[[site]]` and `[[site.route]]` about files, as options of a folder.

use shearwater_config as config;
use shearwater_files::{
    CacheRule, Coding, FileMatch, FindOptions, FolderOptions, Hidden, Links, MediaTypeOptions,
};

/// Returns the options of a folder.
pub(crate) fn options(serving: &config::Serving) -> FolderOptions {
    FolderOptions {
        find: FindOptions {
            index: serving.index.clone(),
            try_files: serving.try_files.iter().map(|tried| try_file(tried)).collect(),
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

/// Returns a message for each invalid key, with the key relative to its table.
///
/// Each value is checked on its own, so that all of them are reported, and then all together.
pub(crate) fn check(serving: &config::Serving) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let mut check = |key: String, options: FolderOptions| {
        if let Err(bad) = options.check() {
            wrong.push((key, format!("invalid value: {}", bad.why)));
        }
    };
    let default = FolderOptions::default;
    let find = |find: FindOptions| FolderOptions { find, ..default() };
    for (index, name) in serving.index.iter().enumerate() {
        check(
            format!("index[{index}]"),
            find(FindOptions { index: vec![name.clone()], ..FindOptions::default() }),
        );
    }
    for (index, tried) in serving.try_files.iter().enumerate() {
        let try_files = vec![try_file(tried)];
        check(format!("try_files[{index}]"), find(FindOptions { try_files, ..FindOptions::default() }));
    }
    let spa = serving.spa.clone();
    check("spa".to_owned(), find(FindOptions { spa, ..FindOptions::default() }));
    for (extension, kind) in &serving.mime {
        let by_extension = vec![(extension.clone(), kind.clone())];
        let media_types = MediaTypeOptions { by_extension, otherwise: None };
        check(format!("mime.{extension}"), FolderOptions { media_types, ..default() });
    }
    for (index, rule) in serving.cache_control.iter().filter_map(rule).enumerate() {
        let value = CacheRule { files: FileMatch::Path("/*".to_owned()), value: rule.value.clone() };
        let files = CacheRule { value: "no-cache".to_owned(), ..rule };
        for (key, rule) in [("value", value), ("path", files)] {
            let cache_control = vec![rule];
            check(format!("cache_control[{index}].{key}"), FolderOptions { cache_control, ..default() });
        }
    }
    if wrong.is_empty()
        && let Err(bad) = options(serving).check()
    {
        wrong.push((bad.option.to_owned(), format!("invalid value: {}", bad.why)));
    }
    wrong
}

/// Normalizes an entry of `try_files`: `= 404` is `=404`.
fn try_file(text: &str) -> String {
    match text.strip_prefix('=') {
        Some(status) => format!("={}", status.trim_start()),
        None => text.to_owned(),
    }
}

pub(crate) fn coding(coding: config::Coding) -> Coding {
    match coding {
        config::Coding::Br => Coding::Br,
        config::Coding::Zstd => Coding::Zstd,
        config::Coding::Gzip => Coding::Gzip,
    }
}

/// Every rule that was parsed without errors matches something.
fn rule(rule: &config::CacheControl) -> Option<CacheRule> {
    let files = match rule.applies()? {
        config::Applies::MediaType(kind) => FileMatch::Type(kind.to_owned()),
        config::Applies::Path(path) => FileMatch::Path(path.to_owned()),
    };
    Some(CacheRule { files, value: rule.value.clone() })
}
