//! State of handlers, by type.

use std::any::{Any, TypeId};

/// State shared by all workers.
#[derive(Default)]
pub(crate) struct States(Vec<(TypeId, Box<dyn Any + Send + Sync>)>);

impl States {
    pub(crate) fn push<T: Any + Send + Sync>(&mut self, state: T) {
        self.0.push((TypeId::of::<T>(), Box::new(state)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, of: TypeId) -> Option<&dyn Any> {
        self.0.iter().find(|(known, _)| *known == of).map(|(_, state)| &**state as &dyn Any)
    }
}

/// Creates a worker's local state, by the worker's number.
pub(crate) struct MakeLocal {
    of: TypeId,
    make: Box<dyn Fn(usize) -> Box<dyn Any> + Send + Sync>,
}

impl MakeLocal {
    pub(crate) fn new<T: Any>(make: impl Fn(usize) -> T + Send + Sync + 'static) -> Self {
        Self { of: TypeId::of::<T>(), make: Box::new(move |worker| Box::new(make(worker))) }
    }
}

/// One worker's local state.
pub(crate) struct Locals(Vec<(TypeId, Box<dyn Any>)>);

impl Locals {
    pub(crate) fn new(makers: &[MakeLocal], worker: usize) -> Self {
        Self(makers.iter().map(|local| (local.of, (local.make)(worker))).collect())
    }

    pub(crate) fn get(&self, of: TypeId) -> Option<&dyn Any> {
        self.0.iter().find(|(known, _)| *known == of).map(|(_, local)| &**local)
    }
}
