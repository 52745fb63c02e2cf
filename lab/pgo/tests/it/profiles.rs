//! A profile is used where nothing has changed since it was made, and told to be stale in every other case.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgo::build::{self, Way};
use pgo::place::Place;
use pgo::profile::{self, Found};
use pgo::stamp::Stamp;
use pgo::toolchain::Toolchain;

/// A checkout with a profile; gone when dropped.
struct Checkout {
    root: PathBuf,
    place: Place,
    toolchain: Toolchain,
}

impl Checkout {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("pgo-test-{}-{name}", std::process::id()));
        for folder in ["crates/one/src", "crates/one/tests", "target/pgo"] {
            fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        for file in ["Cargo.toml", "Cargo.lock", "crates/one/src/lib.rs", "crates/one/tests/it.rs"] {
            fs::write(root.join(file), file).expect("a file");
        }
        let place = Place::within(&root, &root.join("target"));
        let toolchain = Toolchain::of(&root).expect("a compiler");
        Self { root, place, toolchain }
    }

    fn now(&self) -> Stamp {
        Stamp::now(&self.root, &self.toolchain).expect("a stamp")
    }

    fn find(&self) -> Found {
        profile::find(&self.place, &self.now()).expect("nothing unreadable")
    }

    /// Keeps these bytes as the profile, and gives its file.
    fn keep(&self, bytes: &[u8]) -> PathBuf {
        let merged = self.place.folder().join("merged");
        fs::write(&merged, bytes).expect("a file");
        let kept = profile::keep(&self.place, &merged, &self.now()).expect("kept");
        assert_eq!(self.find(), Found::Fresh(kept.clone()));
        kept.path().to_owned()
    }

    fn stale_because(&self) -> String {
        match self.find() {
            Found::Stale(reasons) => reasons.join("; "),
            other => panic!("{other:?}"),
        }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.root.join(file), text).expect("a file");
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // What is left of a temporary folder is the system's to clear.
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn none_is_missing_and_one_is_fresh_until_it_is_removed() {
    let checkout = Checkout::new("fresh");
    assert_eq!(checkout.find(), Found::Missing);
    checkout.keep(b"a profile");
    profile::remove(&checkout.place).expect("removed");
    assert_eq!(checkout.find(), Found::Missing);
    profile::remove(&checkout.place).expect("nothing to remove is no error");
}

#[test]
fn changed_sources_make_it_stale_and_changed_tests_do_not() {
    let checkout = Checkout::new("sources");
    checkout.keep(b"a profile");
    checkout.write("crates/one/tests/it.rs", "another test");
    assert!(matches!(checkout.find(), Found::Fresh(_)));
    for file in ["crates/one/src/lib.rs", "Cargo.lock", "crates/one/src/new.rs"] {
        let before = fs::read_to_string(checkout.root.join(file)).ok();
        checkout.write(file, "changed");
        let told = checkout.stale_because();
        assert!(told.contains("the sources") && !told.contains("the compiler"), "{file}: {told}");
        match before {
            Some(before) => checkout.write(file, &before),
            None => fs::remove_file(checkout.root.join(file)).expect("removed"),
        }
        assert!(matches!(checkout.find(), Found::Fresh(_)), "{file}: as it was");
    }
}

#[test]
fn another_compiler_makes_it_stale() {
    let checkout = Checkout::new("compiler");
    checkout.keep(b"a profile");
    let now = Stamp { compiler: "rustc 1.0.0 (of old)".to_owned(), ..checkout.now() };
    match profile::find(&checkout.place, &now).expect("readable") {
        Found::Stale(reasons) => assert!(reasons[0].contains("rustc 1.0.0 (of old)"), "{reasons:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_profile_or_stamp_that_was_touched_is_told() {
    let checkout = Checkout::new("touched");
    let path = checkout.keep(b"a profile");
    fs::write(&path, b"another").expect("a file");
    assert!(checkout.stale_because().contains("changed after"));
    fs::remove_file(&path).expect("removed");
    assert_eq!(checkout.find(), Found::Missing);
    for stamp in ["", "profile = x\n", &"long ".repeat(10_000)] {
        checkout.write("target/pgo/profile.stamp", stamp);
        assert!(checkout.stale_because().contains("stamp"), "{} bytes", stamp.len());
    }
}

#[test]
fn a_new_profile_has_a_new_name_so_that_cargo_builds_anew() {
    let checkout = Checkout::new("names");
    let first = checkout.keep(b"a profile");
    assert_ne!(first, checkout.keep(b"another profile"));
}

#[test]
fn cargo_is_told_the_flag_the_target_and_a_folder_of_its_own() {
    let checkout = Checkout::new("command");
    let kept = checkout.keep(b"a profile");
    let Found::Fresh(profile) = checkout.find() else { panic!("no profile") };
    let told = |way| {
        let command = build::command(&checkout.place, &checkout.toolchain, way, &["--bins"]);
        assert_eq!(command.get_current_dir(), Some(checkout.root.as_path()));
        (flags(&command), line(&command))
    };
    let (flags, line) = told(Way::Guided(&profile));
    assert!(flags.ends_with(&format!("-Cprofile-use={}", kept.display())), "{flags}");
    assert!(line.contains(&format!("--profile dist --target {}", checkout.toolchain.host)), "{line}");
    assert!(line.ends_with(&format!("{} --bins", checkout.place.guided().display())), "{line}");
    let (flags, line) = told(Way::Tracing);
    let traces = checkout.place.traces();
    assert!(flags.ends_with(&format!("-Cprofile-generate={}", traces.display())), "{flags}");
    assert!(line.contains(&checkout.place.tracing().display().to_string()), "{line}");
    let programs = build::programs(&checkout.place, &checkout.toolchain, Way::Tracing);
    assert!(programs.starts_with(checkout.place.tracing()) && programs.ends_with(Path::new("dist")));
}

fn flags(command: &Command) -> String {
    let flags = command.get_envs().find(|(name, _)| *name == "CARGO_ENCODED_RUSTFLAGS");
    flags.and_then(|(_, value)| value).expect("flags").to_string_lossy().into_owned()
}

fn line(command: &Command) -> String {
    command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
