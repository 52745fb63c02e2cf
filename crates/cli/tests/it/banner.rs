//! The start report.

use crate::folder::Temporary;
use crate::process::{Serving, program};

#[test]
fn prints_the_start_report() {
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
fn reports_a_driver_as_asked() {
    let folder = Temporary::new();
    let found = Serving::start(folder.path(), &["--driver", "auto"]);
    let (name, _) = found.line("driver").and_then(|driver| driver.split_once(' ')).expect("a driver");
    let serving = Serving::start(folder.path(), &["--driver", name]);
    assert_eq!(serving.line("driver"), Some(format!("{name} (as asked)").as_str()));
}

#[test]
fn shows_an_unspecified_address_as_loopback() {
    let folder = Temporary::new();
    let serving = Serving::of(&mut program(folder.path(), &["-l", "0.0.0.0:0"]));
    let url = serving.line("URL").expect("a URL");
    let (url, note) = url.split_once("  ").expect("a note");
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with('/'), "{url}");
    assert_eq!(note, "(all addresses of this machine)");
}

#[test]
fn prints_no_colours_to_a_pipe() {
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
