//! Limits of `limits.rs`, each reached.

use shearwater_config::limits::{
    CONFIG_BYTES_MAX, KEY_CHARS_MAX, PROBLEMS_MAX, QUOTED_CHARS_MAX, RECOVERED_BYTES_MAX, VALUE_BYTES_MAX,
};
use shearwater_config::{Config, Findings};

use crate::parse;

#[test]
fn reports_50_problems_and_counts_the_rest() {
    let text: String = (0..PROBLEMS_MAX + 7).map(|number| format!("zzzzzz{number} = 1\n")).collect();
    let errors = parse(&text).expect_err("unknown keys");
    assert_eq!((errors.problems.len(), errors.left_out), (PROBLEMS_MAX, 7));
    assert!(errors.to_string().ends_with("\nnote: 7 more problems are not shown\n"), "{errors}");
    let text = "a = \n".repeat(PROBLEMS_MAX + 7);
    let errors = parse(&text).expect_err("no TOML");
    assert!(errors.problems.len() == PROBLEMS_MAX && errors.left_out >= 7, "{errors}");
}

#[test]
fn limits_the_size_of_a_file() {
    let comment = |len: usize| format!("#{}", "x".repeat(len - 1));
    assert!(parse(&comment(CONFIG_BYTES_MAX)).is_ok());
    let errors = parse(&comment(CONFIG_BYTES_MAX + 1)).expect_err("too long");
    assert_eq!(errors.problems[0].message, format!("configuration is larger than {CONFIG_BYTES_MAX} bytes"));
}

#[test]
fn reports_one_syntax_error_of_a_large_file() {
    let faults = "a = \nb = \n";
    assert!(parse(faults).expect_err("two faults").problems.len() >= 2);
    let long = format!("{faults}#{}", "x".repeat(RECOVERED_BYTES_MAX));
    assert_eq!(parse(&long).expect_err("two faults").problems.len(), 1);
}

#[test]
fn limits_the_size_of_a_string_with_its_variables() {
    let text = |len: usize| {
        let route = "[[site.route]]\npath = \"/x\"\nrespond.body = \"${LONG}\"";
        let text = format!("[[site]]\nroot = \".\"\n{route}");
        Config::parse("site.toml".as_ref(), &text, |_| Some("x".repeat(len)), |_| Findings::default())
    };
    assert!(text(VALUE_BYTES_MAX).is_ok());
    let errors = text(VALUE_BYTES_MAX + 1).expect_err("too long");
    assert_eq!(errors.problems[0].message, format!("string is longer than {VALUE_BYTES_MAX} bytes"));
    let many = format!("[[site]]\nroot = \"{}\"", "${LONG}".repeat(1000));
    let errors =
        Config::parse("site.toml".as_ref(), &many, |_| Some("x".repeat(100_000)), |_| Findings::default())
            .expect_err("too long");
    assert_eq!(errors.problems[0].message, format!("string is longer than {VALUE_BYTES_MAX} bytes"));
}

#[test]
fn shortens_long_names_and_lines() {
    let name = "n".repeat(10_000);
    let errors =
        parse(&format!("[[site]]\nroot = \".\"\nmime = {{ {name} = \"none\" }}")).expect_err("no media type");
    assert_eq!(errors.problems[0].key.chars().count(), KEY_CHARS_MAX);
    let shown = errors.to_string();
    assert!(shown.lines().all(|line| line.chars().count() <= QUOTED_CHARS_MAX + KEY_CHARS_MAX), "{shown}");
}

#[test]
fn limits_nesting() {
    for text in
        ["[".repeat(20_000), format!("a = {}", "[".repeat(20_000)), format!("a = {}", "{a=".repeat(20_000))]
    {
        assert!(parse(&text).is_err());
    }
}
