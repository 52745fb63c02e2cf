//! `shearwater precompress`: makes the siblings of a folder's files, tells how far it is, and what it has come to.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use shearwater_precompress::{Failed, Format, Options, PerFormat, Summary, precompress};

use crate::args::Precompress;
use crate::banner::grouped;
use crate::failure::Failure;
use crate::json::Json;
use crate::print;

/// How often it is told how far it is.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Characters of a file's name that are shown beside it.
const NAME_CHARS: usize = 50;

/// Makes them.
pub(crate) fn make(asked: &Precompress) -> Result<(), Failure> {
    let options = Options {
        formats: levels(asked)?,
        min_bytes: asked.min_bytes,
        jobs: usize::from(asked.jobs),
        dry_run: asked.dry_run,
        force: asked.force,
    };
    let progress = Progress::new();
    let told = |summary: &Summary, file: &Path| progress.tell(summary, file);
    let summary = precompress(&asked.dir, &options, &told)
        .map_err(|error| Failure::start(format!("{} can't be gone through: {error}", asked.dir.display())))?;
    progress.end();
    if asked.json {
        print(&format!("{}\n", as_json(asked, &summary)))?;
    } else {
        for Failed { path, why } in &summary.failures {
            drop(writeln!(std::io::stderr(), "shearwater: {}: {why}", path.display()));
        }
        print(&as_text(asked, &summary))?;
    }
    if summary.failures_count() == 0 { Ok(()) } else { Err(Failure::said(1)) }
}

/// Each format with its level: its highest, or what was asked for.
fn levels(asked: &Precompress) -> Result<Vec<(Format, u32)>, Failure> {
    let mut formats: Vec<(Format, u32)> = Vec::new();
    for format in asked.formats.iter().map(|&format| Format::from(format)) {
        if formats.iter().all(|&(known, _)| known != format) {
            formats.push((format, format.level_max()));
        }
    }
    for (name, level) in &asked.level {
        let format = formats.iter_mut().find(|(format, _)| format.name() == name);
        let Some((format, of_format)) = format else {
            return Err(Failure::start(format!("--level {name}={level} is of a format that isn't made")));
        };
        if *level > format.level_max() {
            let most = format.level_max();
            return Err(Failure::start(format!(
                "--level {name}={level}: {name} has levels up to {most} here"
            )));
        }
        *of_format = *level;
    }
    Ok(formats)
}

/// How far it is, in one line of a terminal.
struct Progress {
    is_shown: bool,
    last: Mutex<Instant>,
}

impl Progress {
    fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), last: Mutex::new(Instant::now()) }
    }

    fn tell(&self, summary: &Summary, file: &Path) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_shown || last.elapsed() < PROGRESS_EVERY {
            return;
        }
        *last = Instant::now();
        let (done, files) = (grouped(summary.files_done), grouped(summary.files));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
        // The line before is wiped out first.
        drop(write!(std::io::stderr(), "\r\x1b[K{done} of {files} files  {name}"));
    }

    fn end(&self) {
        if self.is_shown {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }
}

fn as_text(asked: &Precompress, summary: &Summary) -> String {
    let Summary { files, too_small, packed, .. } = summary;
    let mut text = format!(
        "{}: {} files, {} of them smaller than {} bytes and {} of a kind that is compressed already\n",
        asked.dir.display(),
        grouped(*files),
        grouped(*too_small),
        grouped(asked.min_bytes),
        grouped(*packed)
    );
    for format in &summary.formats {
        text.push_str(&format_line(asked, format));
    }
    if summary.failures_count() > 0 {
        text.push_str(&format!("  {} failed\n", grouped(summary.failures_count())));
    }
    text
}

fn format_line(asked: &Precompress, format: &PerFormat) -> String {
    let PerFormat { format, made, up_to_date, refreshed, stale, not_smaller, bytes_before, bytes_after } =
        format;
    let mut line = if asked.dry_run {
        format!("  {:<5} {} would be made, {} are there", format.name(), grouped(*made), grouped(*up_to_date))
    } else {
        format!(
            "  {:<5} {} made ({} bytes became {}), {} were there, {} would not be smaller",
            format.name(),
            grouped(*made),
            grouped(*bytes_before),
            grouped(*bytes_after),
            grouped(*up_to_date),
            grouped(*not_smaller)
        )
    };
    if *refreshed > 0 {
        let verb = if asked.dry_run { " would be" } else { "" };
        line.push_str(&format!(", {}{verb} refreshed", grouped(*refreshed)));
    }
    if *stale > 0 {
        line.push_str(&format!(", {} stale", grouped(*stale)));
    }
    line.push('\n');
    line
}

fn as_json(asked: &Precompress, summary: &Summary) -> Json {
    let of_format = |format: &PerFormat| {
        Json::Object(vec![
            ("format", Json::text(format.format.name())),
            ("made", Json::Number(format.made)),
            ("up_to_date", Json::Number(format.up_to_date)),
            ("refreshed", Json::Number(format.refreshed)),
            ("stale", Json::Number(format.stale)),
            ("not_smaller", Json::Number(format.not_smaller)),
            ("bytes_before", Json::Number(format.bytes_before)),
            ("bytes_after", Json::Number(format.bytes_after)),
        ])
    };
    let failed = |failed: &Failed| {
        Json::Object(vec![("path", Json::text(failed.path.display())), ("why", Json::text(&failed.why))])
    };
    Json::Object(vec![
        ("folder", Json::text(asked.dir.display())),
        ("dry_run", Json::Flag(asked.dry_run)),
        ("files", Json::Number(summary.files)),
        ("too_small", Json::Number(summary.too_small)),
        ("compressed_already", Json::Number(summary.packed)),
        ("formats", Json::List(summary.formats.iter().map(of_format).collect())),
        ("failures", Json::List(summary.failures.iter().map(failed).collect())),
        ("failures_left_out", Json::Number(summary.failures_left_out)),
    ])
}
