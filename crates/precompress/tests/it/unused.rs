//! Siblings that no server sends are counted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater_precompress::limits::UNUSED_NAMES_MAX;
use shearwater_precompress::{Coding, Options, Unused, precompress, unused};

use testkit::{TestFolder, coded};

fn seconds(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn found(folder: &TestFolder, formats: &[Coding]) -> Unused {
    unused(folder.path(), formats).expect("the folder can be read")
}

#[test]
fn counts_unused_siblings() {
    let folder = TestFolder::new();
    let names = ["a.css", "deep/er/b.js", ".well-known/c.txt", ".hidden/d.css", ".e.css"];
    for name in names {
        folder.file(name, "x".repeat(2000));
        for format in Coding::ALL {
            let extension = format.extension();
            folder.file(format!("{name}{extension}"), coded(&extension[1..], "coded", 2000));
        }
    }
    let none = Unused { count: 0, example: None, damaged: 0, damaged_example: None, is_whole: true };
    assert_eq!(found(&folder, &Coding::ALL), none);
    folder.tick();
    for name in names {
        // Replaced, with the time that it had.
        folder.file(name, "y".repeat(2000)).set_modified(name, seconds(1000));
    }
    // Neither is a sibling: there is no such file, or it is coded itself.
    folder.file("alone.gz", "").file("a.css.br.gz", "").set_modified("a.css.br.gz", seconds(1));
    folder.link("link", "a.css");
    assert_eq!(found(&folder, &Coding::ALL).count, 9);
    let Unused { count, example, is_whole, .. } = found(&folder, &[Coding::Zstd]);
    assert!(
        count == 3 && is_whole && example.is_some_and(|path| path.extension().is_some_and(|of| of == "zst"))
    );
    precompress(folder.path(), &Options::default(), &|_, _| {}).expect("the folder can be read");
    assert_eq!(found(&folder, &Coding::ALL), none);
    assert!(unused(&folder.at("none"), &Coding::ALL).is_err());
}

#[test]
fn counts_siblings_that_are_not_in_their_coding() {
    let folder = TestFolder::new();
    for (name, bad) in [("a.css", ""), ("b.css", "<p>a text")] {
        folder.file(name, "x".repeat(2000));
        for format in Coding::ALL {
            folder.file(format!("{name}{}", format.extension()), bad);
        }
    }
    let Unused { count, damaged, damaged_example, .. } = found(&folder, &Coding::ALL);
    assert_eq!((count, damaged, damaged_example), (0, 6, Some(folder.at("a.css.br"))));
    precompress(folder.path(), &Options::default(), &|_, _| {}).expect("the folder can be read");
    assert_eq!(found(&folder, &Coding::ALL).damaged, 0, "they are made anew");
}

#[test]
fn limits_the_names_searched() {
    let folder = TestFolder::new();
    // An old sibling, in a folder that is searched first.
    folder
        .file("a.css.gz", coded("gz", "coded", 3))
        .set_modified("a.css.gz", seconds(1000))
        .file("a.css", "new");
    std::fs::create_dir(folder.at("deep")).expect("a folder");
    for number in 0..UNUSED_NAMES_MAX {
        std::fs::write(folder.at(format!("deep/{number}")), "").expect("a file");
    }
    let Unused { count, is_whole, .. } = found(&folder, &Coding::ALL);
    assert_eq!((count, is_whole), (1, false));
}

/// After `chmod -R` or `cp -a` all times are in order; the stated lengths are not.
#[test]
fn counts_siblings_that_state_another_length() {
    let folder = TestFolder::new();
    folder.file("a.css", "x".repeat(2000)).set_modified("a.css", seconds(1000));
    precompress(folder.path(), &Options::default(), &|_, _| {}).expect("the folder can be read");
    assert_eq!(found(&folder, &Coding::ALL).count, 0);
    folder.file("a.css", "y".repeat(1999)).set_modified("a.css", seconds(1000)).tick();
    for format in Coding::ALL {
        folder.set_modified(format!("a.css{}", format.extension()), seconds(1000));
    }
    assert_eq!(found(&folder, &Coding::ALL).count, 3);
}
