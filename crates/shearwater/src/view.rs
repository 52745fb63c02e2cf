//! What the router knows of a request, for its handler.

use std::any::{Any, TypeId};
use std::rc::Rc;

use matchit::Params;
use shearwater_engine::Context;

use crate::routes::Worker;

/// Lies over a request while it is answered.
pub(crate) struct View<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) params: Option<&'a Params<'a, 'a>>,
    pub(crate) mount_len: usize,
    /// True for a standard method, and for one that a router around this one has.
    pub(crate) is_method_known: bool,
}

impl Context for View<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params?.get(name)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn state(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.states().get(of)
    }

    fn local(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.locals().get(of)
    }

    fn knows_method(&self, name: &str) -> bool {
        self.is_method_known || self.worker.knows_method(name)
    }

    fn kept(&self) -> Option<Rc<dyn Context>> {
        let worker = Rc::clone(self.worker);
        let owned = |(name, value): (&str, &str)| (name.into(), value.into());
        let params = self.params.map(|params| params.iter().map(owned).collect()).unwrap_or_default();
        Some(Rc::new(KeptView { worker, params, mount_len: self.mount_len }))
    }
}

/// The same, for as long as a handler needs that answers later.
struct KeptView {
    worker: Rc<Worker>,
    params: Vec<(Box<str>, Box<str>)>,
    mount_len: usize,
}

impl Context for KeptView {
    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn state(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.states().get(of)
    }

    fn local(&self, of: TypeId) -> Option<&dyn Any> {
        self.worker.locals().get(of)
    }
}
