//! Siblings that no server sends are counted.

use std::os::unix::fs::symlink;

use shearwater_precompress::limits::UNUSED_NAMES_MAX;
use shearwater_precompress::{Format, Options, Unused, precompress, unused};

use crate::folder::Temporary;

fn found(folder: &Temporary, formats: &[Format]) -> Unused {
    unused(folder.path(), formats).expect("the folder can be read")
}

#[test]
fn counts_unused_siblings() {
    let folder = Temporary::new();
    let names = ["a.css", "deep/er/b.js", ".well-known/c.txt", ".hidden/d.css", ".e.css"];
    for name in names {
        folder.file(name, "x".repeat(2000));
        for format in Format::ALL {
            folder.file(&format!("{name}{}", format.extension()), "coded");
        }
    }
    let none = Unused { count: 0, example: None, is_whole: true };
    assert_eq!(found(&folder, &Format::ALL), none);
    folder.tick();
    for name in names {
        // Replaced, with the time that it had.
        folder.file(name, "y".repeat(2000)).time(name, 1000, 0);
    }
    // Neither is a sibling: there is no such file, or it is coded itself.
    folder.file("alone.gz", "").file("a.css.br.gz", "").time("a.css.br.gz", 1, 0);
    symlink("a.css", folder.path().join("link")).expect("a link");
    assert_eq!(found(&folder, &Format::ALL).count, 9);
    let Unused { count, example, is_whole } = found(&folder, &[Format::Zstd]);
    assert!(
        count == 3 && is_whole && example.is_some_and(|path| path.extension().is_some_and(|of| of == "zst"))
    );
    precompress(folder.path(), &Options::default(), &|_, _| {}).expect("the folder can be read");
    assert_eq!(found(&folder, &Format::ALL), none);
    assert!(unused(&folder.path().join("none"), &Format::ALL).is_err());
}

#[test]
fn limits_the_names_searched() {
    let folder = Temporary::new();
    // An old sibling, in a folder that is searched first.
    folder.file("a.css.gz", "coded").time("a.css.gz", 1000, 0).file("a.css", "new");
    std::fs::create_dir(folder.path().join("deep")).expect("a folder");
    for number in 0..UNUSED_NAMES_MAX {
        std::fs::write(folder.path().join(format!("deep/{number}")), "").expect("a file");
    }
    let Unused { count, is_whole, .. } = found(&folder, &Format::ALL);
    assert_eq!((count, is_whole), (1, false));
}

/// After `chmod -R` or `cp -a` all times are in order; the stated lengths are not.
#[test]
fn counts_siblings_that_state_another_length() {
    let folder = Temporary::new();
    folder.file("a.css", "x".repeat(2000)).time("a.css", 1000, 0);
    precompress(folder.path(), &Options::default(), &|_, _| {}).expect("the folder can be read");
    assert_eq!(found(&folder, &Format::ALL).count, 0);
    folder.file("a.css", "y".repeat(1999)).time("a.css", 1000, 0).tick();
    for format in Format::ALL {
        folder.time(&format!("a.css{}", format.extension()), 1000, 0);
    }
    assert_eq!(found(&folder, &Format::ALL).count, 3);
}
