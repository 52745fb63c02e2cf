//! What a worker keeps for the next requests, and the tasks of those that wait give back to.

use std::cell::RefCell;

use crate::head_pool::HeadPool;
use crate::seat::Seats;
use crate::tower_service::HttpService;

/// One worker's.
pub(crate) struct Spare<S: HttpService> {
    pub(crate) heads: RefCell<HeadPool>,
    pub(crate) answering: Seats<S::Answering>,
    pub(crate) bodies: Seats<S::Answer>,
}

impl<S: HttpService> Spare<S> {
    pub(crate) fn new() -> Self {
        Self { heads: RefCell::new(HeadPool::new()), answering: Seats::new(), bodies: Seats::new() }
    }
}
