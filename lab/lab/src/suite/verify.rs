//! TechEmpower's rules for the responses of its tests: status, headers, bodies, and that updates reach the database.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Response;

use super::phases::unmeasured;
use crate::bench::{MeasuredRound, exchange};

/// Time in which a `Date` must change.
const DATE_CHANGES_WITHIN: Duration = Duration::from_secs(3);
/// Largest id and number of the table `world`.
const WORLD_MAX: u64 = 10_000;
/// Rows of a request by its text.
const COUNTS: [(&str, usize); 5] = [("2", 2), ("0", 1), ("foo", 1), ("501", 500), ("", 1)];
/// Requests of 500 rows each after which updated rows have been read again with certainty.
const READS: usize = 20;
const FORTUNES: &str = include_str!("../../../../demo/src/fortunes.txt");
const ADDED_FORTUNE: &str = "Additional fortune added at request time.";
const JSON_TYPES: &[&str] = &["application/json", "application/json; charset=utf-8"];
const TEXT_TYPES: &[&str] = &["text/plain", "text/plain; charset=utf-8"];

type Check = fn(SocketAddr) -> Result<(), String>;
const CHECKS: [(&str, Check); 7] = [
    ("rules of plaintext", plaintext),
    ("rules of json", json_message),
    ("rules of db", |address| world(&get_json(address, "/db")?).map(drop)),
    ("rules of queries", |address| clamps(address, "/queries")),
    ("rules of updates", updates),
    ("rules of fortunes", fortunes),
    ("rules of the date", date_changes),
];

/// Checks a server by its URL and prints the result of each rule. Returns true if it keeps all.
pub(crate) fn run(url: &str) -> Result<bool, String> {
    let wrong =
        |why: &str| format!("`{url}`: {why}\nhelp: expected http://HOST:PORT, as in http://127.0.0.1:3000");
    let host = url.strip_prefix("http://").ok_or_else(|| wrong("the URL must begin with http://"))?;
    let host = host.trim_end_matches('/');
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let mut addresses = host.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
    let address = addresses.next().ok_or_else(|| wrong("the name has no address"))?;
    let rows = rows(url, &round(address));
    rows.iter().for_each(|row| println!("{}: {}", row["name"], row["verdict"]));
    Ok(rows.iter().all(|row| row["verdict"] == "passed"))
}

/// Checks a server as a phase: its details are rules, each with the reason for which it is broken.
pub(super) fn round(address: SocketAddr) -> MeasuredRound {
    let details = CHECKS.iter().map(|(name, check)| json!([name, check(address).err()])).collect();
    MeasuredRound { details, ..MeasuredRound::default() }
}

/// Returns the results as phases, one a rule.
pub(super) fn rows(server: &str, round: &MeasuredRound) -> Vec<Value> {
    let row = |result: &Value| {
        let mut row = unmeasured(server, result[0].as_str().unwrap_or_default(), "");
        row["verdict"] =
            json!(result[1].as_str().map_or("passed".to_owned(), |why| format!("FAILED: {why}")));
        row
    };
    let failed = json!(["start", round.faults.first()]);
    round.details.as_array().map_or_else(|| vec![row(&failed)], |results| results.iter().map(row).collect())
}

fn get(address: SocketAddr, target: &str) -> Result<Response, String> {
    exchange(address, &format!("GET {target} HTTP/1.1\r\nHost: tfb-server\r\nConnection: keep-alive\r\n\r\n"))
}

/// Checks the status and the headers that every test needs.
fn check_head(response: &Response, types: &[&str]) -> Result<(), String> {
    if response.status() != 200 {
        return Err(format!("status {}", response.status()));
    }
    let found = response.header("content-type").unwrap_or("missing");
    if !types.iter().any(|wanted| wanted.eq_ignore_ascii_case(found)) {
        return Err(format!("Content-Type is {found}, expected {}", types.join(" or ")));
    }
    if let Some(name) = ["Server", "Date"].into_iter().find(|name| response.header(name).is_none()) {
        return Err(format!("no header {name}"));
    }
    let framing = ["content-length", "transfer-encoding"].map(|name| response.header(name).is_some());
    if framing == [false, false] {
        Err("neither Content-Length nor Transfer-Encoding".to_owned())
    } else {
        Ok(())
    }
}

fn plaintext(address: SocketAddr) -> Result<(), String> {
    let response = get(address, "/plaintext")?;
    check_head(&response, TEXT_TYPES)?;
    let body = response.text();
    if body == "Hello, World!" { Ok(()) } else { Err(format!("the body is {body:?}")) }
}

fn get_json(address: SocketAddr, target: &str) -> Result<Value, String> {
    let response = get(address, target)?;
    check_head(&response, JSON_TYPES).map_err(|why| format!("{target}: {why}"))?;
    serde_json::from_slice(&response.body).map_err(|error| format!("{target}: no JSON: {error}"))
}

fn json_message(address: SocketAddr) -> Result<(), String> {
    let body = get_json(address, "/json")?;
    if body == json!({ "message": "Hello, World!" }) { Ok(()) } else { Err(format!("the body is {body}")) }
}

/// Parses a row as its id and number.
fn world(row: &Value) -> Result<(u64, u64), String> {
    let field = |name: &str| row[name].as_u64().filter(|value| (1..=WORLD_MAX).contains(value));
    let is_whole = row.as_object().is_some_and(|fields| fields.len() == 2);
    let row_of = field("id").zip(field("randomNumber")).filter(|_| is_whole);
    row_of.ok_or_else(|| format!("{row}: expected id and randomNumber, each from 1 to {WORLD_MAX}"))
}

fn worlds(address: SocketAddr, target: &str, expected: usize) -> Result<Vec<(u64, u64)>, String> {
    let body = get_json(address, target)?;
    let rows = body.as_array().ok_or_else(|| format!("{target}: no array"))?;
    if rows.len() != expected {
        return Err(format!("{target}: {} rows, expected {expected}", rows.len()));
    }
    rows.iter().map(world).collect()
}

fn clamps(address: SocketAddr, path: &str) -> Result<(), String> {
    worlds(address, path, 1)?;
    COUNTS
        .iter()
        .try_for_each(|(text, rows)| worlds(address, &format!("{path}?queries={text}"), *rows).map(drop))
}

/// Checks that rows which were read later have the numbers that they were updated to.
fn updates(address: SocketAddr) -> Result<(), String> {
    clamps(address, "/updates")?;
    let updated: HashMap<u64, u64> = worlds(address, "/updates?queries=500", 500)?.into_iter().collect();
    let mut found = 0;
    for _ in 0..READS {
        for (id, number) in worlds(address, "/queries?queries=500", 500)? {
            match updated.get(&id) {
                Some(wanted) if *wanted != number => {
                    return Err(format!(
                        "row {id} has {number} in the database, and was updated to {wanted}"
                    ));
                }
                updated => found += usize::from(updated.is_some()),
            }
        }
    }
    if found > 0 { Ok(()) } else { Err("no updated row was found in the database".to_owned()) }
}

fn fortunes(address: SocketAddr) -> Result<(), String> {
    let response = get(address, "/fortunes")?;
    check_head(&response, &["text/html; charset=utf-8"])?;
    check_fortunes(&response.text())
}

/// Checks that all messages are there, sorted and escaped.
fn check_fortunes(page: &str) -> Result<(), String> {
    if page.contains("<script>") {
        return Err("a message is not escaped".to_owned());
    }
    let cells: Vec<&str> =
        page.split("<td>").skip(1).map(|cell| cell.split("</td>").next().unwrap_or(cell)).collect();
    let messages: Vec<String> =
        cells.chunks(2).map(|row| unescape(row.last().copied().unwrap_or_default())).collect();
    let mut expected: Vec<&str> = FORTUNES.lines().chain([ADDED_FORTUNE]).collect();
    expected.sort_unstable();
    if messages.len() != expected.len() {
        return Err(format!("{} rows, expected {}", messages.len(), expected.len()));
    }
    let mut pairs = messages.iter().zip(&expected);
    let wrong = pairs.find(|(message, expected)| message != expected);
    wrong.map_or(Ok(()), |(message, expected)| Err(format!("{message:?} where {expected:?} is expected")))
}

fn unescape(text: &str) -> String {
    let names = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    names.iter().fold(text.to_owned(), |text, (name, letter)| text.replace(name, letter))
}

/// Checks that the date is not frozen.
fn date_changes(address: SocketAddr) -> Result<(), String> {
    let date = || -> Result<String, String> {
        let date = get(address, "/plaintext")?.header("date").unwrap_or_default().to_owned();
        let is_date = date.len() == "Mon, 23 Nov 2026 12:00:00 GMT".len() && date.ends_with(" GMT");
        if is_date { Ok(date) } else { Err(format!("{date:?} is no date")) }
    };
    let (first, deadline) = (date()?, Instant::now() + DATE_CHANGES_WITHIN);
    while Instant::now() < deadline {
        if date()? != first {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(format!("it is {first} for {DATE_CHANGES_WITHIN:?}"))
}

#[cfg(test)]
mod tests {
    use testkit::Head;

    use super::*;

    fn response(head: &str, body: &str) -> Response {
        let head = Head::parse(head.replace('\n', "\r\n").as_bytes()).expect("a head");
        Response { head, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn a_head_needs_all_headers() {
        let whole = "HTTP/1.1 200 OK\nServer: x\nDate: x\nContent-Type: text/plain; charset=UTF-8\nContent-Length: 0\n\n";
        let check = |head: &str| check_head(&response(head, ""), TEXT_TYPES);
        assert_eq!(check(whole), Ok(()));
        for (line, why) in [
            ("Server: x\n", "no header Server"),
            ("Date: x\n", "no header Date"),
            ("Content-Type: text/plain; charset=UTF-8\n", "Content-Type is missing, expected text/plain"),
            ("Content-Length: 0\n", "neither Content-Length nor"),
        ] {
            assert!(check(&whole.replace(line, "")).is_err_and(|error| error.contains(why)), "{line}");
        }
        assert!(check(&whole.replace("200 OK", "404 Not Found")).is_err_and(|error| error == "status 404"));
        assert!(check(&whole.replace("text/plain", "text/html")).is_err());
    }

    #[test]
    fn a_row_has_an_id_and_a_number_in_range() {
        assert_eq!(world(&json!({ "id": 1, "randomNumber": 10_000 })), Ok((1, 10_000)));
        for wrong in [
            json!({ "id": 0, "randomNumber": 1 }),
            json!({ "id": 1, "randomNumber": 10_001 }),
            json!({ "id": "1", "randomNumber": 1 }),
            json!({ "id": 1 }),
            json!({ "id": 1, "randomNumber": 1, "more": 1 }),
            json!([{ "id": 1, "randomNumber": 1 }]),
        ] {
            assert!(world(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fortunes_must_be_sorted_escaped_and_complete() {
        let page = |messages: &[String]| -> String {
            let rows: String =
                messages.iter().map(|it| format!("<tr><td>1</td><td>{it}</td></tr>")).collect();
            format!("<!DOCTYPE html><table><tr><th>id</th><th>message</th></tr>{rows}</table>")
        };
        let mut messages: Vec<String> = FORTUNES.lines().chain([ADDED_FORTUNE]).map(str::to_owned).collect();
        messages.sort();
        let escaped: Vec<String> =
            messages.iter().map(|it| it.replace('<', "&lt;").replace('"', "&quot;")).collect();
        assert_eq!(check_fortunes(&page(&escaped)), Ok(()));
        assert!(check_fortunes(&page(&messages)).is_err_and(|why| why.contains("not escaped")));
        assert!(check_fortunes(&page(&escaped[1..])).is_err_and(|why| why.contains("12 rows")));
        let swapped: Vec<String> = escaped.iter().rev().cloned().collect();
        assert!(check_fortunes(&page(&swapped)).is_err_and(|why| why.contains("is expected")));
    }
}
