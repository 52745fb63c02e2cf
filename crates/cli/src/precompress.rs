//! `shearwater precompress` makes precompressed files; servers and `shearwater check` warn about those that are older than their
//! originals, which aren't sent.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shearwater_precompress::{
    Coding, FailedFile, Options, PerFormat, RunSummary, Unused, level_max, precompress, unused,
};

use crate::args::Precompress;
use crate::diagnostics::warn_of_configuration;
use crate::failure::Failure;
use crate::report::{counted, grouped, print, size};
use crate::site::Root;

/// Interval of progress updates.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Maximum characters of a file name in a progress line.
const NAME_CHARS: usize = 50;

/// Makes precompressed files.
pub(crate) fn run(args: &Precompress) -> Result<(), Failure> {
    let options = Options {
        formats: levels(args)?,
        min_bytes: args.min_bytes,
        jobs: usize::from(args.jobs),
        dry_run: args.dry_run,
        force: args.force,
    };
    let progress = Progress::new();
    let update = |summary: &RunSummary, file: &Path| progress.update(summary, file);
    let summary = precompress(&args.dir, &options, &update)
        .map_err(|error| Failure::usage(format!("can't read {}: {error}", args.dir.display())))?;
    progress.end();
    if args.json {
        print(&format!("{}\n", as_json(args, &summary)))?;
    } else {
        for FailedFile { path, why } in &summary.failures {
            drop(writeln!(std::io::stderr(), "error: {}: {why}", path.display()));
        }
        print(&as_text(args, &summary))?;
    }
    if summary.failures_count() == 0 { Ok(()) } else { Err(Failure::reported(1)) }
}

/// Returns each format with its level, the highest by default.
fn levels(args: &Precompress) -> Result<Vec<(Coding, u32)>, Failure> {
    let mut formats: Vec<(Coding, u32)> = Vec::new();
    for format in args.formats.iter().copied() {
        if formats.iter().all(|&(known, _)| known != format) {
            formats.push((format, level_max(format)));
        }
    }
    for &(format, level) in &args.level {
        let (name, most) = (format.name(), level_max(format));
        let Some((_, of_format)) = formats.iter_mut().find(|(of, _)| *of == format) else {
            let help = format!("add {name} to --formats, or remove the level");
            return Err(Failure::usage_helped(
                format!("--level {name}={level}: {name} isn't in --formats"),
                help,
            ));
        };
        if level > most {
            let error = format!("--level {name}={level}: the highest level of {name} is {most}");
            return Err(Failure::usage(error));
        }
        *of_format = level;
    }
    Ok(formats)
}

/// A progress line on a terminal.
struct Progress {
    is_shown: bool,
    last: Mutex<Instant>,
}

impl Progress {
    fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), last: Mutex::new(Instant::now()) }
    }

    fn update(&self, summary: &RunSummary, file: &Path) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_shown || last.elapsed() < PROGRESS_EVERY {
            return;
        }
        *last = Instant::now();
        let (done, files) = (grouped(summary.files_done), grouped(summary.files));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
        // Clears the previous line.
        drop(write!(std::io::stderr(), "\r\x1b[K{done} of {files} files  {name}"));
    }

    fn end(&self) {
        if self.is_shown {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }
}

fn as_text(args: &Precompress, summary: &RunSummary) -> String {
    let RunSummary { files, too_small, packed, .. } = summary;
    let mut text = format!(
        "{}: {}, {} skipped as smaller than {}, {} skipped as already compressed\n",
        args.dir.display(),
        counted(*files, "file"),
        grouped(*too_small),
        size(args.min_bytes),
        grouped(*packed)
    );
    for format in &summary.formats {
        text.push_str(&format_line(args, format));
    }
    if summary.failures_count() > 0 {
        text.push_str(&format!("  {} failed\n", grouped(summary.failures_count())));
    }
    text
}

fn format_line(args: &Precompress, format: &PerFormat) -> String {
    let PerFormat { format, made, up_to_date, refreshed, stale, not_smaller, bytes_before, bytes_after } =
        format;
    let mut line = if args.dry_run {
        format!("  {:<5} {} to make, {} up to date", format.name(), grouped(*made), grouped(*up_to_date))
    } else {
        format!(
            "  {:<5} {} made ({} to {}), {} up to date, {} not smaller",
            format.name(),
            grouped(*made),
            size(*bytes_before),
            size(*bytes_after),
            grouped(*up_to_date),
            grouped(*not_smaller)
        )
    };
    if *refreshed > 0 {
        let verb = if args.dry_run { "to refresh" } else { "refreshed" };
        line.push_str(&format!(", {} {verb}", grouped(*refreshed)));
    }
    if *stale > 0 {
        line.push_str(&format!(", {} stale", grouped(*stale)));
    }
    line.push('\n');
    line
}

fn as_json(args: &Precompress, summary: &RunSummary) -> Value {
    let of_format = |format: &PerFormat| {
        json!({
            "format": format.format.name(),
            "made": format.made,
            "up_to_date": format.up_to_date,
            "refreshed": format.refreshed,
            "stale": format.stale,
            "not_smaller": format.not_smaller,
            "bytes_before": format.bytes_before,
            "bytes_after": format.bytes_after,
        })
    };
    let failed = |failed: &FailedFile| json!({ "path": failed.path.to_string_lossy(), "why": failed.why });
    json!({
        "folder": args.dir.to_string_lossy(),
        "dry_run": args.dry_run,
        "files": summary.files,
        "too_small": summary.too_small,
        "already_compressed": summary.packed,
        "formats": summary.formats.iter().map(of_format).collect::<Vec<_>>(),
        "failures": summary.failures.iter().map(failed).collect::<Vec<_>>(),
        "failures_left_out": summary.failures_left_out,
    })
}

/// A folder, and its precompressed files that are not sent.
pub(crate) type UnusedIn = (PathBuf, Unused);

/// Searches each folder once. A folder that can't be read is skipped: serving it reports the error.
pub(crate) fn find_unused(roots: &[Root]) -> Vec<UnusedIn> {
    let mut folders: BTreeMap<PathBuf, Vec<Coding>> = BTreeMap::new();
    for Root { path, formats, .. } in roots {
        folders.entry(path.clone()).or_default().extend(formats);
    }
    let search = |(folder, formats): (PathBuf, Vec<Coding>)| {
        let unused = unused(&folder, &formats).ok().filter(|unused| unused.count + unused.damaged > 0)?;
        Some((folder, unused))
    };
    folders.into_iter().filter_map(search).collect()
}

/// Prints the warnings to standard error from a background thread, so that the start isn't delayed.
pub(crate) fn warn_in_background(roots: Vec<Root>) {
    let warn = move || {
        warn_of_configuration(&unused_as_text(&find_unused(&roots)));
        // The names of 50,000 files take 4 MiB.
        shearwater_allocator::give_back();
    };
    // Without a thread there is no warning at the start; `shearwater check` prints it.
    drop(thread::Builder::new().name("siblings".to_owned()).spawn(warn));
}

/// Formats a warning for each folder.
pub(crate) fn unused_as_text(found: &[UnusedIn]) -> String {
    let mut text = String::new();
    for (folder, unused) in found {
        let (folder, more) = (folder.display(), if unused.is_whole { "" } else { " or more" });
        for (count, why, example) in [
            (unused.count, "not sent because their originals are newer", &unused.example),
            (unused.damaged, "not sent because they are empty or not compressed", &unused.damaged_example),
        ] {
            if let Some(example) = example {
                text.push_str(&format!(
                    "warning: {}{more} precompressed files in {folder} are {why}, such as {}\n\
                     help: `shearwater precompress {folder}` updates them\n",
                    grouped(count),
                    example.display()
                ));
            }
        }
    }
    text
}

/// Formats the warnings as JSON.
pub(crate) fn unused_as_json(found: &[UnusedIn]) -> Vec<Value> {
    let folder = |(folder, unused): &UnusedIn| {
        json!({
            "folder": folder.to_string_lossy(),
            "count": unused.count,
            "example": example(&unused.example),
            "damaged": unused.damaged,
            "damaged_example": example(&unused.damaged_example),
            "is_whole": unused.is_whole,
        })
    };
    found.iter().map(folder).collect()
}

fn example(path: &Option<PathBuf>) -> String {
    path.as_deref().unwrap_or(Path::new("")).display().to_string()
}
