//! Executes pages command by command in temporary folders, and compares the output with what they show: `docs/tasks`,
//! `tests/clients.md` and `tests/commands.md`.

use std::path::Path;
use std::process::{Command, Output};

use testkit::TestFolder;

use crate::process::{Server, program};

/// Address of the servers in the pages, replaced by a free port.
const ADDRESS: &str = "127.0.0.1:8080";
const FREE: &str = "127.0.0.1:0";
/// Address with TLS of the servers in the pages, replaced likewise.
const SECURE: &str = "127.0.0.1:8443";
/// Address of the admin listeners in the pages, replaced likewise.
const ADMIN: &str = "127.0.0.1:9180";
/// Folder of the sockets in the pages, replaced by the temporary folder.
const SOCKETS: &str = "/run/shearwater/";

/// Starts of commands that reload or upgrade the server. The page shows what the server logs then.
const LOGGED: [&str; 2] = ["kill -HUP ", "kill -USR2 "];
/// Start of a command that upgrades the server with this PID file.
const UPGRADE: &str = "shearwater upgrade ";

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
const TASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tasks");

fn tasks() -> Vec<Page> {
    let entries = std::fs::read_dir(TASKS).expect("a folder of pages");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

/// Executes a page.
struct Reader {
    driver: &'static str,
    folder: TestFolder,
    server: Option<Server>,
}

impl Reader {
    fn new(driver: &'static str) -> Self {
        Self { driver, folder: TestFolder::new(), server: None }
    }

    /// Executes the steps of a page. Returns `false` if the driver is unavailable.
    fn follow(&mut self, page: &Page) -> bool {
        for step in &page.steps {
            match step {
                Step::File { name, text } => {
                    self.folder.file(
                        name,
                        text.replace(ADDRESS, FREE)
                            .replace(SECURE, FREE)
                            .replace(ADMIN, FREE)
                            .replace(SOCKETS, &self.sockets()),
                    );
                }
                Step::Command { line, shown } => {
                    let printed = match arguments_of_server(line) {
                        Some(arguments) if !self.start(&arguments) => return false,
                        // The report may be omitted.
                        Some(_) if shown.is_empty() => continue,
                        Some(_) => self.server.as_ref().map(|server| server.banner.trim_end().to_owned()),
                        None if LOGGED.iter().any(|start| line.starts_with(start)) => {
                            Some(self.run_logged(line))
                        }
                        // With `||` the page shows a refusal, of which the log has its part.
                        None if line.starts_with(UPGRADE) && line.contains("||") => {
                            let printed = self.run(line);
                            self.next_outcome();
                            Some(printed)
                        }
                        None if line.starts_with(UPGRADE) => Some(self.upgrade(line)),
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
        self.server = None;
        let mut command = program(&self.folder, &[arguments, &["--driver", self.driver]].concat());
        let configuration = arguments.iter().find(|argument| argument.ends_with(".toml"));
        let has_address = configuration.is_some_and(|file| {
            let text = std::fs::read_to_string(self.folder.at(file)).expect("it was written");
            text.contains("[[listen]]")
        });
        if !has_address {
            command.args(["--listen", FREE]);
        }
        match Server::try_start(&mut command) {
            Ok(server) => self.server = Some(server),
            Err((_, output)) if output.contains("isn't there") => return false,
            Err(ended) => panic!("{arguments:?}: {}: {ended:?}", self.driver),
        }
        true
    }

    /// Runs a command after which another process serves.
    fn upgrade(&mut self, line: &str) -> String {
        let printed = self.run(line);
        let file = self.folder.at(&line[UPGRADE.len()..]);
        let number = std::fs::read_to_string(file).expect("a PID file");
        let pid = number.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
        let server = self.server.as_mut().expect("it serves");
        server.succeeded_by(pid.expect("a number"));
        // The last line of the old process.
        loop {
            let line = server.next_line();
            assert!(!line.is_empty(), "it has ended");
            if line.starts_with("shearwater: in all ") {
                return printed;
            }
        }
    }

    /// Runs a command that the server logs something about, and returns that.
    fn run_logged(&mut self, line: &str) -> String {
        let output = self.run(line);
        output + &self.next_outcome()
    }

    /// Returns what the server logs, up to the line with the outcome of a reload or upgrade.
    fn next_outcome(&mut self) -> String {
        let server = self.server.as_mut().expect("it serves");
        let mut log = String::new();
        while !(log.contains("shearwater: ") || log.contains("\"kind\":\"reload")) {
            let line = server.next_line();
            assert!(!line.is_empty(), "it has ended: {log}");
            log.push_str(&line);
        }
        log
    }

    /// Runs a command that succeeds in a shell and returns its output.
    fn run(&self, line: &str) -> String {
        let line = match self.address() {
            Some(address) => line.replace(ADDRESS, &address),
            None => line.to_owned(),
        };
        let line = match self.secure() {
            Some(address) => line.replace(SECURE, &address),
            None => line,
        };
        let line = match self.admin() {
            Some(address) => line.replace(ADMIN, &address),
            None => line,
        };
        let pid = self.server.as_ref().map(|server| server.pid().as_raw_nonzero().to_string());
        let output = in_shell(&self.folder, &line.replace(SOCKETS, &self.sockets()), pid.as_deref());
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n")
    }

    fn compare(&self, page: &Page, line: &str, shown: &[String], printed: &str) {
        let mut printed = printed.replace(&self.sockets(), SOCKETS).replace(FREE, ADDRESS);
        if let Some(address) = self.admin() {
            printed = printed.replace(&address, ADMIN);
        }
        if let Some(address) = self.secure() {
            printed = printed.replace(&address, SECURE);
        }
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
        let server = self.server.as_ref().filter(|server| server.line("URL").is_some())?;
        Some(server.address().to_string())
    }

    /// Returns the IP address with TLS of the server, if it has one.
    fn secure(&self) -> Option<String> {
        let mut words = self.server.as_ref()?.banner.split_whitespace();
        let url = words.find_map(|word| word.strip_prefix("https://"))?;
        Some(url.trim_end_matches('/').to_owned())
    }
}

impl Reader {
    /// Returns the IP address of the admin listener, if it has one.
    fn admin(&self) -> Option<String> {
        let url = self.server.as_ref()?.line("admin")?.strip_prefix("http://")?;
        Some(url.strip_suffix("/status").expect("the page").to_owned())
    }
}

/// Runs a command in a shell that finds the program. The server's process is `$PID`.
fn in_shell(folder: &TestFolder, line: &str, pid: Option<&str>) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_shearwater")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a PATH"));
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder.path());
    command.envs(pid.map(|pid| ("PID", pid)));
    command.env("PATH", path).env("TESTS", TESTS).output().expect("a shell")
}

#[test]
fn pages_work_as_shown_on_each_driver() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: there is no curl");
        return;
    }
    let mut pages = tasks();
    pages.push(Page::read(&Path::new(TESTS).join("clients.md")));
    for page in &pages {
        assert_eq!(page.untried(), Vec::<&str>::new(), "{}", page.name);
        let drivers = ["epoll", "kqueue", "uring"].into_iter();
        assert!(drivers.filter(|driver| Reader::new(driver).follow(page)).count() > 0, "no driver");
    }
}

/// The page shows standard output, standard error and then the exit code, unless it is 0. The folder is shown as `FOLDER`.
#[test]
fn commands_print_what_is_shown() {
    let page = Page::read(&Path::new(TESTS).join("commands.md"));
    let folder = TestFolder::new();
    let mut wrong = Vec::new();
    for step in &page.steps {
        match step {
            Step::File { name, text } => drop(folder.file(name, text)),
            Step::Command { line, shown } => {
                let Output { status, stdout, stderr } = in_shell(&folder, line, None);
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

/// The pages name keys as "`key` of `[table]`".
#[test]
fn pages_on_other_servers_name_keys_that_exist() {
    let reference = std::fs::read_to_string(Path::new(TASKS).join("../configuration.md")).expect("a page");
    for page in ["from-nginx.md", "from-caddy.md"] {
        let text = std::fs::read_to_string(Path::new(TASKS).join(page)).expect("a page");
        let mut count = 0;
        for (before, after) in text.match_indices("` of `[").map(|(at, _)| text.split_at(at)) {
            let key = before.rsplit('`').next().expect("a key");
            let table = after["` of `".len()..].split('`').next().expect("a table");
            let section = reference.split("\n## `").find(|section| section.starts_with(&format!("{table}`")));
            let section = section.unwrap_or_else(|| panic!("{page}: no {table}"));
            assert!(section.contains(&format!("\n| `{key}` |")), "{page}: {key} of {table}");
            count += 1;
        }
        assert!(count > 30, "{page}: {count}");
    }
}

#[test]
fn lists_every_page_in_the_index() {
    let index = std::fs::read_to_string(Path::new(TASKS).join("../README.md")).expect("an index");
    let names = tasks().into_iter().map(|page| page.name);
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

/// Commands that don't serve.
const COMMANDS: [&str; 12] = [
    "check",
    "completions",
    "config",
    "health",
    "help",
    "init",
    "man",
    "precompress",
    "reload",
    "top",
    "upgrade",
    "validate",
];

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

    /// Returns the configurations without a server, or without a request whose status is shown.
    fn untried(&self) -> Vec<&str> {
        let mut tried: Vec<(&str, bool, bool)> = Vec::new();
        for step in &self.steps {
            match (step, tried.last_mut()) {
                (Step::File { name, .. }, _) => tried.push((name, false, false)),
                (Step::Command { line, shown }, Some((_, has_server, has_status))) => {
                    *has_server |= arguments_of_server(line).is_some();
                    *has_status |= line.starts_with("curl ") && shown.iter().any(|line| is_status(line));
                }
                (Step::Command { .. }, None) => {}
            }
        }
        assert!(!tried.is_empty(), "{} has no configuration", self.name);
        let untried = tried.into_iter().filter(|&(_, has_server, has_status)| !(has_server && has_status));
        untried.map(|(name, ..)| name).collect()
    }
}

fn is_status(line: &str) -> bool {
    line.starts_with("HTTP/1.1 ")
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
fn finds_configurations_that_are_not_tried() {
    let [file, start, request] = [
        "```toml\n# a.toml\n```\n",
        "```console\n$ shearwater a.toml\n```\n",
        "```console\n$ curl -i x\nHTTP/1.1 200 OK\n```\n",
    ];
    for (blocks, untried) in [
        (&[file, start, request][..], &[][..]),
        (&[file, request], &["a.toml"]),
        (&[file, start], &["a.toml"]),
        (&[file, start, "```console\n$ curl -i x\n```\n"], &["a.toml"]),
        (&[file, start, file, start, request], &["a.toml"]),
    ] {
        assert_eq!(Page { name: String::new(), steps: steps(&blocks.concat()) }.untried(), untried);
    }
}

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

/// Replaces a date or a tag, which differ each time, by its kind.
fn form(line: &str) -> String {
    match line.split_once(": ") {
        Some((name @ ("Date" | "Last-Modified"), value)) if value.len() == 29 && value.ends_with(" GMT") => {
            format!("{name}: a time")
        }
        Some(("ETag", value)) => match value.split_once('"') {
            Some((weak, tag)) if tag.ends_with('"') => format!("ETag: {weak}\"tag\""),
            _ => line.to_owned(),
        },
        _ => line.to_owned(),
    }
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
