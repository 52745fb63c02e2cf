//! Sites, checked and ready to be served by workers.

use std::fmt;
use std::sync::Arc;

use crate::mistakes::Mistakes;
use crate::options::Options;
use crate::plan::Plan;
use crate::service::SiteService;

/// Sites, checked; to be shared by the workers.
#[derive(Clone)]
pub struct Sites(Arc<Plan>);

impl Sites {
    /// Checks sites and builds their tables.
    ///
    /// # Errors
    /// Every mistake that was found: hosts, paths, targets, names and values that can't be, what is there twice, redirects that
    /// lead back, and what passes a bound of [`limits`](crate::limits).
    pub fn new(options: Options) -> Result<Self, Mistakes> {
        Plan::new(options).map(|plan| Self(Arc::new(plan)))
    }

    /// What can be served, but is hardly meant, as the folders were when it was checked: error pages that aren't there, and redirects that
    /// their files lead back to.
    #[must_use]
    pub fn doubts(&self) -> &Mistakes {
        &self.0.doubts
    }

    /// The sites for one worker. What is kept in memory of files is the worker's own.
    #[must_use]
    pub fn service(&self) -> SiteService {
        SiteService::new(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Sites {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sites").field("sites", &self.0.sites.len()).finish_non_exhaustive()
    }
}
