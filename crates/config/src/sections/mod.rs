//! The sections of the file: one for each, with the one list of its keys.

pub(crate) mod cache;
pub(crate) mod cache_control;
pub(crate) mod engine_limits;
pub(crate) mod headers;
pub(crate) mod listen;
pub(crate) mod logging;
pub(crate) mod performance;
pub(crate) mod redirect;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod serving;
pub(crate) mod site;
pub(crate) mod timeouts;

use crate::fields::{Fields, Visit};
use crate::rules::Rule;

/// Names that other programs, or the engine, have for a key.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("connections_max", "max_connections of [performance]"),
    ("first_head_ms", "connection_timeout of [performance], in seconds"),
    ("idle_ms", "keep_alive_timeout of [performance], in seconds"),
    ("receive_bytes", "request_buffer_size of [performance]"),
    ("output_bytes_max", "response_buffer_size of [performance]"),
    ("port", "http_port of [server], or address of [[listen]]"),
    ("listen", "[[listen]] in double brackets"),
    ("host", "hosts of [[site]]"),
    ("server_name", "hosts of [[site]]"),
    ("threads", "workers of [server]"),
    ("log_level", "level of [logging]"),
    ("gzip_static", "precompressed of [[site]]"),
    ("autoindex", "listing of [[site]]"),
    ("directory_listing", "listing of [[site]]"),
    ("document_root", "root of [[site]]"),
    ("location", "[[site.route]] in double brackets"),
    ("client_max_body_size", "body_bytes_max of [limits]"),
    ("drain_ms", "drain_s of [server], in seconds"),
];

/// Where a name that is unknown in one section is known, as the end of a sentence.
pub(crate) fn home_of(name: &str) -> Option<String> {
    let homes: [(&str, Vec<&str>); 10] = [
        ("[server]", names::<server::Server>()),
        ("[performance]", names::<performance::Performance>()),
        ("[limits]", names::<engine_limits::Limits>()),
        ("[timeouts]", names::<timeouts::Timeouts>()),
        ("[cache]", names::<cache::Cache>()),
        ("[logging]", names::<logging::Logging>()),
        ("[[listen]]", names::<listen::Listen>()),
        ("[[site]]", names::<site::Site>()),
        ("[[site.redirect]]", names::<redirect::Redirect>()),
        ("[[site.route]]", names::<route::Route>()),
    ];
    if let Some((section, _)) = homes.iter().find(|(_, names)| names.contains(&name)) {
        return Some(format!("it is a key of {section}"));
    }
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    other.map(|(_, ours)| format!("here it is {ours}"))
}

/// The names of a section's keys.
pub(crate) fn names<T: Fields>() -> Vec<&'static str> {
    let mut names = Names(Vec::new());
    T::default().fields(&mut names);
    names.0
}

struct Names(Vec<&'static str>);

impl Visit for Names {
    fn field<T>(&mut self, name: &'static str, _: &'static str, _: impl Rule<T>, _: &mut T) {
        self.0.push(name);
    }
}
