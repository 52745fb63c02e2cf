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

fn ensure(is_right: bool, why: String) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(why) }
}

/// Checks the status and the headers that every test needs.
fn check_head(response: &Response, media_type: &str) -> Result<(), String> {
    ensure(response.status() == 200, format!("status {}", response.status()))?;
    let [found, wanted] = [response.header("content-type").unwrap_or("missing"), media_type];
    let with_charset = format!("{wanted}; charset=utf-8");
    let is_wanted = [wanted, &with_charset].iter().any(|wanted| wanted.eq_ignore_ascii_case(found));
    ensure(is_wanted, format!("Content-Type is {found}, expected {wanted}"))?;
    ["Server", "Date"]
        .into_iter()
        .try_for_each(|name| ensure(response.header(name).is_some(), format!("no header {name}")))?;
    let is_framed = ["content-length", "transfer-encoding"].iter().any(|it| response.header(it).is_some());
    ensure(is_framed, "neither Content-Length nor Transfer-Encoding".to_owned())
}

fn plaintext(address: SocketAddr) -> Result<(), String> {
    let response = get(address, "/plaintext")?;
    check_head(&response, "text/plain")?;
    ensure(response.body == b"Hello, World!", format!("the body is {:?}", response.text()))
}

fn get_json(address: SocketAddr, target: &str) -> Result<Value, String> {
    let response = get(address, target)?;
    check_head(&response, "application/json").map_err(|why| format!("{target}: {why}"))?;
    serde_json::from_slice(&response.body).map_err(|error| format!("{target}: no JSON: {error}"))
}

fn json_message(address: SocketAddr) -> Result<(), String> {
    let body = get_json(address, "/json")?;
    ensure(body == json!({ "message": "Hello, World!" }), format!("the body is {body}"))
}

/// Parses a row as its id and number.
fn world(row: &Value) -> Result<(u64, u64), String> {
    let field = |name: &str| row[name].as_u64().filter(|value| (1..=WORLD_MAX).contains(value));
    let is_whole = row.as_object().is_some_and(|fields| fields.len() == 2);
    let found = field("id").zip(field("randomNumber")).filter(|_| is_whole);
    found.ok_or_else(|| format!("{row}: expected id and randomNumber, each from 1 to {WORLD_MAX}"))
}

fn worlds(address: SocketAddr, target: &str, expected: usize) -> Result<Vec<(u64, u64)>, String> {
    let body = get_json(address, target)?;
    let rows = body.as_array().ok_or_else(|| format!("{target}: no array"))?;
    ensure(rows.len() == expected, format!("{target}: {} rows, expected {expected}", rows.len()))?;
    rows.iter().map(world).collect()
}

fn clamps(address: SocketAddr, path: &str) -> Result<(), String> {
    worlds(address, path, 1)?;
    let check = |(text, rows): &(_, _)| worlds(address, &format!("{path}?queries={text}"), *rows).map(drop);
    COUNTS.iter().try_for_each(check)
}

/// Checks that rows which are read later have the numbers that they were updated to.
fn updates(address: SocketAddr) -> Result<(), String> {
    clamps(address, "/updates")?;
    let updated: HashMap<u64, u64> = worlds(address, "/updates?queries=500", 500)?.into_iter().collect();
    let mut found = 0;
    for _ in 0..READS {
        for (id, number) in worlds(address, "/queries?queries=500", 500)? {
            let Some(wanted) = updated.get(&id) else { continue };
            ensure(number == *wanted, format!("row {id} is {number} in the database, updated to {wanted}"))?;
            found += 1;
        }
    }
    ensure(found > 0, "no updated row was found in the database".to_owned())
}

fn fortunes(address: SocketAddr) -> Result<(), String> {
    let response = get(address, "/fortunes")?;
    check_head(&response, "text/html; charset=utf-8")?;
    check_fortunes(&response.text())
}

/// Checks that all messages are there, sorted and escaped.
fn check_fortunes(page: &str) -> Result<(), String> {
    ensure(!page.contains("<script>"), "a message is not escaped".to_owned())?;
    let cells = page.split("<td>").skip(1).map(|cell| cell.split("</td>").next().unwrap_or(cell));
    // Each row has an id and a message.
    let messages: Vec<String> = cells.skip(1).step_by(2).map(unescape).collect();
    let mut expected: Vec<&str> = FORTUNES.lines().chain([ADDED_FORTUNE]).collect();
    expected.sort_unstable();
    ensure(messages == expected, format!("messages are {messages:?}, expected {expected:?}"))
}

fn unescape(text: &str) -> String {
    let entities = "&lt; < &gt; > &quot; \" &#34; \" &#39; ' &#x27; ' &amp; &".split(' ').collect::<Vec<_>>();
    entities.chunks(2).fold(text.to_owned(), |text, pair| text.replace(pair[0], pair[1]))
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

    #[test]
    fn a_head_needs_all_headers() {
        let whole = "HTTP/1.1 200 OK\r\nServer: x\r\nDate: x\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: 0\r\n\r\n";
        let check = |change: [&str; 2]| {
            let head = Head::parse(whole.replace(change[0], change[1]).as_bytes()).expect("a head");
            check_head(&Response { head, body: vec![] }, "text/plain")
        };
        assert_eq!(check(["Server: x", "Server: y"]), Ok(()));
        for (change, why) in [
            (["Server: x\r\n", ""], "no header Server"),
            (["Date: x\r\n", ""], "no header Date"),
            (["text/plain; charset=UTF-8", "text/html"], "Content-Type is text/html, expected text/plain"),
            (["Content-Length: 0\r\n", ""], "neither Content-Length nor Transfer-Encoding"),
            (["200 OK", "404 Not Found"], "status 404"),
        ] {
            assert_eq!(check(change), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_row_has_an_id_and_a_number_in_range() {
        let row = |id, number| world(&json!({ "id": id, "randomNumber": number }));
        assert_eq!(row(json!(1), 10_000), Ok((1, 10_000)));
        assert!(row(json!(0), 1).is_err() && row(json!("1"), 1).is_err() && row(json!(1), 10_001).is_err());
        assert!(world(&json!({ "id": 1, "randomNumber": 1, "more": 1 })).is_err());
    }

    #[test]
    fn fortunes_must_be_sorted_escaped_and_complete() {
        let check = |messages: &[String]| {
            let row = |it: &String| format!("<tr><td>1</td><td>{it}</td></tr>");
            check_fortunes(&messages.iter().map(row).collect::<String>())
        };
        let mut messages: Vec<String> = FORTUNES.lines().chain([ADDED_FORTUNE]).map(str::to_owned).collect();
        messages.sort();
        assert!(check(&messages).is_err_and(|why| why.contains("not escaped")));
        messages.iter_mut().for_each(|it| *it = it.replace('<', "&lt;").replace('"', "&quot;"));
        assert_eq!(check(&messages), Ok(()));
        assert!(check(&messages[1..]).is_err());
        messages.swap(0, 1);
        assert!(check(&messages).is_err());
    }
}
