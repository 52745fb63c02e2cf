//! Lists as JSON.

use super::order::Order;
use super::rows::{Row, Rows};
use super::text::{href, json_string, utc};

/// Returns a page as JSON:
///
/// `{"path", "is_whole", "entries": [{"name", "type": "folder" | "file", "size", "modified", "href"}]}`. `size` is the
/// length of a file in bytes, `href` a reference from the folder's own address that is exact for names that aren't
/// UTF-8.
///
/// A page that isn't the whole folder also has `total` and `before` (numbers of names), and `next` (the relative
/// reference of the next page) unless it is the last. `total` is `null` if the folder has more names than are read.
pub(super) fn document(name: &[u8], rows: &Rows, order: Order) -> String {
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
        push_entry(row, &mut out);
    }
    out.push_str("\n]}\n");
    out
}

fn push_entry(row: &Row, out: &mut String) {
    out.push_str("{\"name\":");
    json_string(&row.name, out);
    match row.size() {
        None => out.push_str(",\"type\":\"folder\""),
        Some(size) => out.push_str(&format!(",\"type\":\"file\",\"size\":{size}")),
    }
    let time = utc(row.modified_seconds);
    out.push_str(&format!(",\"modified\":\"{}T{}:{}Z\",\"href\":", time.date, time.minute, time.second));
    json_string(href(&row.name, row.is_folder).as_bytes(), out);
    out.push('}');
}
