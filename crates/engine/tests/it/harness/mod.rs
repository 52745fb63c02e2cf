//! Test harness: a worker on the simulated kernel, an app, scripted clients, and a model of the responses.

pub(crate) mod app;
pub(crate) mod asking;
pub(crate) mod client;
pub(crate) mod conversation;
pub(crate) mod dice;
pub(crate) mod response;
pub(crate) mod unit;
pub(crate) mod unruly;
pub(crate) mod waiting;
pub(crate) mod world;

pub(crate) use client::{Client, End};
pub(crate) use conversation::{Conversation, Step};
pub(crate) use response::{Expected, ExpectedResponse};
pub(crate) use unit::Unit;
pub(crate) use world::{Setting, World};
