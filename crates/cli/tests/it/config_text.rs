//! `shearwater config`: the text of a configuration.

use crate::folder::Temporary;
use crate::process::{program, run};

#[test]
fn the_default_is_printed_and_is_right() {
    let folder = Temporary::new();
    let (code, stdout, stderr) = run(folder.path(), &["config", "--print-default"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\n[server]\n") && stdout.contains("\nworkers = 0\n"), "{stdout}");
    folder.file("site.toml", &stdout);
    let (code, stdout, _) = run(folder.path(), &["check", "site.toml"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("127.0.0.1:8080") && stdout.contains("welcome page"), "{stdout}");
}

#[test]
fn what_is_in_effect_is_printed_without_what_variables_hold() {
    let folder = Temporary::new();
    folder.file(
        "conf/site.toml",
        "[server]\nworkers = 3\ndriver = \"${SHEARWATER_DRIVER}\"\n[[site]]\nroot = \"www\"\n",
    );
    let mut command = program(folder.path(), &["config", "--print-effective", "conf/site.toml"]);
    let output = command.env("SHEARWATER_DRIVER", "auto").output().expect("it runs");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(
        stdout.starts_with("# What is in effect with conf/site.toml.\n\n[server]\nworkers = 3\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("\ndriver = \"${SHEARWATER_DRIVER}\"\n") && stdout.contains("\nbacklog = 4096\n"),
        "{stdout}"
    );
    let root = format!("\nroot = \"{}\"\n", folder.path().join("conf/www").display());
    assert!(stdout.contains(&root), "{stdout}");
    let (code, stdout, stderr) = run(folder.path(), &["config", "--print-effective", "conf/site.toml"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(
        stderr.starts_with(
            "conf/site.toml:3:10: server.driver: the environment has no variable SHEARWATER_DRIVER "
        ),
        "{stderr}"
    );
}

#[test]
fn one_of_both_is_asked_for() {
    let folder = Temporary::new();
    for arguments in [&["config"][..], &["config", "--print-default", "--print-effective", "x"]] {
        let (code, stdout, stderr) = run(folder.path(), arguments);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.contains("--print-default") && stderr.contains("--print-effective"), "{stderr}");
    }
}
