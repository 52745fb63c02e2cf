//! Handlers, one file per kind.

pub(crate) mod bodies;
pub(crate) mod chat;
pub(crate) mod events;
pub(crate) mod pages;
pub(crate) mod sign_in;
pub(crate) mod slow;
pub(crate) mod world;
