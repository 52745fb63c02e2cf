//! The examples: length, behaviour, and the smallest program wherever it is shown.

use shearwater::App;

use crate::served::{Served, drivers, here};

#[path = "../../examples/async_handlers.rs"]
#[expect(dead_code, reason = "its start is for the program")]
mod async_handlers;

#[path = "../../examples/coroutine_handlers.rs"]
#[expect(dead_code, reason = "its start is for the program")]
mod coroutine_handlers;

const TEXTS: [&str; 2] =
    [include_str!("../../examples/async_handlers.rs"), include_str!("../../examples/coroutine_handlers.rs")];

/// A body of many lines: more than a worker buffers.
const LINES: usize = 50_000;

#[test]
fn examples_have_at_most_sixty_lines() {
    for text in TEXTS {
        assert!((1..=60).contains(&text.lines().count()));
    }
}

#[test]
fn examples_respond_as_documented() {
    for driver in drivers() {
        for make in [async_handlers::app as fn() -> App, coroutine_handlers::app] {
            let served = Served::of(here().driver(driver), make());
            let mut client = served.connect();
            assert_eq!(client.get("/slow").text(), "slow\n");
            assert_eq!(client.get("/primes").text(), "9592 primes below 100000\n");
            let body = "a line\n".repeat(LINES);
            assert_eq!(
                client.send_body("POST", "/lines", &[], body.as_bytes()).text(),
                format!("{LINES} lines\n")
            );
            client.ask("GET", "/ticks", &[]);
            let head = client.head();
            assert_eq!(head.field("Content-Type"), Some("text/event-stream"));
            for tick in 1..=3 {
                assert_eq!(client.data(), format!("data: {tick}\n\n").as_bytes());
            }
            assert_eq!(client.data(), b"");
            assert_eq!(served.stop().responses_5xx, 0);
        }
    }
}

const EXAMPLE: &str = include_str!("../../examples/hello.rs");
const LIBRARY: &str = include_str!("../../src/lib.rs");
const README: &str = include_str!("../../../../README.md");

/// Returns the program without its comments.
fn program() -> String {
    let code = EXAMPLE.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn smallest_program_has_at_most_ten_lines() {
    let lines = EXAMPLE.lines().count();
    assert!((1..=10).contains(&lines), "{lines} lines");
    assert!(program().contains("fn main()"));
}

#[test]
fn documentation_and_readme_show_the_smallest_program() {
    // As documentation it is compiled by every run of the tests.
    let shown: String =
        program().lines().map(|line| format!("//! {line}").trim_end().to_owned() + "\n").collect();
    assert!(LIBRARY.contains(&format!("//! ```no_run\n{shown}//! ```\n")), "lib.rs shows another program");
    assert!(README.contains(&format!("```rust\n{}```\n", program())), "the README shows another program");
}
