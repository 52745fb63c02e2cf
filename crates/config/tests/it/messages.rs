//! Messages about configurations with errors: `tests/messages.md` holds them as cases.

use shearwater_config::{Config, Diagnostics, Finding, Findings};
use testkit::check_messages;

use crate::{parse, right};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.md");

/// Returns the messages of a configuration, with the file named `site.toml`.
fn messages(text: &str) -> String {
    let Err(errors) = parse(text) else { panic!("no error in:\n{text}") };
    assert_eq!(errors.left_out, 0);
    errors.to_string().replace("/etc/shearwater/", "")
}

#[test]
fn reports_errors_as_documented() {
    let count = check_messages(CASES, |toml| messages(toml.trim_end_matches('\n')));
    assert!(count > 65, "{count} cases");
}

#[test]
fn limits_the_path_of_a_socket() {
    let long = format!("[[listen]]\naddress = \"unix:/{}\"", "x".repeat(103));
    assert!(
        messages(&long).starts_with("error: absolute path of the socket is longer than 103 bytes\n"),
        "{long}"
    );
    right(&long.replace("/x", "/"));
}

#[test]
fn never_prints_the_value_of_a_variable() {
    for text in [
        "[server]\ndriver = \"${SECRET}\"",
        "[timeouts]\nhead = \"${SECRET}\"",
        "[limits]\nhead_bytes_max = \"${SECRET}\"",
        "[[listen]]\naddress = \"${SECRET}\"",
        "[[listen]]\naddress = \"unix:x\"\nmode = \"${SECRET}\"",
        "[[listen]]\naddress = \"unix:/${SECRET}\"\n[[listen]]\naddress = \"unix:/${SECRET}\"",
        "[[site]]\nroot = \".\"\nmime = { x = \"${SECRET}\" }",
        "[[site]]\nroot = \".\"\nhosts = [\"hunter2\", \"${SECRET}\"]",
    ] {
        // A line that has the same text without a variable is quoted.
        let errors = messages(text).replace("[\"hunter2\",", "");
        assert!(!errors.contains("hunter2") && errors.contains("${SECRET}"), "{errors}");
    }
}

#[test]
fn locates_syntax_errors() {
    let errors = parse("\u{0}").expect_err("no TOML");
    assert_eq!((errors.problems[0].line, errors.problems[0].column), (1, 1));
    let several = parse("a = \nc = 1\nc = 2\n[b").expect_err("three errors");
    assert_eq!(several.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [1, 3, 4]);
}

fn with_findings(text: &str, keys: &[&str], is_error: bool) -> Result<String, Diagnostics> {
    let finding = |key: &&str| Finding {
        key: (*key).to_owned(),
        message: format!("bad {key}"),
        help: Some("not \"public\"".to_owned()),
    };
    let list: Vec<Finding> = keys.iter().map(finding).collect();
    let check = |_: &Config| match is_error {
        true => Findings { errors: list, warnings: Vec::new() },
        false => Findings { errors: Vec::new(), warnings: list },
    };
    let environment = |_: &str| Some("public".to_owned());
    Config::parse("site.toml".as_ref(), text, environment, check).map(|(_, warnings)| warnings.to_string())
}

#[test]
fn locates_findings_of_the_caller() {
    let text =
        "[[site]]\nroot = \"none\"\nmime = { \"a.b\" = \"x/y\" }\n[[site.route]]\npath = \"/${DIR}\"\n";
    assert_eq!(
        with_findings(text, &["site[0].root"], false).expect("warnings"),
        "warning: bad site[0].root\n --> site.toml:2:8\n  |\n2 | root = \"none\"\n  |        ^^^^^^ site[0].root\nhelp: not \"public\"\n"
    );
    for (key, place, has_help) in [
        ("site[0].mime.a.b", (3, 18), true),
        ("site[0].root[7]", (2, 8), true),
        ("site[0].route[0].root", (4, 1), true),
        ("site[0].route[0].path", (5, 8), false),
        ("site[0].index", (1, 1), true),
        ("server.workers", (1, 1), true),
    ] {
        let errors = with_findings(text, &[key], true).expect_err("errors");
        let problem = &errors.problems[0];
        assert_eq!(((problem.line, problem.column), problem.help.is_some()), (place, has_help), "{key}");
    }
}

#[test]
fn leaves_out_findings_that_follow_from_errors() {
    let text = "[[site]]\nroot = 1\nhosts = [2]\n[[site]]\nroot = \".\"\n";
    let keys =
        ["site[0].hosts[0]", "site[0].root", "site[0]", "site[0].error_pages.404", "site[0].spa", "site[1]"];
    let errors = with_findings(text, &keys, true).expect_err("errors");
    let keys: Vec<&str> = errors.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["site[0].spa", "site[0].root", "site[0].hosts[0]", "site[1]"]);
}
