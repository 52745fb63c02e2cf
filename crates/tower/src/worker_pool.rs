//! Memory that a worker reuses between requests.

use std::cell::RefCell;

use crate::head_pool::HeadPool;
use crate::pinned_slot::SlotPool;
use crate::tower_service::HttpService;

/// The pools of one worker.
pub(crate) struct WorkerPool<S: HttpService> {
    pub(crate) heads: RefCell<HeadPool>,
    pub(crate) futures: SlotPool<S::ResponseFuture>,
    pub(crate) bodies: SlotPool<S::ResponseBody>,
}

impl<S: HttpService> WorkerPool<S> {
    pub(crate) fn new() -> Self {
        Self { heads: RefCell::new(HeadPool::new()), futures: SlotPool::new(), bodies: SlotPool::new() }
    }
}
