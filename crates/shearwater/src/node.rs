//! What a path has: something for each of its methods.

use shearwater_http1::{Head, Method};

use crate::RouteMethod;
use crate::middleware::Steps;

/// As many as [`Method`] has.
const METHODS: usize = Method::Other as usize + 1;

/// No target.
const NONE: u32 = u32::MAX;

/// A path's targets by method, as numbers. Small, for each request looks at one that nobody has looked at for a while.
#[derive(Debug)]
pub(crate) struct Node {
    targets: [u32; METHODS],
    /// It has fast routes alone: requests with other methods go on.
    pub(crate) is_open: bool,
    /// Nothing runs around its requests, and nobody asks for more than what was sent.
    pub(crate) is_bare: bool,
    rest: Box<Rest>,
}

/// What most requests have no use for.
#[derive(Debug)]
struct Rest {
    allow: String,
    steps: Steps,
    /// Targets of extension methods, by name.
    extensions: Vec<(Box<str>, u32)>,
}

impl Node {
    pub(crate) fn new<'a>(
        targets: impl IntoIterator<Item = (&'a RouteMethod, usize)>,
        allow: String,
        is_open: bool,
        steps: Steps,
    ) -> Self {
        let rest = Box::new(Rest { allow, steps, extensions: Vec::new() });
        let mut node = Self { targets: [NONE; METHODS], is_open, is_bare: false, rest };
        for (method, target) in targets {
            let target = u32::try_from(target).expect("fewer targets than memory for them");
            match (method.standard(), method.extension()) {
                (Some(method), _) => node.targets[method as usize] = target,
                (None, name) => node.rest.extensions.extend(name.map(|name| (name.into(), target))),
            }
        }
        let (get, head) = (Method::Get as usize, Method::Head as usize);
        if node.targets[head] == NONE {
            node.targets[head] = node.targets[get];
        }
        node
    }

    /// The number of what answers a method. That of `GET` answers `HEAD` too, unless it has one of its own.
    #[inline]
    pub(crate) fn target(&self, method: Method) -> usize {
        self.targets[method as usize] as usize
    }

    /// The number of what answers a request, by an extension method too.
    pub(crate) fn target_of(&self, head: &Head<'_>) -> usize {
        let name = head.method_name();
        match head.method() {
            Method::Other => {
                let found = self.rest.extensions.iter().find(|(known, _)| **known == *name);
                found.map_or(NONE, |(_, target)| *target) as usize
            }
            method => self.target(method),
        }
    }

    /// What runs around its requests; for the node of an exact path.
    pub(crate) fn steps(&self) -> &Steps {
        &self.rest.steps
    }

    /// Its methods, as `Allow` lists them (RFC 9110 section 10.2.1).
    pub(crate) fn allow(&self) -> &str {
        &self.rest.allow
    }
}

/// A list for `Allow`: methods that have something, each once, and those that come with them.
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
