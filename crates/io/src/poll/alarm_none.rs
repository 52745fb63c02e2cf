//! Replaces the alarm on kqueue: each wait has its timeout, at no extra call.

use std::time::Duration;

use mio::Registry;

use crate::clock::Clock;

/// No alarm.
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
