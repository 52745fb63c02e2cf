//! Clause S10: a file goes out in the version that was promised, or ends short.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use shearwater_io::fs::Meta;
use shearwater_io::{Driver, Output, SharedFile, Token};

use super::harness::{Harness, PeerId};
use super::world::{SentAs, World, block_item, file_item, pattern, plain};

/// More than is copied at once.
const FILE: usize = 300_000;

/// More than the sockets of both sides take.
const LARGE: u64 = 24_000_000;

/// A file with a name, which goes with it.
struct Versioned {
    path: PathBuf,
    file: File,
}

impl Versioned {
    /// A file that was written long ago, so that no write falls into the same tick of the clock.
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

    /// The file for a send, promised as it is now.
    fn promised(&self, is_copied: bool) -> Rc<SharedFile> {
        let shared = SharedFile::new(File::open(&self.path).expect("it is there")).in_version(self.meta());
        Rc::new(if is_copied { shared.copied() } else { shared })
    }

    fn rewrite(&self, contents: &[u8]) {
        self.file.write_all_at(contents, 0).expect("it can be written");
    }

    /// Changes the metadata alone, until the system tells.
    fn touch(&self) {
        let before = self.meta();
        while self.meta().ctime == before.ctime {
            self.file.set_permissions(Permissions::from_mode(0o600)).expect("it is ours");
        }
    }
}

impl Drop for Versioned {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Some bytes, all of the file, and some bytes.
fn whole(file: &Rc<SharedFile>) -> Output {
    let mut output = plain(b"head");
    output.push(file_item(file, 0, FILE as u64));
    output.bytes_mut().extend_from_slice(b"tail");
    output
}

/// Reads until the send in flight has ended and the connection, which is closed then; what the peer has got, and how the send ended.
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
    type Change = fn(&Versioned);
    let changes: [Change; 4] = [
        |file| file.rewrite(&pattern(FILE, 2)),
        |file| file.rewrite(&pattern(FILE + 1, 1)),
        |file| file.file.set_len(FILE as u64 - 1).expect("it can be cut"),
        Versioned::touch,
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

pub(crate) fn s10_each_piece_is_looked_at<H: Harness>() {
    for is_copied in [false, true] {
        let file = Versioned::new(&pattern(2000, 1));
        let promised = file.promised(is_copied);
        let (mut world, peer, token) = World::<H>::connected();
        let block = vec![b'x'; LARGE as usize];
        let mut output = Output::new();
        output.push(file_item(&promised, 0, 1000));
        output.push(block_item(&block));
        output.push(file_item(&promised, 1000, 1000));
        world.send(token, output);
        world.idle();
        let taken = world.driver().send_progress(token);
        assert!((1000..LARGE).contains(&taken), "the first piece is on its way: {taken}");
        file.touch();
        let (got, ended) = got_until_closed(&mut world, peer, token);
        assert_eq!(ended, SentAs::FileChanged);
        assert!(got == [&pattern(2000, 1)[..1000], &block].concat(), "{} bytes", got.len());
    }
}

pub(crate) fn s10_what_was_copied_stays_as_it_was<H: Harness>() {
    // So little that every socket takes it at once.
    const LITTLE: usize = 2_000;
    let contents = pattern(LITTLE, 1);
    let file = Versioned::new(&contents);
    let (mut world, peer, token) = World::<H>::connected();
    let mut output = plain(b"head");
    output.push(file_item(&file.promised(true), 0, LITTLE as u64));
    world.send(token, output);
    world.until("it comes back", |world| !world.is_sending(token));
    assert_eq!(world.page(token).sent, [SentAs::Whole]);
    file.rewrite(&pattern(LITTLE, 2));
    assert!(world.peer_gets(peer, 4 + LITTLE) == [b"head", &contents[..]].concat());
}

pub(crate) fn s10_a_file_rewritten_on_the_way_ends_short<H: Harness>() {
    for is_copied in [false, true] {
        let file = Versioned::new(b"");
        file.file.set_len(LARGE).expect("a hole");
        let (mut world, peer, token) = World::<H>::connected();
        let mut output = Output::new();
        output.push(file_item(&file.promised(is_copied), 0, LARGE));
        world.send(token, output);
        world.idle();
        let taken = world.driver().send_progress(token);
        assert!((1..LARGE).contains(&taken), "nobody reads so much: {taken}");
        // What is on its way by now.
        file.rewrite(&[7; 1]);
        let (got, ended) = got_until_closed(&mut world, peer, token);
        assert_eq!(ended, SentAs::FileChanged);
        assert!((taken..LARGE).contains(&(got.len() as u64)), "{} bytes", got.len());
        if is_copied {
            assert!(got.iter().all(|&byte| byte == 0), "what was taken before the change is as it was");
        }
    }
}

/// Replaced by a rename or removed, it is the old file to its end, though that sets a time of it.
pub(crate) fn s10_a_file_that_loses_its_name_is_sent_whole<H: Harness>() {
    let contents = pattern(FILE, 1);
    let (mut world, peer, token) = World::<H>::connected();
    for is_copied in [false, true] {
        for is_replaced in [false, true] {
            let file = Versioned::new(&contents);
            let promised = file.promised(is_copied);
            if is_replaced {
                let other = Versioned::new(&pattern(FILE, 2));
                std::fs::rename(&other.path, &file.path).expect("it can be renamed");
            } else {
                std::fs::remove_file(&file.path).expect("it can be removed");
            }
            world.send(token, whole(&promised));
            assert!(world.peer_gets(peer, FILE + 8) == [b"head", &contents[..], b"tail"].concat());
            world.until("it comes back", |world| !world.is_sending(token));
            assert_eq!(world.page(token).sent.last(), Some(&SentAs::Whole));
        }
    }
}
