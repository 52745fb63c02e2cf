//! Wrong uses that don't compile: each file of `wrong` with what the compiler says.

use std::process::Command;

/// The compiler whose messages the files have: others word them otherwise.
const RELEASE: &str = "rustc 1.95.";

#[test]
#[ignore = "builds all dependencies once more; nightly.yml runs it"]
fn wrong_uses_do_not_compile() {
    let version = Command::new("rustc").arg("--version").output().expect("cargo runs rustc, too");
    if String::from_utf8_lossy(&version.stdout).starts_with(RELEASE) {
        trybuild::TestCases::new().compile_fail("tests/wrong/*.rs");
    }
}
