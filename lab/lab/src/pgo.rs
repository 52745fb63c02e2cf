//! Builds guided by a profile: it is recorded by training our programs, and used for the same sources and compiler only.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{output, succeed};
use crate::programs::{GUIDED, OurPrograms, build_plain, cargo, root, target};
use crate::training;

/// Cargo's profile whose programs are guided: the packaged one.
const CARGO_PROFILE: &str = "dist";
/// Programs that may be guided. Each is trained: the profile of other programs on the same engine does harm.
const TRAINED: &str =
    "--package shearwater-cli --bins --package shearwater --example kinds --example plaintext";
/// Each of these programs leaves a trace.
const TRACES: usize = 3;
const PROGRAM: &str = "--package shearwater-cli --bin shearwater";
const HELP: &str = "help: `cargo lab pgo generate` records a profile";
/// Sources of our programs; folders named `tests` don't count.
const SOURCES: [&str; 3] = ["Cargo.lock", "Cargo.toml", "crates"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PgoAction {
    /// Build without a profile
    Off,
    /// Record the profile, replacing any earlier one
    Generate,
    /// Build with the profile; an error if there is none for these sources
    Use,
}

/// Does what was asked for: without an action, builds with the profile if there is one, else without.
pub(crate) fn run(action: Option<PgoAction>, uring: bool) -> Result<(), String> {
    let folder = match (action, find()) {
        (Some(PgoAction::Generate), _) => {
            let profile = record(uring)?;
            println!("{}\n`cargo lab pgo` builds with it, `cargo lab` measures with it", profile.display());
            return Ok(());
        }
        (None | Some(PgoAction::Use), Ok(profile)) => build_with(&profile, PROGRAM)?,
        (Some(PgoAction::Use), Err(why)) => {
            return Err(format!("{why}\n{HELP}"));
        }
        (None | Some(PgoAction::Off), found) => {
            let why =
                found.err().filter(|_| action.is_none()).map(|why| format!(": {why}")).unwrap_or_default();
            crate::progress(&format!("building without a profile{why}"));
            build_plain(CARGO_PROFILE, PROGRAM)?
        }
    };
    println!("{}", folder.join("shearwater").display());
    Ok(())
}

/// Builds everything that the lab measures and that is ours: in the usual profile of cargo, and in each further build.
pub(crate) fn build_programs(usual: &str, further: &BTreeSet<&str>) -> Result<OurPrograms, String> {
    let mut programs = OurPrograms { usual: usual.to_owned(), ..OurPrograms::default() };
    // Missing, it ends the run before anything is built.
    let guide = further.contains(GUIDED).then(find).transpose().map_err(|why| format!("{why}\n{HELP}"))?;
    for &build in further.iter().chain([&usual]) {
        crate::progress(&format!("building our programs: {build}"));
        let folder = match &guide {
            Some(profile) if build == GUIDED => build_with(profile, TRAINED)?,
            _ => build_plain(build, &format!("--package null-server {TRAINED}"))?,
        };
        programs.folders.insert(build.to_owned(), folder);
    }
    programs.guided_by = guide.map(|found| found.file_stem().unwrap_or_default().display().to_string());
    Ok(programs)
}

/// Finds the profile for these sources and this compiler, or says why there is none.
fn find() -> Result<PathBuf, String> {
    find_in(&target().join("pgo"), &key(&root(), &rustc(&["-vV"])?)?)
}

fn find_in(folder: &Path, key: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("{key}.profdata"));
    match (path.is_file(), profiles(folder).next()) {
        (true, _) => Ok(path),
        (false, Some(_)) => Err("the profile is of other sources or another compiler".to_owned()),
        (false, None) => Err("there is no profile".to_owned()),
    }
}

fn profiles(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "profdata"))
}

/// Returns the digest of compiler and sources that names a profile.
fn key(root: &Path, compiler: &str) -> Result<String, String> {
    let mut hasher = DefaultHasher::new();
    compiler.hash(&mut hasher);
    SOURCES.iter().try_for_each(|name| hash_file(root, &root.join(name), &mut hasher))?;
    Ok(format!("{:016x}", hasher.finish()))
}

/// Hashes names and contents of a file, or of all files below a folder; links are not followed.
fn hash_file(root: &Path, path: &Path, hasher: &mut DefaultHasher) -> Result<(), String> {
    let text = |error: io::Error| format!("{}: {error}", path.display());
    let kind = fs::symlink_metadata(path).map_err(text)?.file_type();
    if kind.is_file() {
        path.strip_prefix(root).unwrap_or(path).hash(hasher);
        fs::read(path).map_err(text)?.hash(hasher);
    }
    if kind.is_dir() && !path.ends_with("tests") {
        let mut entries =
            fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(text)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        entries.iter().try_for_each(|entry| hash_file(root, &entry.path(), hasher))?;
    }
    Ok(())
}

/// Builds programs that trace themselves, trains them, and merges their traces. After a failure there is no profile.
fn record(uring: bool) -> Result<PathBuf, String> {
    let (compiler, folder) = (rustc(&["-vV"])?, target().join("pgo"));
    let (key, merge, traces) = (key(&root(), &compiler)?, merger()?, folder.join("traces"));
    let text = |error: io::Error| format!("{}: {error}", folder.display());
    // Cargo rebuilds where a flag changes, not where the file that it names does.
    for earlier in profiles(&folder).chain([traces.clone(), folder.join("use")]).filter(|path| path.exists())
    {
        if earlier.is_dir() { fs::remove_dir_all(earlier) } else { fs::remove_file(earlier) }
            .map_err(text)?;
    }
    fs::create_dir_all(&traces).map_err(text)?;
    crate::progress("1 of 3: building programs that trace themselves");
    let programs = build("-Cprofile-generate=", &traces, &folder.join("generate"), TRAINED)?;
    crate::progress("2 of 3: training them");
    let responses = training::train(&programs, uring)?;
    crate::progress(&format!("3 of 3: {responses} responses, all correct; merging the traces"));
    let traces: Vec<PathBuf> =
        fs::read_dir(traces).map_err(text)?.flatten().map(|entry| entry.path()).collect();
    if traces.len() != TRACES {
        return Err(format!("{} traces of {TRACES} programs; is LLVM_PROFILE_FILE set?", traces.len()));
    }
    let merged = folder.join("merged");
    let mut command = Command::new(merge);
    command.args(["merge", "--output"]).arg(&merged).args(traces);
    succeed(command)?;
    if self::key(&root(), &compiler)? != key {
        return Err("the sources changed meanwhile: record another profile".to_owned());
    }
    let path = folder.join(format!("{key}.profdata"));
    fs::rename(&merged, &path).map_err(text)?;
    Ok(path)
}

/// Returns the compiler's own tool that merges traces: one of another LLVM might not parse them.
fn merger() -> Result<PathBuf, String> {
    let folder = rustc(&["--print", "target-libdir"])?;
    let path = Path::new(folder.trim()).with_file_name("bin/llvm-profdata");
    let missing = "llvm-profdata is missing\nhelp: `rustup component add llvm-tools` installs it";
    if path.is_file() { Ok(path) } else { Err(missing.to_owned()) }
}

fn rustc(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.current_dir(root()).args(arguments);
    output(command)
}

/// Builds with the profile and returns the folder of the programs.
fn build_with(profile: &Path, words: &str) -> Result<PathBuf, String> {
    crate::progress(&format!("building with {}", profile.display()));
    build("-Cprofile-use=", profile, &target().join("pgo/use"), words)
}

/// Builds with one compiler flag more than the user's `RUSTFLAGS`.
fn build(flag: &str, path: &Path, target: &Path, words: &str) -> Result<PathBuf, String> {
    let about = rustc(&["-vV"])?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let mut command = Command::new(cargo());
    // A named target keeps the flag off build scripts.
    command.current_dir(root()).args(["build", "--quiet", "--profile", CARGO_PROFILE, "--target", host]);
    command.arg("--target-dir").arg(target).args(words.split(' '));
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    // In this encoding a flag may contain spaces.
    let flags = flags.split_whitespace().map(str::to_owned).chain([format!("{flag}{}", path.display())]);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\u{1f}"));
    succeed(command)?;
    Ok(target.join(host).join(CARGO_PROFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_only_for_its_sources_and_compiler() {
        let root = std::env::temp_dir().join(format!("lab-pgo-{}", std::process::id()));
        for folder in ["crates/one/src", "crates/one/tests"] {
            fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        let write = |name: &str, text: &str| fs::write(root.join(name), text).expect("a file");
        for name in ["Cargo.toml", "Cargo.lock", "crates/one/src/lib.rs", "crates/one/tests/it.rs"] {
            write(name, name);
        }
        let find = |compiler| find_in(&root, &key(&root, compiler).expect("sources"));
        assert!(find("rustc 1").is_err_and(|why| why.contains("no profile")));
        write(&format!("{}.profdata", key(&root, "rustc 1").expect("sources")), "a profile");
        write("crates/one/tests/it.rs", "another test");
        assert!(find("rustc 1").is_ok(), "tests don't count");
        assert!(find("rustc 2").is_err_and(|why| why.contains("another compiler")));
        for name in ["Cargo.lock", "crates/one/src/lib.rs", "crates/one/src/new.rs"] {
            write(name, "changed");
            assert!(find("rustc 1").is_err(), "{name}");
        }
        fs::remove_dir_all(root).expect("removed");
    }
}
