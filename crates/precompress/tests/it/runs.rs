//! Runs over folders: what is made, what is left alone, what fails.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use shearwater_precompress::limits::{FAILURES_MAX, FOLDERS_DEEP_MAX, SAMPLE_PART_BYTES, SAMPLE_PARTS};
use shearwater_precompress::{Coding, Options, RunSummary, precompress};
use testkit::{TestFolder, random};

/// Returns options for fast runs.
fn quick() -> Options {
    Options { formats: Coding::ALL.map(|format| (format, 1)).to_vec(), ..Options::default() }
}

fn run(folder: &TestFolder, options: &Options) -> RunSummary {
    precompress(folder.path(), options, &|_, _| {}).expect("the folder can be read")
}

/// Made, there already, not smaller; over all formats.
fn counts(summary: &RunSummary) -> (u64, u64, u64) {
    let sum = |of: fn(&shearwater_precompress::PerFormat) -> u64| summary.formats.iter().map(of).sum();
    (sum(|format| format.made), sum(|format| format.up_to_date), sum(|format| format.not_smaller))
}

fn text(len: usize) -> Vec<u8> {
    b"a line of text that repeats\n".iter().copied().cycle().take(len).collect()
}

/// Returns incompressible bytes.
fn noise(len: usize) -> Vec<u8> {
    random::bytes(&mut random::part(0x5eed, 0), len)
}

/// Returns a time in seconds and nanoseconds since 1970.
fn time(seconds: u64, nanoseconds: u32) -> SystemTime {
    UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

fn decoded(path: &Path) -> Vec<u8> {
    let coded = fs::read(path).expect("a sibling");
    let mut plain = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("br") => brotli::Decompressor::new(&coded[..], 4096).read_to_end(&mut plain),
        Some("zst") => zstd::Decoder::new(&coded[..]).expect("a decoder").read_to_end(&mut plain),
        _ => flate2::read::MultiGzDecoder::new(&coded[..]).read_to_end(&mut plain),
    }
    .expect("it can be decoded");
    plain
}

#[test]
fn makes_siblings_with_the_times_of_their_files() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000)).file("deep/er/b.js", text(70_000)).file(".well-known/c.txt", text(2000));
    folder.set_modified("a.css", time(1000, 123_456_789));
    let dry_run = run(&folder, &Options { dry_run: true, ..quick() });
    assert_eq!((counts(&dry_run), folder.names().len()), ((9, 0, 0), 3), "a dry run makes nothing");
    let summary = run(&folder, &quick());
    assert_eq!((summary.files, summary.files_done, counts(&summary)), (3, 3, (9, 0, 0)));
    assert_eq!((summary.formats[0].bytes_before, summary.failures_count()), (77_000, 0));
    assert!(summary.formats.iter().all(|format| (1..7000).contains(&format.bytes_after)), "{summary:?}");
    for (name, len) in [("a.css", 5000), ("deep/er/b.js", 70_000), (".well-known/c.txt", 2000)] {
        for format in Coding::ALL {
            let sibling = format!("{name}{}", format.extension());
            assert!(decoded(&folder.at(&sibling)) == text(len), "{sibling}");
            assert_eq!(folder.modified(&sibling), folder.modified(name), "{sibling}");
        }
    }
    assert_eq!(folder.names().len(), 12, "nothing else is left: {:?}", folder.names());
}

#[test]
fn keeps_current_siblings_unless_forced() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000)).set_modified("a.css", time(1000, 500));
    assert_eq!(counts(&run(&folder, &quick())), (3, 0, 0));
    assert_eq!(counts(&run(&folder, &quick())), (0, 3, 0));
    // Newer, or without the fraction of its second. And one that is older.
    folder.set_modified("a.css.br", time(2000, 0)).set_modified("a.css.gz", time(1000, 0));
    folder.file("a.css.zst", "old").set_modified("a.css.zst", time(1000, 499));
    let summary = run(&folder, &quick());
    assert_eq!((counts(&summary), summary.formats[1].made), ((1, 2, 0), 1));
    assert!(decoded(&folder.at("a.css.zst")) == text(5000));
    assert_eq!(folder.modified("a.css.br"), time(2000, 0));
    // A change of the file makes all of them old.
    folder.file("a.css", text(6000));
    assert_eq!(counts(&run(&folder, &quick())), (3, 0, 0));
    assert_eq!(counts(&run(&folder, &Options { force: true, ..quick() })), (3, 0, 0));
}

/// Sets the modes of a file and then of its siblings, as `chmod -R` may: afterwards all times are in order.
fn chmod(folder: &TestFolder, name: &str) {
    for extension in ["", ".br", ".zst", ".gz"] {
        let path = folder.at(format!("{name}{extension}"));
        fs::set_permissions(path, Permissions::from_mode(0o640)).expect("a mode");
    }
}

/// Copies a file and then its siblings to their own names, as `cp -a` of the folder does.
fn copy(folder: &TestFolder, name: &str) {
    for extension in ["", ".br", ".zst", ".gz"] {
        let name = format!("{name}{extension}");
        fs::copy(folder.at(&name), folder.at("copy")).expect("copied");
        folder.set_modified("copy", time(1000, 500));
        fs::rename(folder.at("copy"), folder.at(name)).expect("replaced");
    }
}

/// Reproducible builds, `cp -p` and `tar --mtime` replace a file by another with the same `mtime`.
#[test]
fn replaces_siblings_with_other_content_despite_their_times() {
    let nothing: fn(&TestFolder, &str) = |_, _| {};
    for (change, len) in
        [nothing, chmod, copy].into_iter().flat_map(|change| [(change, 5000), (change, 6000)])
    {
        let folder = TestFolder::new();
        folder.file("a.css", text(5000)).set_modified("a.css", time(1000, 500));
        assert_eq!(counts(&run(&folder, &quick())), (3, 0, 0));
        folder.tick();
        let other = text(len).to_ascii_uppercase();
        folder.file("new", &other).set_modified("new", time(1000, 500));
        fs::rename(folder.at("new"), folder.at("a.css")).expect("replaced");
        folder.tick();
        change(&folder, "a.css");
        assert_eq!(counts(&run(&folder, &Options { dry_run: true, ..quick() })), (3, 0, 0), "{len} bytes");
        assert_eq!(counts(&run(&folder, &quick())), (3, 0, 0), "{len} bytes");
        for coding in Coding::ALL {
            let sibling = folder.at(format!("a.css{}", coding.extension()));
            assert!(decoded(&sibling) == other, "{sibling:?}");
        }
        assert_eq!(counts(&run(&folder, &quick())), (0, 3, 0), "{len} bytes");
        // Replaced by an older file.
        folder.file("a.css", text(len)).set_modified("a.css", time(900, 0));
        chmod(&folder, "a.css");
        assert_eq!(counts(&run(&folder, &quick())), (3, 0, 0), "{len} bytes");
    }
}

/// As `gzip -k`, `brotli` and `zstd` make them, at other levels and without the fraction of the second.
#[test]
fn keeps_siblings_of_other_programs() {
    let folder = TestFolder::new();
    let content = text(50_000);
    folder.file("a.css", &content).set_modified("a.css", time(1000, 500));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(2));
    std::io::Write::write_all(&mut gzip, &content).expect("it can be coded");
    let mut br = Vec::new();
    let params = brotli::enc::BrotliEncoderParams { quality: 5, ..Default::default() };
    brotli::BrotliCompress(&mut &content[..], &mut br, &params).expect("it can be coded");
    // A stream whose length isn't known when it begins.
    let zstd = zstd::stream::encode_all(&content[..], 3).expect("it can be coded");
    for (extension, coded) in [("gz", gzip.finish().expect("it can be coded")), ("br", br), ("zst", zstd)] {
        folder
            .file(format!("a.css.{extension}"), coded)
            .set_modified(format!("a.css.{extension}"), time(1000, 0));
    }
    let before: Vec<_> =
        folder.names().iter().map(|name| fs::read(folder.at(name)).expect("it is there")).collect();
    assert_eq!(counts(&run(&folder, &quick())), (0, 3, 0));
    let after: Vec<_> =
        folder.names().iter().map(|name| fs::read(folder.at(name)).expect("it is there")).collect();
    assert!(before == after);
}

#[test]
fn retires_a_current_sibling_with_other_content() {
    let folder = TestFolder::new();
    for name in ["small.css", "photo.jpg", "noise.bin"] {
        folder
            .file(name, if name == "noise.bin" { noise(5000) } else { text(500) })
            .set_modified(name, time(1000, 500));
        folder.file(format!("{name}.br"), "other").set_modified(format!("{name}.br"), time(1000, 500));
    }
    let before = folder.names();
    let count = || shearwater_precompress::unused(folder.path(), &Coding::ALL).expect("it can be read").count;
    // A dry run doesn't find out that a small file gets no smaller.
    for (dry_run, expected) in [(true, ((3, 0, 0), (0, 2))), (false, ((0, 0, 2), (0, 3)))] {
        assert_eq!(count(), 0);
        let summary = run(&folder, &Options { dry_run, ..quick() });
        assert_eq!((counts(&summary), unused(&summary)), expected);
    }
    assert_eq!((folder.names(), count()), (before, 3));
}

/// Refreshed, stale; over all formats.
fn unused(summary: &RunSummary) -> (u64, u64) {
    let sum = |of: fn(&shearwater_precompress::PerFormat) -> u64| summary.formats.iter().map(of).sum();
    (sum(|format| format.refreshed), sum(|format| format.stale))
}

#[test]
fn refreshes_unused_siblings_with_the_same_content() {
    let inodes = |folder: &TestFolder| {
        Coding::ALL.map(|format| {
            let path = folder.at(format!("a.css{}", format.extension()));
            fs::metadata(path).expect("a sibling").ino()
        })
    };
    let changes: [fn(&TestFolder); 2] = [
        // As by `chown -R`, or a copy in another order.
        |folder| {
            let mode = Permissions::from_mode(0o640);
            fs::set_permissions(folder.at("a.css"), mode).expect("a mode");
        },
        |folder| {
            folder.set_modified("a.css", time(2000, 7));
        },
    ];
    for change in changes {
        let folder = TestFolder::new();
        folder.file("a.css", text(50_000)).set_modified("a.css", time(1000, 500));
        run(&folder, &quick());
        let before = inodes(&folder);
        folder.tick();
        change(&folder);
        let dry_run = run(&folder, &Options { dry_run: true, ..quick() });
        assert_eq!((counts(&dry_run), unused(&dry_run)), ((0, 0, 0), (3, 0)));
        let summary = run(&folder, &quick());
        assert_eq!((counts(&summary), unused(&summary)), ((0, 0, 0), (3, 0)));
        assert_eq!(inodes(&folder), before, "nothing was made anew");
        assert_eq!(folder.modified("a.css.gz"), folder.modified("a.css"));
        assert_eq!(counts(&run(&folder, &quick())), (0, 3, 0));
    }
}

#[test]
fn replaces_unused_siblings_with_other_content() {
    let gzip = |content: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
        std::io::Write::write_all(&mut encoder, content).expect("it can be coded");
        encoder.finish().expect("it can be coded")
    };
    let (content, whole) = (text(50_000), gzip(&text(50_000)));
    let options = Options { formats: vec![(Coding::Gzip, 1)], ..quick() };
    for (sibling, is_same) in [
        (whole.clone(), true),
        // The length of its last member says nothing of the others, so no server would send it.
        ([gzip(&content[..9]), gzip(&content[9..])].concat(), false),
        (gzip(&content[..49_999]), false),
        (gzip(&text(50_001)), false),
        (gzip(&content.to_ascii_uppercase()), false),
        (gzip(b""), false),
        (whole[..whole.len() - 1].to_vec(), false),
        (b"no gzip".to_vec(), false),
        (Vec::new(), false),
    ] {
        let folder = TestFolder::new();
        folder.file("a.css.gz", &sibling).set_modified("a.css.gz", time(1000, 0));
        folder.file("a.css", &content).set_modified("a.css", time(2000, 0));
        let summary = run(&folder, &options);
        let refreshed = u64::from(is_same);
        let came_to = (counts(&summary), unused(&summary));
        assert_eq!(came_to, ((1 - refreshed, 0, 0), (refreshed, 0)), "{} bytes", sibling.len());
        assert!(decoded(&folder.at("a.css.gz")) == content, "{} bytes", sibling.len());
        assert_eq!(counts(&run(&folder, &options)), (0, 1, 0));
    }
}

#[test]
fn keeps_and_counts_stale_siblings() {
    let folder = TestFolder::new();
    for name in ["small.css", "photo.jpg", "noise.bin"] {
        folder.file(format!("{name}.br"), "other").set_modified(format!("{name}.br"), time(1000, 0));
    }
    folder.file("small.css", text(500)).file("photo.jpg", text(5000)).file("noise.bin", noise(5000));
    let before = folder.names();
    let summary = run(&folder, &quick());
    assert_eq!((counts(&summary), unused(&summary)), ((0, 0, 2), (0, 3)));
    assert_eq!(folder.names(), before);
}

#[test]
fn leaves_targets_of_links_alone() {
    let folder = TestFolder::new();
    folder.file(".kept/coded", b"").file("a.css", text(5000));
    let options = Options { formats: vec![(Coding::Gzip, 1)], ..quick() };
    run(&folder, &options);
    let (sibling, kept) = (folder.at("a.css.gz"), folder.at(".kept/coded"));
    fs::rename(&sibling, &kept).expect("moved");
    folder.set_modified(".kept/coded", time(1000, 0));
    symlink(".kept/coded", &sibling).expect("a link");
    assert_eq!(counts(&run(&folder, &options)).0, 1);
    assert!(!sibling.is_symlink() && decoded(&sibling) == text(5000));
    assert_eq!(folder.modified(".kept/coded"), time(1000, 0));
}

#[test]
fn skips_files_that_save_too_little() {
    let folder = TestFolder::new();
    folder
        .file("small.css", text(1023))
        .file("photo.JPG", text(5000))
        .file("noise.bin", noise(5000))
        .file(".hidden/a.css", text(5000))
        .file(".env", text(5000));
    folder.link("link.txt", "/etc/passwd");
    folder.link("loop", "..");
    let before = folder.names();
    let summary = run(&folder, &quick());
    assert_eq!((summary.files, summary.too_small, summary.packed, counts(&summary)), (3, 1, 1, (0, 0, 3)));
    assert_eq!(folder.names(), before);
    assert_eq!(counts(&run(&folder, &Options { min_bytes: 1023, ..quick() })).0, 3);
}

/// Compressing 64 MB of noise at the highest levels would take minutes.
#[test]
fn skips_a_file_whose_sample_does_not_compress() {
    let folder = TestFolder::new();
    // Of this one they would find out that it is the same twice: a sample doesn't show it.
    let content = noise(4 * SAMPLE_PARTS * SAMPLE_PART_BYTES);
    folder.file("noise.bin", [&content[..], &content].concat());
    for dry_run in [false, true] {
        let options = Options { dry_run, ..Options::default() };
        assert_eq!((counts(&run(&folder, &options)), folder.names().len()), ((0, 0, 3), 1));
    }
}

/// Process IDs repeat in containers that share a folder.
#[test]
fn parallel_runs_with_equal_process_ids_succeed() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000));
    for format in Coding::ALL {
        let number = std::process::id();
        folder.file(format!(".a.css{}.{number}-0.tmp", format.extension()), "of the other");
    }
    let summary = run(&folder, &Options { jobs: 1, ..quick() });
    assert_eq!((counts(&summary), summary.failures), ((3, 0, 0), vec![]));
}

#[test]
fn rejects_a_second_run_in_the_same_folder() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000)).file("deep/b.css", text(5000));
    let refused = Mutex::new(Vec::new());
    let first = precompress(folder.path(), &quick(), &|_, _| {
        let second = precompress(folder.path(), &quick(), &|_, _| {});
        refused.lock().expect("nobody panics").push(second.expect_err("the first goes on"));
        // A dry run and a run in a folder beneath are allowed.
        let dry_run = Options { dry_run: true, ..quick() };
        assert!(precompress(folder.path(), &dry_run, &|_, _| {}).is_ok());
        assert!(precompress(&folder.at("deep"), &quick(), &|_, _| {}).is_ok());
    });
    assert_eq!(first.expect("it can be read").failures_count(), 0);
    let refused = refused.into_inner().expect("nobody panics");
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|error| error.kind() == ErrorKind::ResourceBusy), "{refused:?}");
    assert!(precompress(folder.path(), &quick(), &|_, _| {}).is_ok(), "the first is over");
}

#[test]
fn removes_temporary_files_of_killed_runs() {
    let folder = TestFolder::new();
    let (left_over, in_use) =
        (".shearwater-precompress-0123456789abcdef.tmp", ".shearwater-precompress-fedcba9876543210.tmp");
    folder.file("a.css", text(500)).file(left_over, "").file(in_use, "").file(".other.tmp", "");
    let held = fs::File::open(folder.at(in_use)).expect("it is there");
    flock(&held, FlockOperation::LockExclusive).expect("nobody has it");
    run(&folder, &Options { dry_run: true, ..quick() });
    assert_eq!(folder.names().len(), 4);
    run(&folder, &quick());
    assert_eq!(folder.names(), [".other.tmp", in_use, "a.css"]);
    drop(held);
    run(&folder, &quick());
    assert_eq!(folder.names(), [".other.tmp", "a.css"]);
}

#[test]
fn a_sibling_has_the_mode_and_owner_of_its_file() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000));
    let path = folder.at("a.css");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("its mode");
    // Who may not give it away is its owner, and that of what it makes.
    drop(chown(&path, Some(65_534), Some(65_534)));
    run(&folder, &quick());
    let of = |name: &str| {
        let meta = fs::metadata(folder.at(name)).expect("it is there");
        (meta.mode(), meta.uid(), meta.gid())
    };
    assert_eq!((of("a.css.br"), of("a.css").0 & 0o777), (of("a.css"), 0o640));
}

#[test]
fn reports_failures_and_continues() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000)).file("b.css", text(5000));
    // A folder stands where the sibling should.
    folder.file("a.css.br/x", "");
    let summary = run(&folder, &quick());
    assert_eq!((counts(&summary).0, summary.failures.len()), (5, 1));
    assert_eq!(summary.failures[0].path, folder.at("a.css.br"));
    assert!(!folder.names().iter().any(|name| name.ends_with(".tmp")), "{:?}", folder.names());
    assert!(precompress(&folder.at("none"), &quick(), &|_, _| {}).is_err());
    assert!(precompress(&folder.at("a.css"), &quick(), &|_, _| {}).is_err());
}

#[test]
fn reports_1000_failures_and_counts_the_rest() {
    let folder = TestFolder::new();
    for number in 0..FAILURES_MAX + 3 {
        folder.file(format!("{number}.css"), text(1024));
        fs::create_dir(folder.at(format!("{number}.css.gz"))).expect("a folder");
        folder.file(format!("{number}.css.gz/x"), "");
    }
    let summary = run(&folder, &Options { formats: vec![(Coding::Gzip, 1)], ..quick() });
    assert_eq!((summary.failures.len(), summary.failures_left_out), (FAILURES_MAX, 3));
}

#[test]
fn limits_the_depth_of_folders() {
    let folder = TestFolder::new();
    let deep = "d/".repeat(FOLDERS_DEEP_MAX);
    folder.file(format!("{deep}a.css"), text(2000)).file(format!("{deep}d/b.css"), text(2000));
    let summary = run(&folder, &quick());
    assert_eq!((counts(&summary).0, summary.failures.len()), (3, 1));
    assert!(summary.failures[0].why.contains(&FOLDERS_DEEP_MAX.to_string()), "{summary:?}");
}

#[test]
fn reports_progress_after_each_file() {
    let folder = TestFolder::new();
    for number in 0..50 {
        folder.file(format!("{number}.css"), text(2000));
    }
    for jobs in [1, 2, 7, 100_000] {
        let done = Mutex::new(Vec::new());
        let options = Options { jobs, force: true, ..quick() };
        let summary = precompress(folder.path(), &options, &|summary, file| {
            assert!(file.starts_with(folder.path()));
            done.lock().expect("nobody panics").push(summary.files_done);
        });
        assert_eq!(counts(&summary.expect("it can be read")).0, 150, "{jobs} jobs");
        assert_eq!(done.into_inner().expect("nobody panics"), (1..=50).collect::<Vec<_>>(), "{jobs} jobs");
    }
}

#[test]
fn caps_levels() {
    let folder = TestFolder::new();
    folder.file("a.css", text(5000));
    let options = Options { formats: Coding::ALL.map(|format| (format, u32::MAX)).to_vec(), ..quick() };
    assert_eq!(counts(&run(&folder, &options)), (3, 0, 0));
    assert!(decoded(&folder.at("a.css.zst")) == text(5000));
}
