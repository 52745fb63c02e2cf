//! The sections of the file, each with the one list of its keys.

pub(crate) mod files;
pub(crate) mod headers;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod server;
pub(crate) mod site;

use toml::de::DeValue;

use crate::section::names;

/// Names of keys in other programs and in the crate's API.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("connections_max", "`max_connections` of [performance]"),
    ("first_head_ms", "`connection_timeout` of [performance]"),
    ("idle_ms", "`keep_alive_timeout` of [performance]"),
    ("receive_bytes", "`request_buffer_size` of [performance]"),
    ("output_bytes_max", "`response_buffer_size` of [performance]"),
    ("port", "`http_port` of [server], or `address` of [[listen]]"),
    ("listen", "[[listen]] in double brackets"),
    ("host", "`hosts` of [[site]]"),
    ("server_name", "`hosts` of [[site]]"),
    ("threads", "`workers` of [server]"),
    ("log_level", "`level` of [logging]"),
    ("gzip_static", "`precompressed` of [[site]]"),
    ("autoindex", "`listing` of [[site]]"),
    ("directory_listing", "`listing` of [[site]]"),
    ("document_root", "`root` of [[site]]"),
    ("location", "[[site.route]] in double brackets"),
    ("client_max_body_size", "`body_bytes_max` of [limits]"),
    ("drain_ms", "`drain_timeout` of [server]"),
];

/// Returns where a key that is unknown in one section belongs.
pub(crate) fn home_of(name: &str) -> Option<String> {
    let homes: [(&str, Vec<&str>); 10] = [
        ("[server]", names::<server::Server>()),
        ("[performance]", names::<limits::Performance>()),
        ("[limits]", names::<limits::Limits>()),
        ("[timeouts]", names::<limits::Timeouts>()),
        ("[cache]", names::<limits::Cache>()),
        ("[logging]", names::<server::Logging>()),
        ("[[listen]]", names::<listen::Listen>()),
        ("[[site]]", names::<site::Site>()),
        ("[[site.redirect]]", names::<site::Redirect>()),
        ("[[site.route]]", names::<site::Route>()),
    ];
    if let Some((section, _)) = homes.iter().find(|(_, names)| names.contains(&name)) {
        return Some(format!("it is a key of {section}"));
    }
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    other.map(|(_, ours)| format!("the key is called {ours}"))
}

/// A key that got another name when durations got units.
pub(crate) struct Renamed {
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    /// The unit of the old key's integers.
    unit: &'static str,
}

const RENAMED: [Renamed; 7] = [
    Renamed { old: "drain_s", new: "drain_timeout", unit: "s" },
    Renamed { old: "head_ms", new: "head", unit: "ms" },
    Renamed { old: "body_ms", new: "body", unit: "ms" },
    Renamed { old: "body_grace_ms", new: "body_grace", unit: "ms" },
    Renamed { old: "write_ms", new: "write", unit: "ms" },
    Renamed { old: "linger_ms", new: "linger", unit: "ms" },
    Renamed { old: "drain_idle_ms", new: "drain_idle", unit: "ms" },
];

/// Returns the new name of a renamed key.
pub(crate) fn renamed(old: &str) -> Option<&'static Renamed> {
    RENAMED.iter().find(|key| key.old == old)
}

impl Renamed {
    /// Returns the line to write instead.
    pub(crate) fn help(&self, value: &DeValue<'_>) -> String {
        let Self { new, unit, .. } = self;
        match value.as_integer() {
            Some(number) => format!("write `{new} = \"{number}{unit}\"`"),
            None => format!("write `{new}` with a unit, such as `{new} = \"10s\"`"),
        }
    }
}
