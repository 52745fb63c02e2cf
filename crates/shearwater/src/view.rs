//! What the router knows of a request, for its handler.

use std::any::{Any, TypeId};

use matchit::Params;
use shearwater_engine::Context;

use crate::states::{Locals, States};

/// Lies over a request while it is answered.
pub(crate) struct View<'a> {
    pub(crate) params: Option<&'a Params<'a, 'a>>,
    pub(crate) mount_len: usize,
    pub(crate) states: &'a States,
    pub(crate) locals: &'a Locals,
}

impl Context for View<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        self.params?.get(name)
    }

    fn mount_len(&self) -> usize {
        self.mount_len
    }

    fn state(&self, of: TypeId) -> Option<&dyn Any> {
        self.states.get(of)
    }

    fn local(&self, of: TypeId) -> Option<&dyn Any> {
        self.locals.get(of)
    }
}
