//! Cached lists: of two folders of one worker, and pages that begin after any name.

use std::fs;
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{App, Response, Service};
use shearwater_files::{CacheLimits, FileCache, Files, Folder};
use testkit::TestFolder;

use crate::listing::{JSON, listing, names};

/// Two folders of one worker with a shared cache. The query selects one.
struct Two([Files; 2]);

impl Service for Two {
    fn respond(&self, request: &shearwater::engine::Request<'_>, response: &mut Response<'_>) {
        let is_second = request.query().is_some_and(|query| query.starts_with("second"));
        self.0[usize::from(is_second)].respond(request, response);
    }
}

/// Lists of `first` and `second` in a temporary folder, with a clock driven by the test.
struct TwoFolders {
    folder: TestFolder,
    tested: Tested,
}

impl TwoFolders {
    fn new() -> Self {
        let files = TestFolder::new();
        let folders = ["first", "second"].map(|name| {
            fs::create_dir_all(files.at(name).join("x")).expect("a folder");
            Folder::open_with(&files.at(name), &listing()).expect("a folder")
        });
        let app = App::new().mount("/s", move |_| {
            let cache = FileCache::new(CacheLimits::default());
            Two(folders.each_ref().map(|folder| folder.files_in(&cache)))
        });
        Self { folder: files, tested: Tested::new(app).expect("one mount") }
    }

    fn list(&mut self, query: &str) -> String {
        let request = format!("GET /s/x/?{query} HTTP/1.1\r\nHost: a\r\n{JSON}\r\n\r\n");
        let response = self.tested.ask(request);
        assert_eq!(response.status, 200, "{query}");
        response.text().to_owned()
    }
}

#[test]
fn no_query_reaches_the_list_of_another_folder() {
    for is_second_first in [false, true] {
        let mut folders = TwoFolders::new();
        folders.folder.file("first/x/public", "");
        folders.folder.file("second/x/secret", "");
        // The number of a folder, as a former key contained it.
        let forged = "first&after=%00%00%00%01";
        let queries = if is_second_first { ["second", forged] } else { [forged, "second"] };
        for query in queries {
            let name = if query == "second" { "secret" } else { "public" };
            assert_eq!(names(&folders.list(query)), [name], "{query}");
        }
    }
}

#[test]
fn reads_the_names_of_a_folder_every_500_ms() {
    let mut folders = TwoFolders::new();
    for number in 0..30 {
        folders.folder.file(format!("first/x/{number:02}"), "");
    }
    let first = folders.list("first");
    folders.folder.file("first/x/30", "");
    for number in 0..30 {
        let page = folders.list(&format!("first&after={number:02}x"));
        assert_eq!(names(&page).len(), 29 - number, "{number}");
        let page = folders.list(&format!("first&order=asc&after={number:02}&sort=size"));
        assert_eq!(names(&page).len(), 29 - number, "{number}");
    }
    assert_eq!(folders.list("first"), first, "such pages evict no others");
    folders.tested.pass(Duration::from_millis(500));
    assert_eq!(names(&folders.list("first&after=28")), ["29", "30"]);
    assert_eq!(names(&folders.list("first")).len(), 31);
}
