//! A worker takes over a new service.

use crate::exchange::body::BodyRateRule;
use crate::server::notice::Notice;
use crate::server::panics::{self, Panic};
use crate::service::Service;
use crate::worker::Worker;
use shearwater_io::Driver;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<D: Driver, S: Service> Worker<D, S> {
    /// Replaces the service if a newer one was ordered.
    pub(crate) fn reload(&mut self) {
        // Wake-ups of tasks end here, too: no more than a load of a number that hardly ever changes.
        if self.state.control.reloads.number.load(Ordering::Acquire) != self.registration.number {
            self.replace_service();
        }
    }

    #[cold]
    fn replace_service(&mut self) {
        let control = Arc::clone(&self.state.control);
        let Some(reload) = control.reloads.latest::<S>(&mut self.registration) else { return };
        let state = &mut self.state;
        let made = panics::catch(|| (reload.make)(state.worker, &state.service));
        let has_failed = made.is_err();
        match made {
            Ok(service) => {
                state.limits = reload.limits.map_or(state.limits, |limits| state.limits.reloaded(&limits));
                state.timeouts = reload.timeouts.unwrap_or(state.timeouts);
                state.body_rate_rule = BodyRateRule::new(&state.limits, &state.timeouts);
                state.has_guards = has_guards(&service);
                state.http2.protocols = protocols(&service);
                let old = std::mem::replace(&mut state.service, service);
                let old: Rc<dyn Service> = Rc::new(old);
                state.keep_service(&old);
                // Frees it, unless requests use it. The panic hook reports a panic.
                let _ = panics::catch(|| drop(old));
                self.idle_trim.schedule();
            }
            Err(panic) => {
                let Panic { message, place, .. } = *panic;
                state.notify(Notice::ReloadFailed { worker: state.worker, message, place });
            }
        }
        // Its last owner may be this worker, and the operator waits for its end.
        drop(reload);
        control.reloads.finish(&self.registration, has_failed);
    }
}

/// Returns whether a service has guards; true if it panics.
pub(crate) fn has_guards(service: &impl Service) -> bool {
    panics::catch(|| service.has_guards()).unwrap_or(true)
}

/// Returns the protocols that a service upgrades streams to; none if it panics.
pub(crate) fn protocols(service: &impl Service) -> Vec<String> {
    panics::catch(|| service.protocols()).unwrap_or_default()
}
