//! Spare outputs: what was sent comes back and is used for the next answer.

use shearwater_io::Output;

use crate::limits::{SPARE_BUFFER_BYTES_MAX, SPARE_OUTPUTS_MAX};

/// The outputs that a worker keeps, at most `SPARE_OUTPUTS_MAX`.
#[derive(Default)]
pub(crate) struct Outputs {
    spare: Vec<Output>,
}

impl Outputs {
    /// An empty output.
    pub(crate) fn take(&mut self) -> Output {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back an output that was sent.
    pub(crate) fn give(&mut self, mut output: Output) {
        if self.spare.len() < SPARE_OUTPUTS_MAX {
            output.clear(SPARE_BUFFER_BYTES_MAX);
            self.spare.push(output);
        }
    }
}
