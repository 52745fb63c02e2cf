//! A page of the documentation, taken apart: its configurations and its commands, in their order.

use std::path::Path;

/// Before each command of a `console` block.
const PROMPT: &str = "$ ";

/// A step of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A `toml` block, whose first line is a comment with its file's name.
    Configuration { file: String, text: String },
    /// A command that starts the server, with what it is shown to say at its start.
    Start { arguments: Vec<String>, shown: Vec<String> },
    /// Any other command, with what it is shown to print.
    Command { line: String, shown: Vec<String> },
}

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a page");
        Self { steps: steps(&text), name }
    }

    /// What keeps a page from being tried: a configuration that no server is started with, or a server that nothing is asked of with its status shown.
    pub(crate) fn gaps(&self) -> Vec<String> {
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
