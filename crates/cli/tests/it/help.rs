//! `--help`, `-h`, `--version`.

use crate::folder::Temporary;
use crate::process::run;

#[test]
fn help_names_everything() {
    let folder = Temporary::new();
    for flag in ["--help", "-h"] {
        let (code, stdout, stderr) = run(folder.path(), &[flag]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{flag}");
        for named in [
            "Usage: shearwater",
            "[DIR]",
            "--config",
            "check",
            "precompress",
            "config --print-default",
            "--listen",
            "--workers",
            "--driver",
            "--pin",
            "--drain",
            "--help",
            "--version",
            "127.0.0.1:8080",
            "./public",
            "Examples:",
            "SIGTERM",
            "SIGUSR1",
            "Exit codes",
            "epoll",
            "kqueue",
        ] {
            assert!(stdout.contains(named), "{flag} does not name {named}:\n{stdout}");
        }
        assert!(stdout.lines().all(|line| line.chars().count() <= 100), "{flag}:\n{stdout}");
        assert!(!stdout.contains('\x1b'), "{flag}: {stdout:?}");
    }
}

#[test]
fn version_is_that_of_the_package() {
    let folder = Temporary::new();
    for flag in ["--version", "-V"] {
        let expected = format!("shearwater {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(run(folder.path(), &[flag]), (0, expected, String::new()));
    }
}
