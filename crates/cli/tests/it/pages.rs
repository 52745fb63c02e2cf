//! Executes the pages of `docs/tasks` and `tests/commands.md` command by command in temporary folders, and compares the output with the
//! page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::process::{COMMANDS, Serving, Temporary, program};

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
    fn new(driver: &'static str) -> Self {
        Self { driver, folder: Temporary::new(), serving: None }
    }

    /// Executes the steps of a page. Returns `false` if the driver is unavailable.
    fn follow(&mut self, page: &Page) -> bool {
        for step in &page.steps {
            match step {
                Step::File { name, text } => {
                    self.folder.file(name, text.replace(ADDRESS, FREE).replace(SOCKETS, &self.sockets()));
                }
                Step::Command { line, shown } => {
                    let printed = match arguments_of_server(line) {
                        Some(arguments) if !self.start(&arguments) => return false,
                        // The report may be omitted.
                        Some(_) if shown.is_empty() => continue,
                        Some(_) => self.serving.as_ref().map(|serving| serving.banner.trim_end().to_owned()),
                        None => Some(self.run(line)),
                    };
                    self.compare(page, line, shown, &printed.expect("it serves"));
                }
            }
        }
        true
    }

    /// Starts a server. Returns `false` if the driver is unavailable.
    fn start(&mut self, arguments: &[&str]) -> bool {
        // Stop the previous server first: it may use the same socket.
        self.serving = None;
        let mut command = program(self.folder.path(), &[arguments, &["--driver", self.driver]].concat());
        let configuration = arguments.iter().find(|argument| argument.ends_with(".toml"));
        let has_address = configuration.is_some_and(|file| {
            let text = std::fs::read_to_string(self.folder.path().join(file)).expect("it was written");
            text.contains("[[listen]]")
        });
        if !has_address {
            command.args(["--listen", FREE]);
        }
        match Serving::try_start(&mut command) {
            Ok(serving) => self.serving = Some(serving),
            Err((_, output)) if output.contains("isn't there") => return false,
            Err(ended) => panic!("{arguments:?}: {}: {ended:?}", self.driver),
        }
        true
    }

    /// Runs a command that succeeds in a shell and returns its output.
    fn run(&self, line: &str) -> String {
        let line = match self.address() {
            Some(address) => line.replace(ADDRESS, &address),
            None => line.to_owned(),
        };
        let output = in_shell(&self.folder, &line.replace(SOCKETS, &self.sockets()));
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n")
    }

    fn compare(&self, page: &Page, line: &str, shown: &[String], printed: &str) {
        let mut printed = printed.replace(&self.sockets(), SOCKETS).replace(FREE, ADDRESS);
        if let Some(address) = self.address() {
            printed = printed.replace(&address, ADDRESS);
        }
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            is_as_shown(shown, &lines),
            "{}, {}: {line}\nshown: {shown:#?}\nprinted: {lines:#?}",
            page.name,
            self.driver
        );
    }

    fn sockets(&self) -> String {
        format!("{}/", self.folder.path().display())
    }

    /// Returns the IP address of the server, if it has one.
    fn address(&self) -> Option<String> {
        let serving = self.serving.as_ref().filter(|serving| serving.line("URL").is_some())?;
        Some(serving.address().to_string())
    }
}

/// Runs a command in a shell that finds the program.
fn in_shell(folder: &Temporary, line: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_shearwater")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a PATH"));
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder.path()).env("PATH", path).output().expect("a shell")
}

#[test]
fn task_pages_work_as_shown() {
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    let mut tried = BTreeSet::new();
    let pages = pages();
    for page in &pages {
        assert_eq!(page.gaps(), Vec::<String>::new(), "{}: not tried", page.name);
        for driver in ["epoll", "kqueue", "uring"] {
            if has_curl && Reader::new(driver).follow(page) {
                tried.insert(&page.name);
            }
        }
    }
    assert!(!has_curl || tried.len() == pages.len(), "{tried:?}");
    if !has_curl {
        println!("skipped: there is no curl");
    }
}

/// The page shows standard output, standard error and then the exit code, unless it is 0. The folder is shown as `FOLDER`.
#[test]
fn commands_print_what_is_shown() {
    let page = Page::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands.md"));
    let folder = Temporary::new();
    let mut wrong = Vec::new();
    for step in &page.steps {
        match step {
            Step::File { name, text } => drop(folder.file(name, text)),
            Step::Command { line, shown } => {
                let Output { status, stdout, stderr } = in_shell(&folder, line);
                let is_json = stdout.starts_with(b"{");
                assert!(status.code() != Some(2) || is_json || stdout.is_empty(), "{line}: {stdout:?}");
                assert!(status.code() != Some(0) || stderr.is_empty(), "{line}: {stderr:?}");
                let mut printed = String::from_utf8([stdout, stderr].concat()).expect("UTF-8");
                match status.code() {
                    Some(0) => {}
                    code => printed.push_str(&format!("exit code {}\n", code.expect("no signal"))),
                }
                let printed = printed.replace(&folder.path().display().to_string(), "FOLDER");
                if !is_as_shown(shown, &printed.lines().collect::<Vec<_>>()) {
                    wrong.push(format!("$ {line}\n{printed}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "otherwise than in tests/commands.md:\n{}", wrong.join(""));
    assert!(page.steps.len() > 60, "{} steps", page.steps.len());
}

#[test]
fn lists_every_page_in_the_index() {
    let index = std::fs::read_to_string(tasks().join("../README.md")).expect("an index");
    let names = pages().into_iter().map(|page| page.name);
    let missing: Vec<_> = names.filter(|name| !index.contains(&format!("](tasks/{name})"))).collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Before each command of a `console` block.
const PROMPT: &str = "$ ";

/// A step of a page.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A `toml` block, whose first line is a comment with its file's name.
    File { name: String, text: String },
    /// A command and the output that is shown.
    Command { line: String, shown: Vec<String> },
}

/// Returns the arguments of a command that starts a server.
fn arguments_of_server(line: &str) -> Option<Vec<&str>> {
    let arguments: Vec<&str> = line.strip_prefix("shearwater ")?.split(' ').collect();
    (!COMMANDS.contains(&arguments[0])).then_some(arguments)
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
        // The last one that was not tried yet.
        let mut untried = Some("the page");
        let (mut configurations, mut starts) = (0, 0);
        for step in &self.steps {
            match step {
                Step::File { name, .. } => {
                    configurations += 1;
                    gaps.extend(untried.replace(name).filter(|_| configurations > 1).map(str::to_owned));
                }
                Step::Command { line, shown } => {
                    starts += usize::from(arguments_of_server(line).is_some());
                    if line.starts_with("curl ") && shown.iter().any(|line| line.starts_with("HTTP/1.1 ")) {
                        untried = None;
                    }
                }
            }
        }
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
            "toml" => {
                let name = block.first().and_then(|line| line.strip_prefix("# "));
                let name = name.expect("a comment with the file's name").to_owned();
                steps.push(Step::File { name, text: block.join("\n") + "\n" });
            }
            "console" => {
                for line in block {
                    match (line.strip_prefix(PROMPT), steps.last_mut()) {
                        (Some(line), _) => {
                            steps.push(Step::Command { line: line.to_owned(), shown: Vec::new() });
                        }
                        (None, Some(Step::Command { shown, .. })) => shown.push(line.to_owned()),
                        _ => panic!("a console block begins with a command, not with {line:?}"),
                    }
                }
            }
            other => panic!("no block of a page is {other:?}: toml and console are"),
        }
    }
    steps
}

#[test]
fn parses_a_page_into_steps() {
    let text = "# T\n```toml\n# a.toml\nb = 1\n```\ntext\n```console\n$ shearwater --config a.toml\n...\n$ curl -i x\nHTTP/1.1 200 OK\n\n$ shearwater check a.toml\n```\n";
    let command = |line: &str, shown: &[&str]| Step::Command {
        line: line.to_owned(),
        shown: shown.iter().map(|&line| line.to_owned()).collect(),
    };
    let expected = [
        Step::File { name: "a.toml".to_owned(), text: "# a.toml\nb = 1\n".to_owned() },
        command("shearwater --config a.toml", &["..."]),
        command("curl -i x", &["HTTP/1.1 200 OK", ""]),
        command("shearwater check a.toml", &[]),
    ];
    assert_eq!(steps(text), expected);
    assert_eq!(arguments_of_server("shearwater --config a.toml"), Some(vec!["--config", "a.toml"]));
    assert_eq!(arguments_of_server("shearwater check a.toml"), None);
}

#[test]
fn finds_pages_that_check_nothing() {
    let gaps = |text: &str| Page { name: String::new(), steps: steps(text) }.gaps();
    let configuration = "```toml\n# a.toml\n```\n";
    let start = "```console\n$ shearwater --config a.toml\n```\n";
    let request = "```console\n$ curl -i x\nHTTP/1.1 200 OK\n```\n";
    assert_eq!(gaps(&[configuration, start, request].concat()), Vec::<String>::new());
    assert_eq!(gaps(request), ["it has no configuration"]);
    assert_eq!(gaps(&[configuration, request].concat()), ["a configuration is not started"]);
    assert_eq!(gaps(&[configuration, start].concat()), ["a.toml"]);
    assert_eq!(gaps(&[configuration, start, configuration, start, request].concat()), ["a.toml"]);
    let silent = "```console\n$ curl -i x\n```\n";
    assert_eq!(gaps(&[configuration, start, silent].concat()), ["a.toml"]);
}

/// Headers whose values differ each time.
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

/// Replaces values that differ each time by their kind.
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
