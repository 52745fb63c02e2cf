//! Faults that a worker counts and reports.

use crate::response::fault::Fault;
use crate::server::reports::Admitted;
use crate::worker::state::WorkerState;

impl<S> WorkerState<S> {
    /// Counts and reports a handler's fault.
    #[cold]
    pub(crate) fn faulty(&mut self, fault: Fault) {
        match fault {
            Fault::Settled(fault) => return self.faulty(*fault),
            Fault::Panic(_) => self.counters.handler_panics.add(1),
            Fault::Built(_) => self.counters.handler_errors.add(1),
            Fault::CutShort(_) => self.counters.files_failed.add(1),
            Fault::File { .. }
            | Fault::Proxy { .. }
            | Fault::OtherProtocol(_)
            | Fault::BuffersFull { .. } => {}
        }
        self.report(fault);
    }

    /// Reports a fault to the operator, unless another of its kind was reported within the last second.
    pub(crate) fn report(&mut self, fault: Fault) {
        match self.reports.admit(fault, self.now_ms) {
            Admitted::Now(fault) => self.notify(fault.into_notice(self.worker, 0)),
            Admitted::Later => {}
            Admitted::Never => self.counters.hit_notices.add(1),
        }
    }

    /// Reports the waiting faults whose second is over; all of them at `u64::MAX`.
    #[cold]
    pub(crate) fn report_waiting(&mut self, now_ms: u64) {
        let mut notices = Vec::new();
        let worker = self.worker;
        self.reports.close(now_ms, |fault, left_out| notices.push(fault.into_notice(worker, left_out)));
        notices.into_iter().for_each(|notice| self.notify(notice));
    }
}
