//! The compiler that builds the checkout, and the tool that comes with it and merges traces into a profile.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the compiler says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// Its name with version and day.
    pub compiler: String,
    /// The system that it runs on and compiles for.
    pub host: String,
    sysroot: PathBuf,
}

impl Toolchain {
    /// The one that cargo takes in the folder `root`.
    ///
    /// # Errors
    /// There is none, or it says something else than compilers do.
    pub fn of(root: &Path) -> Result<Self, String> {
        let about = ask(root, &["-vV"])?;
        let sysroot = ask(root, &["--print", "sysroot"])?;
        Self::read(&about, sysroot.trim()).ok_or_else(|| format!("rustc -vV says {about:?}"))
    }

    fn read(about: &str, sysroot: &str) -> Option<Self> {
        let compiler = about.lines().next().filter(|line| line.starts_with("rustc "))?.to_owned();
        let host = about.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned();
        Some(Self { compiler, host, sysroot: sysroot.into() })
    }

    /// The tool that merges traces: that of the compiler's own component, for another LLVM may not read its traces.
    ///
    /// # Errors
    /// The component is missing, with the command that installs it.
    pub fn merger(&self) -> Result<PathBuf, String> {
        let name = format!("llvm-profdata{}", std::env::consts::EXE_SUFFIX);
        let path = self.sysroot.join("lib/rustlib").join(&self.host).join("bin").join(name);
        if path.is_file() {
            return Ok(path);
        }
        Err("llvm-profdata is missing: `rustup component add llvm-tools` installs it beside the compiler"
            .to_owned())
    }
}

fn ask(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).current_dir(root).args(arguments).output();
    let output = output.map_err(|error| format!("rustc can't be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("rustc {}: {}: {said}", arguments.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Toolchain;

    const ABOUT: &str = "rustc 1.2.3 (0123456 2000-01-01)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nLLVM version: 1.0\n";

    #[test]
    fn the_compiler_is_read_from_what_it_says() {
        let toolchain = Toolchain::read(ABOUT, "/nowhere").expect("a compiler");
        assert_eq!(toolchain.compiler, "rustc 1.2.3 (0123456 2000-01-01)");
        assert_eq!(toolchain.host, "x86_64-unknown-linux-gnu");
        assert_eq!(Toolchain::read("something else\n", "/nowhere"), None);
    }

    #[test]
    fn a_missing_tool_is_told_with_the_command_that_installs_it() {
        let toolchain = Toolchain::read(ABOUT, "/nowhere").expect("a compiler");
        let error = toolchain.merger().expect_err("no such folder");
        assert!(error.contains("rustup component add llvm-tools"), "{error}");
    }

    #[test]
    fn the_compiler_that_builds_this_test_is_found() {
        let toolchain = Toolchain::of(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("a compiler");
        assert!(toolchain.compiler.starts_with("rustc 1."), "{}", toolchain.compiler);
        assert!(toolchain.host.contains('-'), "{}", toolchain.host);
    }
}
