//! What is asked of handlers: each kind of them, with bodies of many lengths, and what has no route.

use testkit::random;

use super::browsers::{BROWSERS, Browser};
use super::question::Question;

const HOST: &str = "app.test";
const TEXT: &[u8] = b"Hello, World!";
const JSON: &[u8] = br#"{"message":"Hello, World!"}"#;
/// Lengths of bodies, bytes.
const BODIES: [usize; 5] = [1, 40, 700, 5_000, 50_000];
/// Routes of the example with handlers of each kind, which answer with the same text.
const KINDS: [&str; 6] = ["/plaintext", "/fast-text", "/asynctext", "/asyncturn", "/coroutine", "/corouturn"];
/// Routes of its handlers that send a body back.
const TAKERS: [&str; 2] = ["/post-body", "/take-body"];

/// Of the example with a handler of each kind.
pub(super) fn of_each_kind(seed: u64) -> Vec<Question> {
    let mut random = random::part(seed, 2);
    let mut questions = Vec::new();
    for browser in BROWSERS {
        for target in KINDS {
            questions.extend(of_text(browser, target));
        }
        questions.push(Question::new("GET", "/json-text", &browser.fields(HOST, ""), 200, JSON));
        for target in TAKERS {
            for length in BODIES {
                questions.extend(posts(browser, target, &random::bytes(&mut random, length)));
            }
        }
        questions.extend(elsewhere(browser));
    }
    questions
}

/// Of the example with many routes.
pub(super) fn of_a_router() -> Vec<Question> {
    let mut questions = Vec::new();
    for browser in BROWSERS {
        for item in (0..64).step_by(5) {
            questions.extend(of_text(browser, &format!("/item/{item:02}")));
        }
        questions.extend(of_text(browser, "/plaintext"));
        questions.push(Question::new("GET", "/json", &browser.fields(HOST, ""), 200, JSON));
        questions.extend(elsewhere(browser));
    }
    questions
}

fn of_text(browser: &Browser, target: &str) -> [Question; 4] {
    let fields = browser.fields(HOST, "");
    let get = |target: &str| Question::new("GET", target, &fields, 200, TEXT);
    let head = Question::new("HEAD", target, &fields, 200, b"");
    [get(target), get(target), get(&format!("{target}?q=a+b&page=2")), head]
}

fn posts(browser: &Browser, target: &str, body: &[u8]) -> [Question; 2] {
    let post = |more: &str, sent: &[u8]| {
        Question::with_body(&format!("POST {target}"), &browser.fields(HOST, more), sent, 200, body)
    };
    let chunked = [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    [
        post(&format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n", body.len()), body),
        post("Transfer-Encoding: chunked\r\n", &chunked),
    ]
}

fn elsewhere(browser: &Browser) -> [Question; 2] {
    let fields = browser.fields(HOST, "");
    [
        Question::new("GET", "/nowhere/at/all", &fields, 404, b"Not Found\n"),
        Question::new("DELETE", "/plaintext", &fields, 405, b"Method Not Allowed\n"),
    ]
}
