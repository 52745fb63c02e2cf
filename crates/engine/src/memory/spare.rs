//! Spare memory: output buffers for the next responses, and its release once the worker is idle.

use shearwater_io::Output;

use crate::limits::{
    IDLE_TRIM_AFTER_MS, IDLE_TRIM_EVENTS_MIN, SPARE_OUTPUT_BYTES_MAX, SPARE_OUTPUTS_BYTES_MAX,
    SPARE_OUTPUTS_MAX,
};

/// Spare outputs of a worker, at most `SPARE_OUTPUTS_MAX` of at most `SPARE_OUTPUTS_BYTES_MAX` together.
#[derive(Default)]
pub(crate) struct Outputs {
    spare: Vec<Output>,
    /// Memory of all of them, in bytes.
    bytes: usize,
}

impl Outputs {
    /// Returns an empty output.
    pub(crate) fn take(&mut self) -> Output {
        let Some(output) = self.spare.pop() else { return Output::default() };
        self.bytes -= output.capacity();
        output
    }

    /// Frees the spare outputs.
    pub(crate) fn free_spare(&mut self) {
        *self = Self::default();
    }

    /// Recycles an output that was sent.
    pub(crate) fn recycle(&mut self, mut output: Output) {
        if self.spare.len() == SPARE_OUTPUTS_MAX {
            return;
        }
        output.clear(SPARE_OUTPUT_BYTES_MAX);
        let bytes = self.bytes + output.capacity();
        if bytes <= SPARE_OUTPUTS_BYTES_MAX {
            self.bytes = bytes;
            self.spare.push(output);
        }
    }
}

/// State of the idle trim.
#[derive(Debug)]
pub(crate) struct IdleTrim {
    /// Time of the last event.
    last_event_ms: u64,
    /// Events since the last trim.
    pub(crate) events: usize,
    /// Callback on the worker's thread after a trim.
    pub(crate) at_rest: Option<fn()>,
}

impl IdleTrim {
    pub(crate) fn new(at_rest: Option<fn()>) -> Self {
        Self { last_event_ms: 0, events: 0, at_rest }
    }

    /// Counts the events of a turn.
    #[inline]
    pub(crate) fn count(&mut self, events: usize, now_ms: u64) {
        if events > 0 {
            self.events += events;
            self.last_event_ms = now_ms;
        }
    }

    /// Has the worker trim once it is idle, however few events there were.
    pub(crate) fn schedule(&mut self) {
        self.events = self.events.max(IDLE_TRIM_EVENTS_MIN);
    }

    /// Returns the time of the next trim, unless there were too few events to be worth it.
    #[inline]
    pub(crate) fn due_ms(&self) -> Option<u64> {
        (self.events >= IDLE_TRIM_EVENTS_MIN).then_some(self.last_event_ms + IDLE_TRIM_AFTER_MS)
    }
}

#[cfg(test)]
mod tests {
    use shearwater_io::Output;

    use super::Outputs;
    use crate::limits::{SPARE_OUTPUT_BYTES_MAX, SPARE_OUTPUTS_BYTES_MAX, SPARE_OUTPUTS_MAX};

    fn output(len: usize) -> Output {
        let mut output = Output::new();
        output.bytes_mut().resize(len, b'x');
        output
    }

    fn keep(len: usize) -> Outputs {
        let mut outputs = Outputs::default();
        for _ in 0..3 * SPARE_OUTPUTS_MAX {
            outputs.recycle(output(len));
        }
        outputs
    }

    #[test]
    fn keeps_a_bounded_number_of_outputs_and_little_memory_in_each() {
        assert_eq!(keep(100).spare.len(), SPARE_OUTPUTS_MAX);
        let mut outputs = keep(3 * SPARE_OUTPUT_BYTES_MAX);
        let output = outputs.take();
        assert!(output.is_empty());
        assert!(output.capacity() <= SPARE_OUTPUT_BYTES_MAX);
    }

    #[test]
    fn keeps_little_memory_in_all_outputs() {
        let mut outputs = keep(SPARE_OUTPUT_BYTES_MAX);
        let kept = outputs.spare.len();
        assert!(kept > 0 && kept < SPARE_OUTPUTS_MAX, "{kept}");
        assert!(outputs.bytes <= SPARE_OUTPUTS_BYTES_MAX);
        while outputs.bytes > 0 {
            assert!(outputs.take().capacity() > 0);
        }
        outputs.recycle(output(SPARE_OUTPUT_BYTES_MAX));
        assert_eq!(outputs.spare.len(), 1, "there is room again");
    }

    #[test]
    fn frees_all_spare_memory() {
        let mut outputs = keep(SPARE_OUTPUT_BYTES_MAX);
        outputs.free_spare();
        assert_eq!((outputs.spare.len(), outputs.bytes), (0, 0));
        assert_eq!(outputs.take().capacity(), 0);
    }
}
