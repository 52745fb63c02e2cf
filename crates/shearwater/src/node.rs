//! A path's method table.

use shearwater_http1::{Head, Method};

use crate::RouteMethod;
use crate::middleware::Steps;

/// Number of [`Method`]s.
const METHODS: usize = Method::Other as usize + 1;

/// No target.
const NONE: u32 = u32::MAX;

/// A path's target indices by method. Small, because most requests find it outside the cache.
#[derive(Debug)]
pub(crate) struct Node {
    targets: [u32; METHODS],
    /// True if the path has fast routes only: requests with other methods fall through to patterns.
    pub(crate) falls_through: bool,
    /// True if no middleware runs for the path and handlers can't ask for state.
    pub(crate) is_bare: bool,
    details: Box<Details>,
}

/// The parts of a node that most requests don't need.
#[derive(Debug)]
struct Details {
    allow: String,
    steps: Steps,
    /// Targets of extension methods by name.
    extensions: Vec<(Box<str>, u32)>,
}

impl Node {
    pub(crate) fn new<'a>(
        targets: impl IntoIterator<Item = (&'a RouteMethod, usize)>,
        allow: String,
        falls_through: bool,
        steps: Steps,
    ) -> Self {
        let details = Box::new(Details { allow, steps, extensions: Vec::new() });
        let mut node = Self { targets: [NONE; METHODS], falls_through, is_bare: false, details };
        for (method, target) in targets {
            let target = u32::try_from(target).expect("memory holds fewer than 2^32 targets");
            match (method.standard(), method.extension()) {
                (Some(method), _) => node.targets[method as usize] = target,
                (None, name) => node.details.extensions.extend(name.map(|name| (name.into(), target))),
            }
        }
        let (get, head) = (Method::Get as usize, Method::Head as usize);
        if node.targets[head] == NONE {
            node.targets[head] = node.targets[get];
        }
        node
    }

    /// Returns the target index for a standard method. `HEAD` falls back to `GET`.
    #[inline]
    pub(crate) fn target(&self, method: Method) -> usize {
        self.targets[method as usize] as usize
    }

    /// Returns the target index for a request, whose method may be an extension.
    pub(crate) fn target_of(&self, head: &Head<'_>) -> usize {
        let name = head.method_name();
        match head.method() {
            Method::Other => {
                let found = self.details.extensions.iter().find(|(known, _)| **known == *name);
                found.map_or(NONE, |(_, target)| *target) as usize
            }
            method => self.target(method),
        }
    }

    /// Returns the middleware of an exact path.
    pub(crate) fn steps(&self) -> &Steps {
        &self.details.steps
    }

    /// Returns its methods as `Allow` lists them (RFC 9110 section 10.2.1).
    pub(crate) fn allow(&self) -> &str {
        &self.details.allow
    }
}

/// Returns the value of `Allow`: each method once, with `HEAD` for `GET` and with `OPTIONS`.
pub(crate) fn allow<'a>(methods: impl Iterator<Item = &'a RouteMethod>) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut add = |method: String| {
        if !all.contains(&method) {
            all.push(method);
        }
    };
    let mut has_get = false;
    for method in methods.filter(|method| method.standard() != Some(Method::Other)) {
        has_get |= method.standard() == Some(Method::Get);
        add(method.to_string());
    }
    if has_get {
        add("HEAD".to_owned());
    }
    add("OPTIONS".to_owned());
    all.join(", ")
}
