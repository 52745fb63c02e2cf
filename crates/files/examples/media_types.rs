//! Generates `src/media_types.txt` from mime-db, which collects the types of IANA, Apache and nginx:
//!
//! ```text
//! npm pack mime-db && tar xzf mime-db-*.tgz
//! cargo run -p shearwater-files --example media_types -- package/db.json > crates/files/src/media_types.txt
//! ```
//!
//! Afterwards update version and date in `src/media_type.rs`, and review the diff.

use std::collections::BTreeMap;
use std::error::Error;

use serde_json::Value;

/// Sources by descending priority. Of two types with the same source the first by name is used.
const SOURCES: [&str; 3] = ["iana", "apache", "nginx"];

/// Extensions with another type than that, or with none.
const OTHERS: [(&str, Option<&str>); 20] = [
    // IANA has several types: the one that browsers and players expect.
    ("3gpp", Some("video/3gpp")),
    ("mp4", Some("video/mp4")),
    ("mpg4", Some("video/mp4")),
    ("mts", Some("video/mp2t")),
    ("wav", Some("audio/wav")),
    // The most common meaning of the extension today.
    ("asc", Some("application/pgp-signature")),
    ("mpp", Some("application/vnd.ms-project")),
    ("org", Some("text/x-org")),
    ("rs", None),
    ("vcf", Some("text/vcard")),
    // Registered later: RFC 9559, RFC 9639, RFC 9512.
    ("mk3d", Some("video/matroska-3d")),
    ("mka", Some("audio/matroska")),
    ("mkv", Some("video/matroska")),
    ("flac", Some("audio/flac")),
    ("yaml", Some("application/yaml")),
    ("yml", Some("application/yaml")),
    // Compressed files that are requested by their own name.
    ("br", Some("application/x-brotli")),
    ("zst", Some("application/zstd")),
    ("tgz", Some("application/gzip")),
    ("tzst", Some("application/zstd")),
];

/// XML types that are sent with a charset. Other documents declare it themselves.
const XML_WITH_CHARSET: [&str; 5] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/xhtml+xml",
    "application/xml",
    "image/svg+xml",
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: media_types db.json")?;
    let database: BTreeMap<String, Value> = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let mut types: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (media_type, entry) in &database {
        let source = entry["source"].as_str();
        let rank = SOURCES.iter().position(|known| source == Some(*known)).unwrap_or(SOURCES.len());
        let extensions = entry["extensions"].as_array().into_iter().flatten();
        for extension in extensions.filter_map(Value::as_str) {
            let best = types.entry(extension).or_insert((rank, media_type));
            *best = (*best).min((rank, media_type));
        }
    }
    for (extension, media_type) in OTHERS {
        match media_type {
            Some(media_type) => types.insert(extension, (0, media_type)),
            None => types.remove(extension),
        };
    }
    for (extension, (_, media_type)) in types {
        let is_text = media_type.starts_with("text/") || XML_WITH_CHARSET.contains(&media_type);
        println!("{extension} {media_type}{}", if is_text { "; charset=utf-8" } else { "" });
    }
    Ok(())
}
