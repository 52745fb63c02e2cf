//! The pages of `docs/tasks`: each is done in a temporary folder as its reader would do it, command by command, with the built
//! program and curl; what is printed has to be what the page shows.

mod page;
mod shown;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folder::Temporary;
use crate::process::{Serving, program};

use page::{Page, Step};

/// Where the pages' servers listen; a free port takes its place.
const ADDRESS: &str = "127.0.0.1:8080";
const FREE: &str = "127.0.0.1:0";
/// Where the pages' sockets are; the temporary folder takes its place.
const SOCKETS: &str = "/run/shearwater/";

fn tasks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tasks")
}

fn pages() -> Vec<Page> {
    let entries = std::fs::read_dir(tasks()).expect("a folder of pages");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// One reader of a page.
struct Reader {
    driver: &'static str,
    folder: Temporary,
    serving: Option<Serving>,
}

impl Reader {
    /// Does what a page says; false where there is no such driver here.
    fn follow(&mut self, page: &Page) -> bool {
        for step in &page.steps {
            match step {
                Step::Configuration { file, text } => {
                    self.folder.file(file, text.replace(ADDRESS, FREE).replace(SOCKETS, &self.sockets()));
                }
                Step::Start { arguments, shown } => {
                    let Some(serving) = self.start(arguments) else { return false };
                    if !shown.is_empty() {
                        self.compare(
                            page,
                            &arguments.join(" "),
                            shown,
                            serving.banner.trim_end(),
                            Some(&serving),
                        );
                    }
                    self.serving = Some(serving);
                }
                Step::Command { line, shown } => {
                    let printed = self.run(line);
                    self.compare(page, line, shown, &printed, self.serving.as_ref());
                }
            }
        }
        true
    }

    fn start(&mut self, arguments: &[String]) -> Option<Serving> {
        // The one before has to be gone first: it may have had the same socket.
        self.serving = None;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = program(self.folder.path(), &[&arguments[..], &["--driver", self.driver]].concat());
        let configuration = arguments.iter().find(|argument| argument.ends_with(".toml"));
        let says_where = configuration.is_some_and(|file| {
            let text = std::fs::read_to_string(self.folder.path().join(file)).expect("it was written");
            text.contains("[[listen]]")
        });
        if !says_where {
            command.args(["--listen", FREE]);
        }
        match Serving::try_start(&mut command) {
            Ok(serving) => Some(serving),
            Err((_, said)) if said.contains("isn't there") => None,
            Err(ended) => panic!("{arguments:?}: {}: {ended:?}", self.driver),
        }
    }

    /// Runs a command as a shell would, and gives what it has printed.
    fn run(&self, line: &str) -> String {
        let line = match address(self.serving.as_ref()) {
            Some(address) => line.replace(ADDRESS, &address),
            None => line.to_owned(),
        };
        let programs = Path::new(env!("CARGO_BIN_EXE_shearwater")).parent().expect("a folder");
        let path = std::env::var("PATH").expect("a PATH");
        let mut command = Command::new("sh");
        command.args(["-c", &line.replace(SOCKETS, &self.sockets())]).current_dir(self.folder.path());
        let output = command.env("PATH", format!("{}:{path}", programs.display())).output().expect("a shell");
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n")
    }

    fn compare(&self, page: &Page, done: &str, shown: &[String], printed: &str, serving: Option<&Serving>) {
        let mut printed = printed.replace(&self.sockets(), SOCKETS).replace(FREE, ADDRESS);
        if let Some(address) = address(serving) {
            printed = printed.replace(&address, ADDRESS);
        }
        let lines: Vec<&str> = printed.lines().collect();
        let is_as_shown = shown::is_as_shown(shown, &lines);
        assert!(
            is_as_shown,
            "{}, {}: {done}\nshown: {shown:#?}\nprinted: {lines:#?}",
            page.name, self.driver
        );
    }

    fn sockets(&self) -> String {
        format!("{}/", self.folder.path().display())
    }
}

/// Where a server listens, unless at a socket of the file system alone.
fn address(serving: Option<&Serving>) -> Option<String> {
    serving.filter(|serving| serving.line("URL").is_some()).map(|serving| serving.address().to_string())
}

#[test]
fn every_page_holds_what_it_shows() {
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    let mut tried = BTreeSet::new();
    let pages = pages();
    for page in &pages {
        assert_eq!(page.gaps(), Vec::<String>::new(), "{}: not tried", page.name);
        for driver in ["epoll", "kqueue", "uring"] {
            let mut reader = Reader { driver, folder: Temporary::new(), serving: None };
            if has_curl && reader.follow(page) {
                tried.insert(&page.name);
            }
        }
    }
    assert!(!has_curl || tried.len() == pages.len(), "{tried:?}");
    if !has_curl {
        println!("skipped: there is no curl");
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = std::fs::read_to_string(tasks().join("../README.md")).expect("an index");
    let missing: Vec<_> = pages()
        .into_iter()
        .map(|page| page.name)
        .filter(|name| !index.contains(&format!("](tasks/{name})")))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}
