//! Lists as HTML, for light and dark mode and any width, whose one script only filters them; and as JSON.

use std::fmt::Write;

use crate::limits::LISTING_NAMES_MAX;
use crate::listing::rows::{ListOrder, ListPage, ListRow, SortKey};
use crate::listing::text::{grouped, href, html_name, human_size, json_string, utc};

const STYLE: &str = include_str!("style.css");

/// Filters the rows as the user types. Without scripts the page lacks nothing else.
const SCRIPT: &str = include_str!("filter.js");

/// Allows this style, this script and the empty icon. A test compares the hashes with them.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'sha256-FOGtqGnCKpxN8e9jJUFNJzOBF0mb2ny89lymFLjZK6s='; \
     style-src 'sha256-Zk5hfS0RyWCSHDYHQIXDDrxbhgBH9DlF+xGVOH4d+kk='; \
     img-src data:; base-uri 'none'; form-action 'none'";

/// Returns a page of a folder's list.
pub(super) fn html(name: &[u8], rows: &ListPage, order: ListOrder) -> String {
    let mut out = String::with_capacity(2_000 + STYLE.len() + SCRIPT.len() + 320 * rows.rows.len());
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // The icon is empty, so that browsers don't request one.
    out.push_str(
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n",
    );
    out.push_str("<title>Index of /");
    title(name, &mut out);
    push(&mut out, format_args!("</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"));
    breadcrumbs(name, &mut out);
    if !rows.is_whole() {
        more(rows, order, &mut out);
    }
    table(name, rows, order, &mut out);
    summary(rows, &mut out);
    if rows.before > 0 || rows.last.is_some() {
        out.push_str("<p class=\"more\">");
        neighbours(rows, order, &mut out);
        out.push_str("</p>\n");
    }
    push(&mut out, format_args!("</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string doesn't fail.
    let _ = out.write_fmt(text);
}

/// Writes the title, which can't contain elements. Drops control characters.
fn title(name: &[u8], out: &mut String) {
    let text: String =
        String::from_utf8_lossy(name).chars().filter(|character| !character.is_control()).collect();
    let mut escaped = String::new();
    html_name(text.as_bytes(), &mut escaped);
    out.push_str(&escaped.replace("<i>", "").replace("</i>", ""));
}

/// Writes the path with a link for each folder. Links are relative, so they work wherever the folder is mounted.
fn breadcrumbs(name: &[u8], out: &mut String) {
    let segments: Vec<&[u8]> =
        name.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty()).collect();
    out.push_str("<nav aria-label=\"Path\"><h1>Index of ");
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

fn table(name: &[u8], rows: &ListPage, order: ListOrder, out: &mut String) {
    out.push_str("<table>\n<thead><tr>");
    for sort in SortKey::ALL {
        heading(sort, order, out);
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    if !name.is_empty() {
        out.push_str("<tr><td class=\"up\"><a href=\"../\">One folder up</a></td><td></td><td></td></tr>\n");
    }
    for row in &rows.rows {
        push_html_row(row, out);
    }
    out.push_str("</tbody>\n</table>\n");
}

fn heading(sort: SortKey, order: ListOrder, out: &mut String) {
    let text = match sort {
        SortKey::Name => "Name",
        SortKey::Size => "Size",
        SortKey::Time => "Modified",
    };
    let (state, arrow) = match (order.sort == sort, order.is_descending) {
        (false, _) => ("", ""),
        (true, false) => (" aria-sort=\"ascending\"", " ↑"),
        (true, true) => (" aria-sort=\"descending\"", " ↓"),
    };
    let next = order.toggled(sort);
    let query = next.query(None).replace('&', "&amp;");
    push(out, format_args!("<th scope=\"col\"{state}><a href=\"{query}\">{text}{arrow}</a></th>"));
}

fn push_html_row(row: &ListRow, out: &mut String) {
    let class = if row.is_folder { "folder" } else { "file" };
    let link = href(&row.name, row.is_folder).replace('&', "&amp;");
    push(out, format_args!("<tr><td class=\"{class}\"><a href=\"{link}\"><bdi>"));
    html_name(&row.name, out);
    out.push_str(if row.is_link { "</bdi><small>link</small></a></td><td>" } else { "</bdi></a></td><td>" });
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

/// Writes the range of names on this page. It precedes the table, which is long.
fn more(rows: &ListPage, order: ListOrder, out: &mut String) {
    let number = |number: usize| grouped(number as u64);
    out.push_str("<p class=\"more\">");
    if rows.names > 0 {
        let (first, last) = (number(rows.before + 1), number(rows.before + rows.names));
        push(out, format_args!("Names {first} to {last} of {}.", number(rows.total)));
    }
    if !rows.are_all_read {
        let most = number(LISTING_NAMES_MAX);
        push(out, format_args!(" This folder has more than {most} names: not all of them are listed."));
    }
    if order.sort != SortKey::Name {
        out.push_str(" Each page is sorted by itself.");
    }
    neighbours(rows, order, out);
    out.push_str("</p>\n");
}

/// Writes the links to the first and the next page.
fn neighbours(rows: &ListPage, order: ListOrder, out: &mut String) {
    let first = (rows.before > 0).then(|| (order.query(None), "First page"));
    let next = rows.last.as_ref().map(|last| (order.query(Some(last)), "Next page"));
    for (place, (query, text)) in first.into_iter().chain(next).enumerate() {
        let between = if place == 0 { " " } else { " · " };
        push(out, format_args!("{between}<a href=\"{}\">{text}</a>", query.replace('&', "&amp;")));
    }
}

/// Writes the number of folders and files, and the files' total size.
fn summary(rows: &ListPage, out: &mut String) {
    let files: Vec<u64> = rows.rows.iter().filter_map(ListRow::size).collect();
    let folders = rows.rows.len() - files.len();
    if rows.rows.is_empty() {
        return out.push_str("<p>Nothing is here to be shown.</p>\n");
    }
    let count = |number: usize, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", grouped(number as u64)),
    };
    out.push_str(if rows.is_whole() { "<p>" } else { "<p>On this page: " });
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

/// Returns a page as JSON:
///
/// `{"path", "is_whole", "entries": [{"name", "type": "folder" | "file", "size", "modified", "href"}]}`. `size` is the
/// length of a file in bytes, `href` a reference from the folder's own address that is exact for names that aren't
/// UTF-8. A symbolic link also has `"is_link":true`; its type is that of the file or folder that it leads to.
///
/// A page that isn't the whole folder also has `total` and `before` (numbers of names), and `next` (the relative
/// reference of the next page) unless it is the last. `total` is `null` if the folder has more names than are read.
pub(super) fn json(name: &[u8], rows: &ListPage, order: ListOrder) -> String {
    let mut out = String::from("{\"path\":");
    json_string(&[b"/", name].concat(), &mut out);
    if rows.is_whole() {
        out.push_str(",\"is_whole\":true");
    } else {
        let total = if rows.are_all_read { rows.total.to_string() } else { "null".to_owned() };
        out.push_str(&format!(",\"is_whole\":false,\"total\":{total},\"before\":{}", rows.before));
    }
    if rows.last.is_some() {
        out.push_str(",\"next\":");
        json_string(order.query(rows.last.as_ref()).as_bytes(), &mut out);
    }
    out.push_str(",\"entries\":[");
    for (place, row) in rows.rows.iter().enumerate() {
        out.push_str(if place == 0 { "\n" } else { ",\n" });
        push_json_row(row, &mut out);
    }
    out.push_str("\n]}\n");
    out
}

fn push_json_row(row: &ListRow, out: &mut String) {
    out.push_str("{\"name\":");
    json_string(&row.name, out);
    match row.size() {
        None => out.push_str(",\"type\":\"folder\""),
        Some(size) => out.push_str(&format!(",\"type\":\"file\",\"size\":{size}")),
    }
    if row.is_link {
        out.push_str(",\"is_link\":true");
    }
    let time = utc(row.modified_seconds);
    out.push_str(&format!(",\"modified\":\"{}T{}:{}Z\",\"href\":", time.date, time.minute, time.second));
    json_string(href(&row.name, row.is_folder).as_bytes(), out);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine};
    use sha2::{Digest, Sha256};

    use super::{POLICY, SCRIPT, STYLE};

    #[test]
    fn policy_allows_only_the_style_and_the_script() {
        for (directive, text) in [("script-src", SCRIPT), ("style-src", STYLE)] {
            let hash = format!("{directive} 'sha256-{}';", BASE64_STANDARD.encode(Sha256::digest(text)));
            assert!(POLICY.contains(&hash), "{POLICY} has another hash than {hash}");
        }
        assert!(POLICY.starts_with("default-src 'none';") && !POLICY.contains("unsafe"));
    }
}
