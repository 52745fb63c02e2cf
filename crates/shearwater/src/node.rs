//! What a path has: something for each of its methods.

use shearwater_http1::Method;

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
}

impl Node {
    pub(crate) fn new(
        targets: impl IntoIterator<Item = (Method, usize)>,
        allow: String,
        is_open: bool,
        steps: Steps,
    ) -> Self {
        let rest = Box::new(Rest { allow, steps });
        let mut node = Self { targets: [NONE; METHODS], is_open, is_bare: false, rest };
        for (method, target) in targets {
            node.targets[method as usize] =
                u32::try_from(target).expect("fewer targets than memory for them");
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
pub(crate) fn allow(methods: impl Iterator<Item = Method>) -> String {
    let mut all: Vec<Method> = Vec::new();
    for method in methods.filter(|method| *method != Method::Other) {
        if !all.contains(&method) {
            all.push(method);
        }
    }
    let implied = [(Method::Head, all.contains(&Method::Get)), (Method::Options, true)];
    for (method, is_implied) in implied {
        if is_implied && !all.contains(&method) {
            all.push(method);
        }
    }
    all.into_iter().filter_map(Method::name).collect::<Vec<_>>().join(", ")
}
