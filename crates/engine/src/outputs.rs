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

#[cfg(test)]
mod tests {
    use shearwater_io::Output;

    use super::Outputs;
    use crate::limits::{SPARE_BUFFER_BYTES_MAX, SPARE_OUTPUTS_MAX};

    #[test]
    fn keeps_a_bounded_number_and_little_memory_in_each() {
        let mut outputs = Outputs::default();
        for _ in 0..3 * SPARE_OUTPUTS_MAX {
            let mut output = Output::new();
            output.bytes_mut().resize(100_000, b'x');
            outputs.give(output);
        }
        assert_eq!(outputs.spare.len(), SPARE_OUTPUTS_MAX);
        let mut output = outputs.take();
        assert!(output.is_empty());
        assert!(output.bytes_mut().capacity() <= SPARE_BUFFER_BYTES_MAX);
    }
}
