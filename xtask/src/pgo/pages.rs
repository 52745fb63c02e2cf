//! The files that are visited, and what is asked of them: whole, in part, again, by `HEAD`, coded; and what isn't there.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Error, Result};
use testkit::{Client, random};

use super::browsers::{BROWSERS, Browser};
use super::question::Question;

const HOST: &str = "site.test";

/// A file: its name, its length in bytes, the codings that lie beside it.
const FILES: [(&str, usize, &[&str]); 10] = [
    ("index.html", 1_024, &[]),
    ("about/index.html", 6_400, &["gzip"]),
    ("css/site.css", 9_000, &["br", "gzip"]),
    ("js/app.js", 40_000, &["br", "gzip"]),
    ("js/small.js", 300, &[]),
    ("img/logo.svg", 2_500, &["gzip"]),
    ("img/icon.png", 700, &[]),
    ("img/photo.jpg", 150_000, &[]),
    ("fonts/text.woff2", 25_000, &[]),
    ("data/list.json", 900, &[]),
];
/// The codings that a file may have, in the order in which they are sent, and the ends of their files' names.
const CODINGS: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

/// A written file.
#[derive(Debug)]
pub(super) struct Page {
    target: String,
    plain: Vec<u8>,
    coded: Vec<(&'static str, Vec<u8>)>,
}

/// Writes them below `root`.
pub(super) fn write(root: &Path, seed: u64) -> Result<Vec<Page>> {
    let mut random = random::part(seed, 1);
    let write = |name: &str, bytes: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, bytes)
    };
    let mut pages = Vec::new();
    for (name, length, codings) in FILES {
        let plain = random::bytes(&mut random, length);
        write(name, &plain)?;
        let mut coded = Vec::new();
        for (coding, end) in CODINGS.into_iter().filter(|(coding, _)| codings.contains(coding)) {
            // Nobody decodes it: it is compared as it is.
            let bytes = random::bytes(&mut random, length / 3);
            write(&format!("{name}.{end}"), &bytes)?;
            coded.push((coding, bytes));
        }
        let target = format!("/{}", name.strip_suffix("index.html").unwrap_or(name));
        pages.push(Page { target, plain, coded });
    }
    Ok(pages)
}

/// All that is asked, by each browser. Entity tags are learnt from the server.
pub(super) fn questions(pages: &[Page], server: SocketAddr) -> Result<Vec<Question>> {
    let mut questions = Vec::new();
    for browser in BROWSERS {
        for page in pages {
            questions.extend(page.questions(browser, server)?);
        }
        questions.extend(elsewhere(browser));
    }
    Ok(questions)
}

impl Page {
    /// What this browser is sent: the coding, and the bytes.
    fn sent(&self, browser: &Browser) -> (Option<&'static str>, &[u8]) {
        let coded = self.coded.iter().find(|(coding, _)| browser.takes(coding));
        coded.map_or((None, &self.plain), |(coding, bytes)| (Some(*coding), bytes))
    }

    fn questions(&self, browser: &Browser, server: SocketAddr) -> Result<Vec<Question>> {
        let (coding, bytes) = self.sent(browser);
        let target = &self.target;
        let ask = |method: &str, target: &str, more: &str, status, body: &[u8]| {
            Question::new(method, target, &browser.fields(HOST, more), status, body)
        };
        let mut get = ask("GET", target, "", 200, bytes);
        if let Some(coding) = coding {
            get = get.has("content-encoding", coding.to_owned());
        }
        let again = format!("If-None-Match: {}\r\n", etag(&get, server)?);
        let mut questions = vec![
            get.clone(),
            get,
            ask("GET", &format!("{target}?v=17637&utm_source=mail"), "", 200, bytes),
            ask("GET", target, "Cache-Control: no-cache\r\nPragma: no-cache\r\n", 200, bytes),
            ask("GET", target, "If-None-Match: \"of-another-day\"\r\n", 200, bytes),
            ask("GET", target, &again, 304, b""),
            ask("HEAD", target, "", 200, b"").has("content-length", bytes.len().to_string()),
        ];
        // A part of what is coded is a part of the coding: those files are asked for whole.
        if self.coded.is_empty() {
            let last = bytes.len() - 1;
            questions.push(
                ask("GET", target, "Range: bytes=100-\r\n", 206, &bytes[100..])
                    .has("content-range", format!("bytes 100-{last}/{}", bytes.len())),
            );
        }
        Ok(questions)
    }
}

fn etag(get: &Question, server: SocketAddr) -> Result<String> {
    let mut client = Client::connect(server)?;
    client.send(&get.request)?;
    let answer = client.response().map_err(|error| Error::msg(get.failed(&error)))?;
    get.judge(&answer).map_err(Error::msg)?;
    Ok(answer.header("etag").context("a file without an ETag")?.to_owned())
}

/// What is no file, and no way to ask for one.
fn elsewhere(browser: &Browser) -> Vec<Question> {
    let fields = browser.fields(HOST, "");
    let missing = |target| Question::new("GET", target, &fields, 404, b"Not Found\n");
    let posted = browser.fields(HOST, "Content-Type: text/plain\r\nContent-Length: 5\r\n");
    vec![
        missing("/favicon.ico"),
        missing("/apple-touch-icon.png"),
        missing("/.env"),
        missing("/wp-login.php?redirect_to=%2Fadmin"),
        Question::new("HEAD", "/robots.txt", &fields, 404, b""),
        Question::with_body("POST /data/list.json", &posted, b"hello", 405, b"Method Not Allowed\n"),
    ]
}
