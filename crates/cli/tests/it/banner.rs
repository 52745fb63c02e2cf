//! The block at the start: where, what, how.

use crate::folder::Temporary;
use crate::process::{Serving, program};

#[test]
fn it_says_where_what_and_how() {
    let folder = Temporary::new();
    folder.file("site/index.html", "index");
    let serving = Serving::start(folder.path(), &["site", "--workers", "2"]);
    let title = format!("Shearwater {}\n", env!("CARGO_PKG_VERSION"));
    assert!(serving.banner.starts_with(&title), "{}", serving.banner);
    assert_ne!(serving.address().port(), 0);
    assert_eq!(serving.line("serves"), folder.path().join("site").to_str());
    assert_eq!(serving.line("workers"), Some("2"));
    let driver = serving.line("driver").expect("a driver");
    let (name, reason) = driver.split_once(" (").expect("a reason");
    assert!(
        ["epoll", "kqueue", "uring"].contains(&name) && reason.len() > 5 && reason.ends_with(')'),
        "{driver}"
    );
    let descriptors = serving.line("descriptors").expect("descriptors");
    assert!(descriptors.starts_with("limit ") && descriptors.ends_with(" connections"), "{descriptors}");
    assert!(serving.banner.contains("Ctrl-C"), "{}", serving.banner);
    assert_eq!(serving.connect().request("GET", "/", &[]).text(), "index");
}

#[test]
fn a_driver_that_was_asked_for_is_named_so() {
    let folder = Temporary::new();
    let found = Serving::start(folder.path(), &["--driver", "auto"]);
    let (name, _) = found.line("driver").and_then(|driver| driver.split_once(' ')).expect("a driver");
    let serving = Serving::start(folder.path(), &["--driver", name]);
    assert_eq!(serving.line("driver"), Some(format!("{name} (as asked)").as_str()));
}

#[test]
fn every_address_of_the_machine_is_shown_as_one_that_can_be_opened() {
    let folder = Temporary::new();
    let serving = Serving::of(&mut program(folder.path(), &["-l", "0.0.0.0:0"]));
    let url = serving.line("URL").expect("a URL");
    let (url, note) = url.split_once("  ").expect("a note");
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with('/'), "{url}");
    assert_eq!(note, "(all addresses of this machine)");
}

#[test]
fn a_pipe_gets_no_colours() {
    let folder = Temporary::new();
    for no_color in [None, Some(""), Some("1")] {
        let mut command = program(folder.path(), &["--listen", "127.0.0.1:0"]);
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let serving = Serving::of(&mut command);
        assert!(!serving.banner.contains('\x1b'), "NO_COLOR={no_color:?}: {:?}", serving.banner);
    }
}
