//! Without an alarm: each wait has its timeout, which costs a call of kqueue's nothing more.

use std::time::Duration;

use mio::Registry;

use crate::clock::Clock;

/// None.
#[derive(Debug)]
pub(super) struct Alarm;

impl Alarm {
    pub(super) fn new(_: &Registry, _: mio::Token) -> Self {
        Self
    }

    pub(super) fn note(&mut self) {}

    pub(super) fn cover(&mut self, timeout: Option<Duration>, _: &Clock) -> Option<Duration> {
        timeout
    }
}
