//! The router's data about a request, for its handler.

use std::any::{Any, TypeId};
use std::rc::Rc;

use matchit::Params;
use shearwater_engine::Context;

use crate::routes::WorkerRoutes;

/// Adds the router's data to a request while its handler runs.
pub(crate) struct RouteContext<'a> {
    pub(crate) worker: &'a Rc<WorkerRoutes>,
    pub(crate) params: Option<&'a Params<'a, 'a>>,
    pub(crate) mount_len: usize,
    /// True for a standard method, and for one that an enclosing router knows.
    pub(crate) is_method_known: bool,
}

impl Context for RouteContext<'_> {
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
        Some(Rc::new(OwnedRouteContext { worker, params, mount_len: self.mount_len }))
    }
}

/// An owned copy for deferred handlers.
struct OwnedRouteContext {
    worker: Rc<WorkerRoutes>,
    params: Vec<(Box<str>, Box<str>)>,
    mount_len: usize,
}

impl Context for OwnedRouteContext {
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
