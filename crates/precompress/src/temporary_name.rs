//! Names of siblings that are being made: `.NAME.br.PROCESS-JOB.tmp`, hidden, so that no server sends them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::format::Format;

const END: &str = ".tmp";

/// The name for a sibling.
pub(crate) fn of(sibling: &Path, process: u32, job: usize) -> OsString {
    let mut name = OsString::from(".");
    name.push(sibling.file_name().unwrap_or_default());
    name.push(format!(".{process}-{job}{END}"));
    name
}

/// Whether a name is that of a run which was killed: of such a form, and of a process that isn't there. Where processes can't be looked at, none is.
pub(crate) fn is_left_over(name: &OsStr) -> bool {
    process_of(name).is_some_and(|process| {
        let processes = Path::new("/proc");
        processes.join("self").exists() && !processes.join(process.to_string()).exists()
    })
}

fn process_of(name: &OsStr) -> Option<u32> {
    let (sibling, run) = name.to_str()?.strip_prefix('.')?.strip_suffix(END)?.rsplit_once('.')?;
    let is_of_format =
        |format: &Format| sibling.strip_suffix(format.extension()).is_some_and(|base| !base.is_empty());
    let (process, job) = run.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (Format::ALL.iter().any(is_of_format) && is_number(process) && is_number(job))
        .then(|| process.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::{is_left_over, of, process_of};

    #[test]
    fn own_names_are_known_and_no_others() {
        assert_eq!(process_of(&of(Path::new("a/b.css.br"), 17, 3)), Some(17));
        for name in [
            "b.css.br.17-3.tmp",
            ".b.css.17-3.tmp",
            ".br.17-3.tmp",
            ".b.css.br.17.tmp",
            ".b.css.br.17-.tmp",
            ".b.css.br.x-3.tmp",
            ".b.css.br.+17-3.tmp",
            ".b.css.br.99999999999-3.tmp",
            ".b.css.br.17-3",
            ".tmp",
        ] {
            assert_eq!(process_of(OsStr::new(name)), None, "{name}");
        }
        assert!(!is_left_over(&of(Path::new("a.gz"), std::process::id(), 0)), "this process is there");
    }
}
