//! A list as a page: for people. It needs no script; light or dark as the reader has it, narrow or wide.

use std::fmt::Write;

use super::order::{Order, Sort};
use super::rows::{Row, Rows};
use super::text::{grouped, href, html_name, human_size, utc};

const STYLE: &str = include_str!("style.css");

/// The page may have this very style and nothing else; a test keeps the hash in step with it.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'sha256-4iLElNXbs3Ic8yid5n2paau5r+Co/LnawFfkQH5aS9U='; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// The page of the folder of this name.
pub(super) fn page(name: &[u8], rows: &Rows, order: Order) -> String {
    let mut out = String::with_capacity(2_000 + STYLE.len() + 320 * rows.rows.len());
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n<title>/");
    title(name, &mut out);
    push(&mut out, format_args!("</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"));
    breadcrumbs(name, &mut out);
    if !rows.is_whole {
        more(rows, &mut out);
    }
    table(name, rows, order, &mut out);
    summary(rows, &mut out);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string doesn't fail.
    let _ = out.write_fmt(text);
}

/// A title has no elements in it: what is no text is left to the list.
fn title(name: &[u8], out: &mut String) {
    let text: String =
        String::from_utf8_lossy(name).chars().filter(|character| !character.is_control()).collect();
    let mut escaped = String::new();
    html_name(text.as_bytes(), &mut escaped);
    out.push_str(&escaped.replace("<i>", "").replace("</i>", ""));
}

/// The way from the root, each folder of it a link upwards: so it holds wherever the folder is mounted.
fn breadcrumbs(name: &[u8], out: &mut String) {
    let segments: Vec<&[u8]> =
        name.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty()).collect();
    out.push_str("<nav aria-label=\"Path\"><h1>");
    let up = |steps: usize| if steps == 0 { "./".to_owned() } else { "../".repeat(steps) };
    let current = |steps: usize| if steps == 0 { " aria-current=\"page\"" } else { "" };
    let all = segments.len();
    push(out, format_args!("<a href=\"{}\" title=\"The first folder\"{}>/</a>", up(all), current(all)));
    for (place, segment) in segments.iter().enumerate() {
        let steps = all - place - 1;
        push(out, format_args!("<a href=\"{}\"{}><bdi>", up(steps), current(steps)));
        html_name(segment, out);
        out.push_str("</bdi></a>/");
    }
    out.push_str("</h1></nav>\n");
}

fn table(name: &[u8], rows: &Rows, order: Order, out: &mut String) {
    out.push_str("<table>\n<thead><tr>");
    for sort in Sort::ALL {
        heading(sort, order, out);
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    if !name.is_empty() {
        out.push_str("<tr><td class=\"up\"><a href=\"../\">One folder up</a></td><td></td><td></td></tr>\n");
    }
    for row in &rows.rows {
        push_row(row, out);
    }
    out.push_str("</tbody>\n</table>\n");
}

fn heading(sort: Sort, order: Order, out: &mut String) {
    let text = match sort {
        Sort::Name => "Name",
        Sort::Size => "Size",
        Sort::Time => "Modified",
    };
    let (state, arrow) = match (order.sort == sort, order.is_descending) {
        (false, _) => ("", ""),
        (true, false) => (" aria-sort=\"ascending\"", " ↑"),
        (true, true) => (" aria-sort=\"descending\"", " ↓"),
    };
    let next = order.behind(sort);
    let query = format_args!("?sort={}&amp;order={}", sort.name(), next.direction()).to_string();
    push(out, format_args!("<th scope=\"col\"{state}><a href=\"{query}\">{text}{arrow}</a></th>"));
}

fn push_row(row: &Row, out: &mut String) {
    let class = if row.is_folder { "folder" } else { "file" };
    let link = href(&row.name, row.is_folder).replace('&', "&amp;");
    push(out, format_args!("<tr><td class=\"{class}\"><a href=\"{link}\"><bdi>"));
    html_name(&row.name, out);
    out.push_str("</bdi></a></td><td>");
    if let Some(size) = row.size() {
        push(out, format_args!("<span title=\"{} bytes\">{}</span>", grouped(size), human_size(size)));
    }
    let time = utc(row.modified_seconds);
    let (date, minute, second) = (time.date, time.minute, time.second);
    push(
        out,
        format_args!(
            "</td><td><time datetime=\"{date}T{minute}:{second}Z\" title=\"{date} {minute}:{second} UTC\">{date} {minute}</time></td></tr>\n"
        ),
    );
}

/// Before the list, since it is long, and since those that are shown are any of them.
fn more(rows: &Rows, out: &mut String) {
    let shown = grouped(rows.rows.len() as u64);
    push(
        out,
        format_args!(
            "<p class=\"more\">There is more in this folder: {shown} entries of it are shown.</p>\n"
        ),
    );
}

/// What there is, of each kind that there is.
fn summary(rows: &Rows, out: &mut String) {
    let files: Vec<u64> = rows.rows.iter().filter_map(Row::size).collect();
    let folders = rows.rows.len() - files.len();
    if rows.rows.is_empty() {
        return out.push_str("<p>Nothing is here to be shown.</p>\n");
    }
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", grouped(number as u64)),
    };
    out.push_str("<p>");
    if folders > 0 {
        out.push_str(&count(folders, "folder"));
    }
    if !files.is_empty() {
        let total = files.iter().fold(0_u64, |sum, &len| sum.saturating_add(len));
        let comma = if folders > 0 { ", " } else { "" };
        let (number, bytes, size) = (count(files.len(), "file"), grouped(total), human_size(total));
        push(out, format_args!("{comma}{number} of <span title=\"{bytes} bytes\">{size}</span>"));
    }
    out.push_str(". Times are UTC.</p>\n");
}

#[cfg(test)]
mod tests {
    use super::{POLICY, STYLE};

    /// SHA-256 (FIPS 180-4), of which nothing but this test is in need.
    fn sha256(text: &[u8]) -> [u8; 32] {
        let primes = || (2_u64..).filter(|number| (2..*number).all(|divisor| number % divisor != 0));
        // The first 32 bits behind the point of the roots of primes.
        let root = |prime: u64, power: f64| (((prime as f64).powf(power).fract()) * 4_294_967_296.0) as u32;
        let constants: Vec<u32> = primes().take(64).map(|prime| root(prime, 1.0 / 3.0)).collect();
        let mut state: Vec<u32> = primes().take(8).map(|prime| root(prime, 0.5)).collect();
        let mut padded = [text, &[0x80]].concat();
        padded.resize(padded.len().next_multiple_of(64) + if padded.len() % 64 > 56 { 64 } else { 0 } - 8, 0);
        padded.extend_from_slice(&(text.len() as u64 * 8).to_be_bytes());
        for block in padded.chunks(64) {
            let mut words: Vec<u32> = block
                .chunks(4)
                .map(|word| word.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
                .collect();
            for at in 16..64 {
                let (a, b) = (words[at - 15], words[at - 2]);
                let small = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
                let large = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
                words
                    .push(words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]).wrapping_add(large));
            }
            let mut now = state.clone();
            for (word, constant) in words.iter().zip(&constants) {
                let (a, e) = (now[0], now[4]);
                let choice = (e & now[5]) ^ (!e & now[6]);
                let majority = (a & now[1]) ^ (a & now[2]) ^ (now[1] & now[2]);
                let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
                let first = [turned, choice, *constant, *word]
                    .iter()
                    .fold(now[7], |sum, part| sum.wrapping_add(*part));
                let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
                now.rotate_right(1);
                now[4] = now[4].wrapping_add(first);
                now[0] = first.wrapping_add(turned).wrapping_add(majority);
            }
            state.iter_mut().zip(now).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
        }
        let bytes: Vec<u8> = state.into_iter().flat_map(u32::to_be_bytes).collect();
        bytes.try_into().expect("eight words")
    }

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let bits = group.iter().chain(&[0, 0]).take(3).fold(0, |sum, &byte| sum << 8 | usize::from(byte));
            for place in 0..4 {
                let is_there = place <= group.len();
                text.push(if is_there { char::from(LETTERS[bits >> (18 - 6 * place) & 63]) } else { '=' });
            }
        }
        text
    }

    #[test]
    fn the_policy_lets_the_style_in_and_nothing_else() {
        assert_eq!(base64(&sha256(b"")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(base64(&sha256(&[b'a'; 1_000])), "Qe3s5C1j6Nm/UVqbppMuHCDLyfWl0TRkWttdsblzfqM=");
        let hash = format!("style-src 'sha256-{}';", base64(&sha256(STYLE.as_bytes())));
        assert!(POLICY.contains(&hash), "{POLICY} has another hash than {hash}");
    }
}
