//! A list as JSON: for programs.

use super::rows::{Row, Rows};
use super::text::{href, json_string, utc};

/// `{"path", "is_whole", "entries": [{"name", "type": "folder" | "file", "size", "modified", "href"}]}`. `size` is that of a file in bytes, `href` a
/// reference from the folder's own address that is exact where a name is no UTF-8.
pub(super) fn document(name: &[u8], rows: &Rows) -> String {
    let mut out = String::from("{\"path\":");
    json_string(&[b"/", name].concat(), &mut out);
    out.push_str(if rows.is_whole { ",\"is_whole\":true" } else { ",\"is_whole\":false" });
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
