//! Tests of the built program: routes on the wire, settings, startup and shutdown.

mod chat;
mod program;
mod routes;
mod settings;
mod streams;
