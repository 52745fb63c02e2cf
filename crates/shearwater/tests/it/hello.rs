//! The smallest program: at most ten lines, and identical wherever it is shown.

const EXAMPLE: &str = include_str!("../../examples/hello.rs");
const LIBRARY: &str = include_str!("../../src/lib.rs");
const README: &str = include_str!("../../../../README.md");

/// Returns the program without its comments.
fn program() -> String {
    let code = EXAMPLE.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn it_has_ten_lines_at_most() {
    let lines = EXAMPLE.lines().count();
    assert!((1..=10).contains(&lines), "{lines} lines");
    assert!(program().contains("fn main()"));
}

#[test]
fn the_documentation_and_the_readme_show_the_very_program() {
    // As documentation it is compiled by every run of the tests.
    let shown: String =
        program().lines().map(|line| format!("//! {line}").trim_end().to_owned() + "\n").collect();
    assert!(LIBRARY.contains(&format!("//! ```no_run\n{shown}//! ```\n")), "lib.rs shows another program");
    assert!(README.contains(&format!("```rust\n{}```\n", program())), "the README shows another program");
}
