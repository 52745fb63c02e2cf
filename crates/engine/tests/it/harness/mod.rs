//! Test harness: a worker on the simulated kernel, an app, scripted clients, and a model of the responses.

use std::collections::VecDeque;

pub(crate) mod app;
pub(crate) mod conversation;
pub(crate) mod handlers;
pub(crate) mod letters;
pub(crate) mod unit;
pub(crate) mod world;

pub(crate) use conversation::{Act, ClientEnd, Conversation};
pub(crate) use letters::{SecureSim, SimDriver};
pub(crate) use unit::{ExpectedOutput, ExpectedResponse, Unit};
pub(crate) use world::{Setting, SimClient, SimWorld};

/// A deterministic sequence of choices: from a seed (SplitMix64), or from a fuzzer's bytes.
#[derive(Debug)]
pub(crate) enum Choices {
    Seed(u64),
    Program(VecDeque<u8>),
}

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Self::Seed(seed ^ 0x5DEE_CE66_D1CE_CAFE)
    }

    /// Takes a byte for each choice, and the first alternative once all are used.
    #[allow(dead_code, reason = "used by the fuzz targets, which include this file")]
    pub(crate) fn of_program(program: &[u8]) -> Self {
        Self::Program(program.to_vec().into())
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        match self {
            Self::Seed(state) => {
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                ((z ^ (z >> 31)) % end as u64) as usize
            }
            Self::Program(bytes) => {
                let mut byte = || usize::from(bytes.pop_front().unwrap_or(0));
                let number = if end > 256 { byte() << 8 | byte() } else { byte() };
                number % end
            }
        }
    }

    /// Returns one of these.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns true once in `count` times, but not for the first alternative.
    pub(crate) fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }
}
