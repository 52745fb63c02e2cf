//! Clause S10: a file is sent in the promised version, or ends short.

use std::fs::{File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use shearwater_io::fs::Meta;
use shearwater_io::{Driver, Output, SharedFile, Token};

use super::world::{SentAs, World, block_item, file_item, pattern, with_file};
use super::{Harness, PeerId};

/// More than is copied at once.
const FILE: usize = 300_000;

/// More than the sockets of both sides take.
const LARGE: u64 = 24_000_000;

/// A named file, removed on drop.
struct Versioned {
    path: PathBuf,
    file: File,
}

impl Versioned {
    /// Creates a file with old times, so that no write falls into the same tick of the clock.
    fn new(contents: &[u8]) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("shearwater-version-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        file.write_all_at(contents, 0).expect("it can be written");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).expect("a time");
        Self { path, file }
    }

    fn meta(&self) -> Meta {
        Meta::of(&self.file).expect("its metadata")
    }

    /// Returns the file for a send, promised in its present version.
    fn promised(&self, is_copied: bool) -> Rc<SharedFile> {
        let shared = SharedFile::new(File::open(&self.path).expect("it is there")).in_version(self.meta());
        Rc::new(if is_copied { shared.copied() } else { shared })
    }

    fn rewrite(&self, contents: &[u8]) {
        self.rewrite_at(contents, 0);
    }

    /// Sets both times, as `touch` does.
    fn touch(&self) {
        let now = SystemTime::now();
        self.file
            .set_times(FileTimes::new().set_accessed(now).set_modified(now))
            .expect("the file can be changed");
    }

    fn append(&self) {
        let len = self.meta().len;
        self.rewrite_at(&[7], len);
    }

    fn rewrite_at(&self, contents: &[u8], offset: u64) {
        self.file.write_all_at(contents, offset).expect("it can be written");
    }
}

impl Drop for Versioned {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

type FileChange = fn(&Versioned);

/// Changes that leave the promised bytes and both times of the content unchanged.
const HARMLESS: [(&str, FileChange); 6] = [
    ("longer", Versioned::append),
    ("of another mode", |file| {
        let mode = Permissions::from_mode(0o600);
        file.file.set_permissions(mode).expect("the file can be changed");
    }),
    ("of another owner", |file| {
        let owner = file.file.metadata().expect("its metadata").uid();
        fchown(&file.file, Some(owner), None).expect("the file can be changed");
    }),
    ("of another name", |file| {
        let mut other = file.path.clone().into_os_string();
        other.push(".moved");
        std::fs::rename(&file.path, &other).expect("the file can be renamed");
        std::fs::rename(&other, &file.path).expect("the file can be renamed");
    }),
    ("replaced", |file| {
        let other = Versioned::new(&pattern(FILE, 2));
        std::fs::rename(&other.path, &file.path).expect("the file can be renamed");
    }),
    ("removed", |file| std::fs::remove_file(&file.path).expect("it can be removed")),
];

/// Some bytes, all of the file, and some bytes.
fn whole(file: &Rc<SharedFile>) -> Output {
    let mut output = with_file(b"head", file, 0, FILE as u64);
    output.bytes_mut().extend_from_slice(b"tail");
    output
}

/// Reads until the send in flight has ended and closes the connection; returns the peer's bytes and the
/// send's result.
fn got_until_closed<H: Harness>(world: &mut World<H>, peer: PeerId, token: Token) -> (Vec<u8>, SentAs) {
    let mut got = Vec::new();
    world.until("the send comes back", |world| {
        world.harness.read(peer, usize::MAX, &mut got);
        !world.is_sending(token)
    });
    let ended = *world.page(token).sent.last().expect("it came back");
    world.close_and_wait(token);
    got.extend(world.peer_ends(peer).1);
    (got, ended)
}

pub(crate) fn s10_a_file_in_its_version_is_sent_whole<H: Harness>() {
    let contents = pattern(FILE, 1);
    let file = Versioned::new(&contents);
    let (mut world, peer, token) = World::<H>::connected();
    for is_copied in [false, true] {
        world.send(token, whole(&file.promised(is_copied)));
        assert!(world.peer_gets(peer, FILE + 8) == [b"head", &contents[..], b"tail"].concat());
        world.until("it comes back", |world| !world.is_sending(token));
        assert_eq!(world.page(token).sent.last(), Some(&SentAs::Whole));
    }
}

pub(crate) fn s10_a_changed_file_ends_short_of_its_last_bytes<H: Harness>() {
    let changes: [FileChange; 2] = [
        |file| file.rewrite(&pattern(FILE, 2)),
        |file| file.file.set_len(FILE as u64 - 1).expect("the file can be truncated"),
    ];
    for change in changes {
        for is_copied in [false, true] {
            let file = Versioned::new(&pattern(FILE, 1));
            let (mut world, peer, token) = World::<H>::connected();
            let promised = file.promised(is_copied);
            change(&file);
            world.send(token, whole(&promised));
            let (got, ended) = got_until_closed(&mut world, peer, token);
            assert!(matches!(ended, SentAs::FileChanged | SentAs::FileShort), "{ended:?}");
            assert!(got.starts_with(b"head") && got.len() < 4 + FILE, "{} bytes", got.len());
        }
    }
}

pub(crate) fn s10_a_file_without_a_promise_is_sent_as_it_is<H: Harness>() {
    let file = Versioned::new(&pattern(FILE, 1));
    let shared = Rc::new(SharedFile::new(File::open(&file.path).expect("it is there")));
    let contents = pattern(FILE, 2);
    file.rewrite(&contents);
    let (mut world, peer, token) = World::<H>::connected();
    world.send(token, whole(&shared));
    assert!(world.peer_gets(peer, FILE + 8) == [b"head", &contents[..], b"tail"].concat());
}

pub(crate) fn s10_checks_each_range<H: Harness>() {
    for is_copied in [false, true] {
        let file = Versioned::new(&pattern(2000, 1));
        let promised = file.promised(is_copied);
        let (mut world, peer, token) = World::<H>::connected();
        let block = vec![b'x'; LARGE as usize];
        let mut output = with_file(b"", &promised, 0, 1000);
        output.push(block_item(&block));
        output.push(file_item(&promised, 1000, 1000));
        world.send(token, output);
        world.idle();
        let taken = world.driver().send_progress(token);
        assert!((1000..LARGE).contains(&taken), "the first part is in flight: {taken}");
        file.rewrite_at(&[7], 1999);
        let (got, ended) = got_until_closed(&mut world, peer, token);
        assert_eq!(ended, SentAs::FileChanged);
        assert!(got == [&pattern(2000, 1)[..1000], &block].concat(), "{} bytes", got.len());
    }
}

pub(crate) fn s10_copied_bytes_stay_unchanged<H: Harness>() {
    // Few enough bytes that every socket takes them at once.
    const LITTLE: usize = 2_000;
    let contents = pattern(LITTLE, 1);
    let file = Versioned::new(&contents);
    let (mut world, peer, token) = World::<H>::connected();
    world.send(token, with_file(b"head", &file.promised(true), 0, LITTLE as u64));
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Whole]);
    file.rewrite(&pattern(LITTLE, 2));
    assert!(world.peer_gets(peer, 4 + LITTLE) == [b"head", &contents[..]].concat());
}

pub(crate) fn s10_a_file_rewritten_on_the_way_ends_short<H: Harness>() {
    for is_copied in [false, true] {
        let file = Versioned::new(b"");
        file.file.set_len(LARGE).expect("a sparse file");
        let (mut world, peer, token) = World::<H>::connected();
        world.send(token, with_file(b"", &file.promised(is_copied), 0, LARGE));
        world.idle();
        let taken = world.driver().send_progress(token);
        assert!((1..LARGE).contains(&taken), "more than fits unread: {taken}");
        // Bytes in flight by now.
        file.rewrite(&[7; 1]);
        let (got, ended) = got_until_closed(&mut world, peer, token);
        assert_eq!(ended, SentAs::FileChanged);
        assert!((taken..LARGE).contains(&(got.len() as u64)), "{} bytes", got.len());
        if is_copied {
            assert!(got.iter().all(|&byte| byte == 0), "bytes taken before the change are unchanged");
        }
    }
}

pub(crate) fn s10_a_file_that_grows_or_gets_other_metadata_is_sent_whole<H: Harness>() {
    let contents = pattern(FILE, 1);
    for (what, change) in HARMLESS {
        for is_copied in [false, true] {
            let (mut world, peer, token) = World::<H>::connected();
            let file = Versioned::new(&contents);
            let promised = file.promised(is_copied);
            change(&file);
            world.send(token, whole(&promised));
            let sent = [b"head", &contents[..], b"tail"].concat();
            assert!(world.peer_gets(peer, FILE + 8) == sent, "{what}");
            world.until("it comes back", |world| !world.is_sending(token));
            assert_eq!(world.page(token).sent.last(), Some(&SentAs::Whole), "{what}");
        }
    }
}

/// Changes a file while it is sent to a slow peer, and returns the send's result.
fn ended_beside<H: Harness>(is_copied: bool, change: FileChange) -> SentAs {
    let file = Versioned::new(b"");
    file.rewrite_at(&pattern(FILE, 1), LARGE - FILE as u64);
    let (mut world, peer, token) = World::<H>::connected();
    world.send(token, with_file(b"", &file.promised(is_copied), 0, LARGE));
    world.idle();
    assert!(world.driver().send_progress(token) < LARGE, "more than fits unread");
    change(&file);
    let (got, ended) = got_until_closed(&mut world, peer, token);
    assert_eq!(got.len() as u64 == LARGE, ended == SentAs::Whole);
    ended
}

pub(crate) fn s10_a_touched_file_is_sent_whole_if_the_system_reports_writes<H: Harness>() {
    for is_copied in [false, true] {
        for (what, change) in HARMLESS {
            assert_eq!(ended_beside::<H>(is_copied, change), SentAs::Whole, "{what}");
        }
        let expected = if H::tells_writes() { SentAs::Whole } else { SentAs::FileChanged };
        assert_eq!(ended_beside::<H>(is_copied, Versioned::touch), expected);
        let written: [FileChange; 2] = [
            |file| {
                file.rewrite(&[7]);
                file.touch();
            },
            |file| {
                file.touch();
                file.rewrite(&[7]);
            },
        ];
        for change in written {
            assert_eq!(ended_beside::<H>(is_copied, change), SentAs::FileChanged);
        }
        // Detected by the bytes at its promised end.
        let rewritten_longer: FileChange = |file| {
            file.file.set_len(0).expect("the file can be truncated");
            file.rewrite_at(&[7; 2000], LARGE - 1000);
        };
        assert_eq!(ended_beside::<H>(is_copied, rewritten_longer) == SentAs::Whole, !H::tells_writes());
    }
}
