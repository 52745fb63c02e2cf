//! Cached files and lookups take no more memory than what counts towards their bounds.

use shearwater::App;
use shearwater::testing::Tested;
use shearwater_files::limits::{CACHED_FILE_OVERHEAD_BYTES, ENTRY_OVERHEAD_BYTES};
use shearwater_files::{FindOptions, Folder, FolderOptions};
use testkit::{CountingAllocator, TestFolder};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const FILES: usize = 3_000;
/// Files requested before the memory is measured, for buffers of the engine and first tables.
const WARM_UP: usize = 100;
const CONTENT: [u8; 300] = [b'x'; 300];

/// Returns the bytes allocated and not freed for each page that is requested as `/NAME` and sent from `NAME.html`. Threads
/// that wait for the disk count: what they have read is freed by the worker.
fn bytes_per_page() -> u64 {
    let files = TestFolder::new();
    for number in 0..FILES {
        files.file(format!("page-{number:05}.html"), CONTENT);
    }
    let find = FindOptions { clean_urls: true, ..FindOptions::default() };
    let folder = Folder::open_with(files.path(), &FolderOptions { find, ..FolderOptions::default() });
    let folder = folder.expect("a folder");
    let app = App::new().mount("/", move |_| folder.files());
    let mut tested = Tested::new(app).expect("one mount");
    let mut client = tested.connect();
    let mut grown_by = |numbers: &mut dyn Iterator<Item = usize>| {
        let before = ALLOCATOR.in_process().live_bytes();
        for number in numbers {
            client.send(format!("GET /page-{number:05} HTTP/1.1\r\nHost: test\r\n\r\n"));
            tested.settle_offloaded();
            assert_eq!(client.response().expect("a response").body, CONTENT);
        }
        ALLOCATOR.in_process().live_bytes() - before
    };
    grown_by(&mut (0..WARM_UP));
    // What requests take that find their file in memory, for the simulated kernel.
    let kernel = grown_by(&mut std::iter::repeat_n(0, FILES - WARM_UP));
    (grown_by(&mut (WARM_UP..FILES)) - kernel) / (FILES - WARM_UP) as u64
}

#[test]
fn cached_files_take_no_more_memory_than_counts() {
    let (path, name) = ("page-00000".len() as u64, "page-00000.html".len() as u64);
    let file = CONTENT.len() as u64 + CACHED_FILE_OVERHEAD_BYTES + 2 * name;
    let lookup = ENTRY_OVERHEAD_BYTES + path + name;
    let taken = bytes_per_page();
    println!("{taken} bytes per cached file and lookup, {} count", file + lookup);
    assert!(taken <= file + lookup, "{taken} of {}", file + lookup);
    assert!(taken > (file + lookup) / 2, "{taken}: the overhead that counts is too high");
}
