//! A busy server doesn't allocate in 10,000 requests for cached files.
//!
//! Its own test binary, since the counter replaces the allocator of the whole process.

mod steady;

use std::io::Write;

use shearwater_files::Folder;
use testkit::TestFolder;

use crate::steady::{SteadyLoad, assert_no_calls};

const FILES: usize = 16;
const FILE_BYTES: usize = 1024;

/// Requests with different heads. Every second file has a zstd sibling.
const LOAD: SteadyLoad = SteadyLoad {
    write: |head, number| {
        let (file, own) = (number % FILES, number * 7);
        if number.is_multiple_of(2) {
            write!(
                head,
                "GET /{file}.txt HTTP/1.1\r\nHost: localhost\r\nCookie: id={own}\r\nAccept: */*\r\n\r\n"
            )
        } else {
            write!(head, "GET /{file}.txt?{own} HTTP/1.1\r\nX-Own: {own}\r\n")?;
            write!(head, "Accept-Encoding: br, zstd\r\nHost: b:80\r\n\r\n")
        }
    },
    check: |response, number| {
        assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n"));
        let wanted = if number.is_multiple_of(2) { b'x' } else { b'y' };
        assert!(response.len() > FILE_BYTES && response.last() == Some(&wanted));
    },
};

#[test]
fn ten_thousand_requests_allocate_nothing() {
    let folder = TestFolder::new();
    for file in 0..FILES {
        folder.file(format!("{file}.txt"), [b'x'; FILE_BYTES]);
        if !file.is_multiple_of(2) {
            let packed = [&[0x28, 0xb5, 0x2f, 0xfd, 0][..], &[b'y'; FILE_BYTES]].concat();
            folder.file(format!("{file}.txt.zst"), packed);
        }
    }
    assert_no_calls(|path| Folder::open(path).expect("a folder").files(), folder.path(), &LOAD);
}
