//! Tests of the built program: routes on the wire, settings, startup and shutdown.

mod program;
mod response;

mod chat;
mod modes;
mod routes;
mod settings;
mod streams;
