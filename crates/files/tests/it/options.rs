//! Invalid options are rejected before anything is served, with the invalid value.

use std::path::Path;

use shearwater_files::limits::{INDEX_NAMES_MAX, TRY_FILES_MAX};
use shearwater_files::{Coding, Folder, FolderError, FolderOptions};

use crate::finding::strings;

fn refusal(change: impl Fn(&mut FolderOptions)) -> String {
    let mut options = FolderOptions::default();
    change(&mut options);
    let bad = options.check().expect_err("it is refused");
    let folder = Folder::open_with(Path::new("/none"), &options);
    assert!(matches!(&folder, Err(FolderError::Option(same)) if *same == bad), "options are checked first");
    bad.to_string()
}

#[test]
fn the_usual_options_mean_something() {
    assert_eq!(FolderOptions::default().check(), Ok(()));
    let opened = Folder::open_with(Path::new("/none/such"), &FolderOptions::default());
    assert!(matches!(opened, Err(FolderError::Open(_))));
}

#[test]
fn candidates_that_can_never_be_files_are_refused() {
    for (text, why) in [
        ("", "begins with a slash"),
        ("index.html", "begins with a slash"),
        ("path}.html", "begins with a slash"),
        ("/a//b", "empty"),
        ("/dir/", "empty"),
        ("/", "empty"),
        ("{path}//x", "empty"),
        ("/a//{path}", "empty"),
        ("/../x", ".."),
        ("/a/./b", ".."),
        ("{path}/../x", ".."),
        ("/a\0", "NUL"),
        ("/{file}.html", "{path}"),
        ("{path}{query}", "{path}"),
        ("{path}{path}", "{path}"),
        ("a{path}", "begins with a slash"),
        ("=200", "status"),
        ("=401", "except 401"),
        ("=405", "except 401"),
        ("=600", "status"),
        ("=04", "status"),
        ("=+44", "status"),
        ("=", "status"),
    ] {
        let refused = refusal(|options| options.find.try_files = strings(&["{path}", text]));
        assert!(refused.starts_with(&format!("try_files {text:?}: ")) && refused.contains(why), "{refused}");
    }
    let refused = refusal(|options| options.find.try_files = strings(&["=404", "{path}"]));
    assert!(refused.contains("must be the last"), "{refused}");
}

#[test]
fn lists_have_so_many_entries_at_most() {
    let mut options = FolderOptions::default();
    options.find.try_files = vec!["{path}".to_owned(); TRY_FILES_MAX];
    options.find.index = vec!["i".to_owned(); INDEX_NAMES_MAX];
    assert_eq!(options.check(), Ok(()));
    let refused = refusal(|options| options.find.try_files = vec!["{path}".to_owned(); TRY_FILES_MAX + 1]);
    assert!(refused.contains("too many"), "{refused}");
    let refused = refusal(|options| options.find.index = vec!["i".to_owned(); INDEX_NAMES_MAX + 1]);
    assert!(refused.contains("too many"), "{refused}");
}

#[test]
fn other_values_are_refused_too() {
    for index in ["", "a/b", ".", "..", "{path}", "/index.html"] {
        let refused = refusal(|options| options.find.index = strings(&[index]));
        assert!(refused.starts_with("index "), "{refused}");
    }
    for spa in ["index.html", "/", "/a/../b"] {
        let refused = refusal(|options| options.find.spa = Some(spa.to_owned()));
        assert!(refused.starts_with("spa "), "{refused}");
    }
    let refused = refusal(|options| options.precompressed = vec![Coding::Br, Coding::Gzip, Coding::Br]);
    assert_eq!(refused, "precompressed \"br\": listed twice");
}
