//! Executes the pages of `docs/tasks` in temporary folders, command by command, with the built program and curl, and compares the output
//! with the page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Serving, Temporary, program};

/// Address of the servers in the pages, replaced by a free port.
const ADDRESS: &str = "127.0.0.1:8080";
const FREE: &str = "127.0.0.1:0";
/// Folder of the sockets in the pages, replaced by the temporary folder.
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

/// Executes a page.
struct Reader {
    driver: &'static str,
    folder: Temporary,
    serving: Option<Serving>,
}

impl Reader {
    /// Executes the steps of a page. Returns `false` if the driver is unavailable.
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
        // Stop the previous server first: it may use the same socket.
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

    /// Runs a command in a shell and returns its output.
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
        let is_as_shown = is_as_shown(shown, &lines);
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

/// Returns the IP address of a server, if it has one.
fn address(serving: Option<&Serving>) -> Option<String> {
    serving.filter(|serving| serving.line("URL").is_some()).map(|serving| serving.address().to_string())
}

#[test]
fn task_pages_work_as_shown() {
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
fn lists_every_page_in_the_index() {
    let index = std::fs::read_to_string(tasks().join("../README.md")).expect("an index");
    let missing: Vec<_> = pages()
        .into_iter()
        .map(|page| page.name)
        .filter(|name| !index.contains(&format!("](tasks/{name})")))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Before each command of a `console` block.
const PROMPT: &str = "$ ";

/// A step of a page.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A `toml` block, whose first line is a comment with its file's name.
    Configuration { file: String, text: String },
    /// A command that starts the server, with what it is shown to say at its start.
    Start { arguments: Vec<String>, shown: Vec<String> },
    /// Any other command, with what it is shown to print.
    Command { line: String, shown: Vec<String> },
}

/// A page.
#[derive(Debug)]
struct Page {
    name: String,
    steps: Vec<Step>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a page");
        Self { steps: steps(&text), name }
    }

    /// Returns configurations without a server, and servers without a request whose status is shown.
    fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        // What came last and was not yet tried.
        let mut untried = Some("the page");
        let mut configurations = 0;
        for step in &self.steps {
            match step {
                Step::Configuration { file, .. } => {
                    configurations += 1;
                    gaps.extend(untried.replace(file).filter(|_| configurations > 1).map(str::to_owned));
                }
                Step::Start { .. } => {}
                Step::Command { line, shown } => {
                    if line.starts_with("curl ") && shown.iter().any(|line| line.starts_with("HTTP/1.1 ")) {
                        untried = None;
                    }
                }
            }
        }
        let starts = self.steps.iter().filter(|step| matches!(step, Step::Start { .. })).count();
        gaps.extend(untried.map(str::to_owned));
        gaps.extend((configurations == 0).then(|| "it has no configuration".to_owned()));
        gaps.extend((starts < configurations).then(|| "a configuration is not started".to_owned()));
        gaps
    }
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else {
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match language {
            "toml" => steps.push(configuration(&block)),
            "console" => console(&block, &mut steps),
            other => panic!("no block of a page is {other:?}: toml and console are"),
        }
    }
    steps
}

fn configuration(block: &[&str]) -> Step {
    let file =
        block.first().and_then(|line| line.strip_prefix("# ")).expect("a comment with the file's name");
    Step::Configuration { file: file.to_owned(), text: block.join("\n") + "\n" }
}

fn console(block: &[&str], steps: &mut Vec<Step>) {
    for line in block {
        if let Some(line) = line.strip_prefix(PROMPT) {
            let words: Vec<&str> = line.split(' ').collect();
            let serves = words[0] == "shearwater" && !["check", "config", "precompress"].contains(&words[1]);
            steps.push(if serves {
                let arguments = words[1..].iter().map(|&word| word.to_owned()).collect();
                Step::Start { arguments, shown: Vec::new() }
            } else {
                Step::Command { line: line.to_owned(), shown: Vec::new() }
            });
            continue;
        }
        match steps.last_mut() {
            Some(Step::Start { shown, .. } | Step::Command { shown, .. }) => shown.push((*line).to_owned()),
            _ => panic!("a console block begins with a command, not with {line:?}"),
        }
    }
}

#[test]
fn parses_a_page_into_steps() {
    let text = "# T\n```toml\n# a.toml\nb = 1\n```\ntext\n```console\n$ shearwater --config a.toml\n...\n$ curl -i x\nHTTP/1.1 200 OK\n\n$ shearwater check a.toml\n```\n";
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let expected = [
        Step::Configuration { file: "a.toml".to_owned(), text: "# a.toml\nb = 1\n".to_owned() },
        Step::Start { arguments: words(&["--config", "a.toml"]), shown: words(&["..."]) },
        Step::Command { line: "curl -i x".to_owned(), shown: words(&["HTTP/1.1 200 OK", ""]) },
        Step::Command { line: "shearwater check a.toml".to_owned(), shown: Vec::new() },
    ];
    assert_eq!(steps(text), expected);
}

#[test]
fn finds_pages_that_check_nothing() {
    let gaps = |text: &str| Page { name: String::new(), steps: steps(text) }.gaps();
    let configuration = "```toml\n# a.toml\n```\n";
    let start = "```console\n$ shearwater --config a.toml\n```\n";
    let asked = "```console\n$ curl -i x\nHTTP/1.1 200 OK\n```\n";
    assert_eq!(gaps(&[configuration, start, asked].concat()), Vec::<String>::new());
    assert_eq!(gaps(asked), ["it has no configuration"]);
    assert_eq!(gaps(&[configuration, asked].concat()), ["a configuration is not started"]);
    assert_eq!(gaps(&[configuration, start].concat()), ["a.toml"]);
    assert_eq!(gaps(&[configuration, start, configuration, start, asked].concat()), ["a.toml"]);
    let silent = "```console\n$ curl -i x\n```\n";
    assert_eq!(gaps(&[configuration, start, silent].concat()), ["a.toml"]);
}

/// Fields whose values are others each time.
const CHANGING: &[&str] = &["Date: ", "Last-Modified: ", "ETag: "];

/// Matches anything.
const ANYTHING: &str = "...";

/// Returns whether `real` matches what is shown.
fn is_as_shown(shown: &[String], real: &[&str]) -> bool {
    match shown.split_first() {
        None => real.is_empty(),
        Some((line, rest)) if line == ANYTHING => {
            (0..=real.len()).any(|passed| is_as_shown(rest, &real[passed..]))
        }
        Some((line, rest)) => {
            real.first().is_some_and(|real| is_line_as_shown(line, real)) && is_as_shown(rest, &real[1..])
        }
    }
}

fn is_line_as_shown(shown: &str, real: &str) -> bool {
    let (shown, real) = (form(shown), form(real));
    let mut parts = shown.split(ANYTHING);
    let Some(mut rest) = parts.next().and_then(|first| real.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line, in which what changes each time is only its kind: digits of a time, characters of a tag.
fn form(line: &str) -> String {
    let Some(name) = CHANGING.iter().find(|name| line.starts_with(**name)) else { return line.to_owned() };
    let value = &line[name.len()..];
    let form = match *name {
        "ETag: " => match value.split_once('"') {
            Some((weak, tag)) if tag.ends_with('"') => format!("{weak}\"tag\""),
            _ => value.to_owned(),
        },
        _ if value.len() == "Sun, 06 Nov 1994 08:49:37 GMT".len() && value.ends_with(" GMT") => {
            "a time".to_owned()
        }
        _ => value.to_owned(),
    };
    format!("{name}{form}")
}

#[test]
fn compares_shown_and_printed_lines() {
    let is = |shown: &str, real: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        is_as_shown(&shown, &real.lines().collect::<Vec<_>>())
    };
    assert!(is("a\nb", "a\nb") && is("", "") && is("...", "") && is("...", "a\nb"));
    assert!(!is("a", "a\nb") && !is("a\nb", "a") && !is("b\na", "a\nb") && !is("", "a"));
    assert!(is("a\n...\nd", "a\nb\nc\nd") && is("a\n...\nb", "a\nb") && !is("a\n...\nd", "a\nd\nc"));
    assert!(is("x ... y ... z", "x 1 y 2 z") && !is("x ... y", "x 1 y 2") && !is("x ...", "y x 1"));
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
    assert!(
        is(date, "Date: Mon, 07 Nov 1994 08:49:37 GMT")
            && !is(date, "Date: now")
            && !is(date, "Last-Modified: Mon, 07 Nov 1994 08:49:37 GMT")
    );
    assert!(
        is("ETag: \"1-2\"", "ETag: \"3-4-gz\"")
            && !is("ETag: \"1\"", "ETag: W/\"1\"")
            && !is("ETag: \"1\"", "ETag: 1")
    );
}
