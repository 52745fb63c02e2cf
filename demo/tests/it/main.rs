//! The built program as its user sees it: every route on the wire, every setting, start and end.

mod answer;
mod program;

mod chat;
mod modes;
mod routes;
mod settings;
mod streams;
