//! Reloads what a running server serves (`SIGHUP`): reads and checks the configuration or folder again, and replaces it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shearwater::{AddressChange, Changed, Control, OperationResult, Reload};
use shearwater_metrics::Metrics;
use shearwater_site::{SiteService, Sites};

use crate::args::Serve;
use crate::diagnostics;
use crate::plan::Plan;
use crate::settings::FixedSetting;
use crate::tls::{Replacement, RunningTls};
use crate::watch::WatchedPaths;

/// Longest wait for workers that are inside a handler.
const RELOAD_WAIT_MAX: Duration = Duration::from_secs(10);

/// A file that was emptied by accident is valid.
const NOTHING_TO_SERVE: &str = "error: nothing is left to serve: no site and no folder\n\
    help: write the sites again, or restart\n";

/// All workers secure connections, or none does.
const NO_TLS: &str = "error: this server has started without TLS, which a reload can't add\n\
    help: `shearwater upgrade`, or restart the server\n";

/// The command line of a running server, and its settings that only a restart changes.
pub(crate) struct Reloader {
    arguments: Serve,
    fixed: Vec<FixedSetting>,
    tls: Option<RunningTls>,
    metrics: Option<Metrics>,
    watched: WatchedPaths,
    /// The sites that are served, and whether they were named.
    present: Mutex<(Sites, bool)>,
}

/// A plan that this process can load.
struct Prepared<'a> {
    plan: Plan,
    tls: Option<Replacement<'a>>,
    addresses: AddressChange<'a>,
    present: MutexGuard<'a, (Sites, bool)>,
    /// Description of the sites and of the changes of addresses.
    what: String,
    warnings: String,
}

impl Reloader {
    pub(crate) fn new(
        arguments: Serve,
        plan: &Plan,
        tls: Option<RunningTls>,
        metrics: Option<Metrics>,
        watched: WatchedPaths,
    ) -> Self {
        watched.set(plan.watched(&arguments));
        let present = Mutex::new((plan.site.sites.clone(), plan.is_configured));
        Self { arguments, fixed: plan.fixed.clone(), tls, metrics, watched, present }
    }

    /// Reloads, and counts that.
    pub(crate) fn reload(&self, control: &Control) -> Result<Changed, String> {
        let result = self.replace(control);
        self.metrics
            .iter()
            .for_each(|metrics| metrics.count_reload(result.as_ref().map(|_| ()).map_err(String::as_str)));
        result
    }

    /// Checks whether a reload would succeed. Nothing changes.
    pub(crate) fn check(&self, control: &Control) -> OperationResult {
        if let Some(process) = control.successor() {
            return OperationResult::Superseded { process };
        }
        match self.prepare(control) {
            Ok(prepared) => {
                let text = format!("a reload would succeed: {}", prepared.what);
                OperationResult::Done { text, details: prepared.warnings }
            }
            Err(details) => {
                OperationResult::Refused { text: "a reload would be refused".to_owned(), details }
            }
        }
    }

    /// Plans as at the start, and binds new addresses, which are closed again if nothing comes of it.
    ///
    /// # Errors
    /// What `shearwater check` would print, or why the plan isn't one for this process.
    fn prepare<'a>(&'a self, control: &'a Control) -> Result<Prepared<'a>, String> {
        let plan = Plan::new(&self.arguments).map_err(|failure| failure.to_string())?;
        let tls = match (&self.tls, plan.tls.clone()) {
            (Some(tls), Some(plan)) => Some(tls.prepare(plan).map_err(|failure| failure.to_string())?),
            (None, Some(_)) => return Err(NO_TLS.to_owned()),
            (_, None) => None,
        };
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, was_configured) = &*present;
        if *was_configured && !plan.is_configured {
            return Err(NOTHING_TO_SERVE.to_owned());
        }
        let addresses = plan.server.clone().prepare_addresses(control);
        let addresses = addresses.map_err(|error| format!("error: {error}\n"))?;
        let mut warnings = plan.warnings();
        for (now, new) in self.fixed.iter().zip(&plan.fixed).filter(|(now, new)| now != new) {
            warnings.push_str(&format!(
                "warning: a change of {new} takes effect after a restart; now {}\n",
                now.value
            ));
        }
        let mut what = match &self.arguments.config {
            Some(file) => format!("{}: {}", file.display(), plan.site.description),
            None => plan.site.description.clone(),
        };
        for (does, addresses) in
            [("now listening on", addresses.added()), ("no longer on", addresses.removed())]
        {
            if !addresses.is_empty() {
                what.push_str(&format!("; {does} {}", addresses.join(", ")));
            }
        }
        Ok(Prepared { plan, tls, addresses, present, what, warnings })
    }

    /// Has the workers replace their services.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare). Nothing has changed then.
    fn replace(&self, control: &Control) -> Result<Changed, String> {
        let Prepared { plan, tls: replacement, addresses, mut present, what, mut warnings } =
            self.prepare(control)?;
        let (sites_before, _) = &*present;
        self.watched.set(plan.watched(&self.arguments));
        let serves = plan.site.description.clone();
        let Plan { mut site, is_configured, limits, timeouts, messages, .. } = plan;
        site.count_by(self.metrics.as_ref());
        if let Some(tls) = &self.tls {
            site.sites.answer_challenges(tls.find_challenge());
        }
        if let (Some(_), Some(port)) = (&replacement, sites_before.https_port()) {
            // It has no effect unless the system picked the port.
            site.sites.set_https_port(port);
        }
        if let Some(replacement) = replacement {
            replacement.apply()?;
        }
        let sites = site.sites.sharing_folders(sites_before);
        let new = sites.clone();
        let reload = Reload::new(move |_, present: &SiteService| sites.service_after(present));
        let reloading = control.reload(reload.limits(limits).timeouts(timeouts));
        let reloading = reloading.map_err(|error| format!("error: {error}\n"))?;
        // New addresses serve the new sites from the first connection on.
        let changing = addresses.apply();
        *present = (new, is_configured);
        diagnostics::apply(messages);
        // The configuration as parsed takes ten times the memory of the sites that were made of it.
        shearwater_allocator::give_back();
        let mut is_complete = true;
        if let Err(error) = reloading.wait(RELOAD_WAIT_MAX) {
            is_complete = false;
            warnings.push_str(&format!("warning: {error}\n"));
        }
        for (socket, error) in changing.failed_modes() {
            let socket = socket.display();
            warnings.push_str(&format!("warning: can't change the mode of {socket}: {error}\n"));
        }
        if !changing.wait(RELOAD_WAIT_MAX) {
            is_complete = false;
            warnings.push_str("warning: a worker is blocked and still has the old addresses\n");
        }
        diagnostics::warn_of_configuration(&warnings);
        Ok(Changed { what, warnings, is_complete, serves: Some(serves) })
    }
}
