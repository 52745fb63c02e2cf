//! Messages about configurations with errors: `tests/messages.md` holds them as cases.

use std::path::Path;

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
    let cases = std::fs::read_to_string(CASES).expect("the cases");
    let mut written = String::new();
    let mut rest = cases.as_str();
    let mut count = 0;
    while let Some((before, toml)) = rest.split_once("```toml\n") {
        let (toml, after) = toml.split_once("```\n").expect("the end of a configuration");
        let (between, text) = after.split_once("```text\n").expect("messages after a configuration");
        let (expected, after) = text.split_once("```\n").expect("the end of messages");
        let found = messages(toml.trim_end_matches('\n'));
        if std::env::var_os("BLESS").is_none() {
            assert_eq!(found, expected, "{toml}");
        }
        written.push_str(&format!("{before}```toml\n{toml}```\n{between}```text\n{found}```\n"));
        rest = after;
        count += 1;
    }
    assert!(count > 80, "{count} cases");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(Path::new(CASES), written + rest).expect("the cases are written");
    }
}

#[test]
fn suggests_a_prefix_for_paths_with_parameters() {
    for (path, near) in [
        ("/user/{id}", "/user/*"),
        ("/user/:id/posts", "/user/*"),
        ("/<name>", "/*"),
        ("/files/{*rest}", "/files/*"),
        ("/a/{}/*", "/a/*"),
        ("/{id}.html", "/*"),
    ] {
        for text in [
            format!("[[site]]\nroot = \".\"\n[[site.route]]\npath = \"{path}\""),
            format!("[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"{path}\"\nto = \"/\""),
        ] {
            let found = messages(&text);
            assert!(found.starts_with("error: paths can't have parameters\n --> site.toml:4:8\n"), "{found}");
            assert!(
                found.ends_with(&format!("help: {near:?} matches everything beneath it\n")),
                "{path}: {found}"
            );
        }
    }
    for path in ["/a:b", "/%7Bid%7D", "/:", "/<", "/a}b{c"] {
        right(&format!("[[site]]\nroot = \".\"\n[[site.route]]\npath = \"{path}\""));
    }
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
    let site = "[[site]]\nroot = \".\"\n";
    for text in [
        "[[site]]\nhosts = [\"${SECRET} x\"]\nroot = \".\"",
        "[server]\ndriver = \"${SECRET}\"",
        "[timeouts]\nhead = \"${SECRET}\"",
        "[[listen]]\naddress = \"${SECRET}\"",
        "[[listen]]\naddress = \"unix:x\"\nmode = \"${SECRET}\"",
        &format!("{site}headers = {{ set = {{ A = \"${{SECRET}} \" }} }}"),
        &format!("{site}[[site.redirect]]\nfrom = \"/a\"\nto = \"${{SECRET}}\""),
        &format!("{site}[[site.route]]\npath = \"${{SECRET}}\""),
        &format!("{site}mime = {{ x = \"${{SECRET}}\" }}"),
        &format!("{site}[[site.route]]\npath = \"/hunter2/*\"\n[[site.route]]\npath = \"/${{SECRET}}/*\""),
        "[[site]]\n[[site.redirect]]\nfrom = \"/hunter2\"\nto = \"/a\"\n[[site.redirect]]\nfrom = \"/${SECRET}\"\nto = \"/a\"",
        &format!("{site}hosts = [\"hunter2\", \"${{SECRET}}\"]"),
        "[[listen]]\naddress = \"unix:/${SECRET}\"\n[[listen]]\naddress = \"unix:/${SECRET}\"",
        &format!("{site}headers = {{ set = {{ HUNTER2 = \"\" }}, remove = [\"a\", \"${{SECRET}}\"] }}"),
    ] {
        // A line that has the same text without a variable is quoted.
        let errors = messages(text).replace("= \"/hunter2", "").replace("[\"hunter2\",", "");
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

#[test]
fn locates_findings_of_the_caller() {
    use shearwater_config::{Finding, Severity};
    let config = right("[[site]]\nroot = \"none\"\n[[site.route]]\npath = \"/a\"\n");
    let find = |severity, key: &str| {
        let (key, message) = (key.to_owned(), "no such folder".to_owned());
        config.diagnostics(severity, vec![Finding { key, message, help: None }])
    };
    assert_eq!(
        find(Severity::Warning, "site[0].root").to_string(),
        "warning: no such folder\n --> /etc/shearwater/site.toml:2:8\n  |\n2 | root = \"none\"\n  |        ^^^^^^ site[0].root\n"
    );
    for (key, line) in [("site[0].route[0].root", 3), ("server.workers", 1), ("site[0].index", 1)] {
        assert_eq!(find(Severity::Error, key).problems[0].line, line, "{key}");
    }
}
