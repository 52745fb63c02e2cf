//! Compiles an app's routes, or reports all their mistakes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use matchit::{InsertError, Router};
use shearwater_http1::Method;

use super::exact::Exact;
use super::node::NodeBuilder;
use super::route::{Route, RouteMethod};
use super::table::{Parts, PrefixRoute, RouteTable, Target};
use crate::error::{RouteError, RouteErrors, SourceLocation};
use crate::fast::{Encoded, Fast, StaticResponse};
use crate::middleware::Steps;
use crate::path::{self, Path};

/// A segment that no request can have and no pattern names.
const UNNAMED: &str = "/\u{1}";

/// A registered item with its path and its source location.
pub(crate) struct Registered<T> {
    pub(crate) place: SourceLocation,
    pub(crate) path: String,
    pub(crate) item: T,
}

/// An app's definitions.
#[derive(Default)]
pub(crate) struct Definitions {
    pub(crate) routes: Vec<Registered<Route>>,
    pub(crate) fast: Vec<Registered<Fast>>,
    /// Mounts and fallbacks: handlers for all paths under a prefix without a route of their own.
    pub(crate) prefixes: Vec<Registered<Target>>,
    pub(crate) parts: Parts,
    pub(crate) errors: Vec<RouteError>,
}

/// Checks definitions and compiles them.
pub(super) fn compile(definitions: Definitions) -> Result<RouteTable, RouteErrors> {
    let Definitions { routes, fast, prefixes, mut parts, errors } = definitions;
    let mut compiler = Compiler { errors, ..Compiler::default() };
    routes.into_iter().for_each(|route| compiler.route(route));
    let fast: Vec<_> = fast.into_iter().filter_map(|fast| compiler.claim_fast(fast)).collect();
    let patterns = compiler.insert_patterns();
    fast.into_iter().for_each(|fast| compiler.encode(fast, &patterns));
    let mut prefixes = compiler.prefixes(prefixes, &patterns);
    RouteErrors::check(std::mem::take(&mut compiler.errors))?;
    parts.middleware.sort();
    let has_state = !parts.states.is_empty() || !parts.locals.is_empty();
    let exact = std::mem::take(&mut compiler.exact).into_iter().map(|(path, builder)| {
        let others = compiler.fallthrough_methods(&path, &builder, &patterns);
        let steps = parts.middleware.steps(path.as_bytes());
        let is_bare = steps.is_empty() && !has_state;
        (path.into_bytes().into_boxed_slice(), builder.into_node(&others, steps, is_bare))
    });
    let exact = Exact::of(exact);
    let Compiler { mut targets, static_responses, pattern_builders, extensions, .. } = compiler;
    let is_only = pattern_builders.is_empty()
        && extensions.is_empty()
        && parts.middleware.is_empty()
        && !has_state
        && matches!(&prefixes[..], [PrefixRoute { prefix, .. }] if prefix.is_empty());
    let mut everything = None;
    if is_only {
        prefixes.clear();
        // The last target is that of the only prefix.
        everything = targets.pop();
    }
    let node = |(_, builder): (String, NodeBuilder)| builder.into_node(&[], Steps::default(), false);
    Ok(RouteTable {
        exact,
        patterns,
        pattern_nodes: pattern_builders.into_iter().map(node).collect(),
        prefixes,
        everything,
        targets,
        static_responses,
        extensions,
        parts,
    })
}

/// A fast route whose methods are registered.
struct ClaimedFast {
    place: SourceLocation,
    /// The path as requests send it.
    path: String,
    fast: Fast,
    /// The index of its response's target; that of its preflight follows.
    target: usize,
}

/// The routes compiled so far.
#[derive(Default)]
struct Compiler {
    errors: Vec<RouteError>,
    targets: Vec<Target>,
    static_responses: Vec<StaticResponse>,
    /// Sorted, so that the same program always gets the same table.
    exact: BTreeMap<String, NodeBuilder>,
    /// Patterns in the order in which they were added.
    pattern_builders: Vec<(String, NodeBuilder)>,
    /// The index of each pattern in `pattern_builders`.
    numbers: HashMap<String, usize>,
    /// Extension methods, each once.
    extensions: Vec<Box<str>>,
}

impl Compiler {
    fn refuse(&mut self, given: SourceLocation, why: impl Into<String>) {
        self.errors.push(RouteError::Refused { given, why: why.into() });
    }

    fn route(&mut self, given: Registered<Route>) {
        let Registered { place, path, item: route } = given;
        let builder = match path::read(&path) {
            Ok(Path::Exact(path)) => self.exact.entry(path).or_default(),
            Ok(Path::Pattern) => {
                let number = *self.numbers.entry(path.clone()).or_insert(self.pattern_builders.len());
                if number == self.pattern_builders.len() {
                    self.pattern_builders.push((path, NodeBuilder::default()));
                }
                &mut self.pattern_builders[number].1
            }
            Err(why) => return self.refuse(place, why),
        };
        let claimed = builder.claim(route.method.clone(), place.clone(), self.targets.len(), false);
        if route.protocol.is_some() {
            builder.claim_connect(place.clone(), self.targets.len());
        }
        if let Some(why) = route.protocol_mistake() {
            self.errors.push(RouteError::Refused { given: place.clone(), why });
        }
        if let Some(name) = route.method.extension()
            && !self.extensions.iter().any(|known| **known == *name)
        {
            self.extensions.push(name.into());
        }
        let kind = match route.method.standard() {
            Some(Method::Get) => "get",
            Some(Method::Post) => "post",
            _ => "route",
        };
        if let Some(why) = route.mistake(kind) {
            self.refuse(place, why);
        }
        self.errors.extend(claimed.err());
        self.targets.push(Target::Route(route));
    }

    /// Registers a fast route's methods and reserves its targets.
    fn claim_fast(&mut self, given: Registered<Fast>) -> Option<ClaimedFast> {
        let Registered { place, path, item: fast } = given;
        let path = match path::read(&path) {
            Ok(Path::Exact(path)) => path,
            Ok(Path::Pattern) => {
                self.refuse(place, "a fast route can't have parameters");
                return None;
            }
            Err(why) => {
                self.refuse(place, why);
                return None;
            }
        };
        let target = self.targets.len();
        self.targets.extend([Target::Static(usize::MAX), Target::Static(usize::MAX)]);
        let builder = self.exact.entry(path.clone()).or_default();
        for method in fast.all_methods() {
            let target = target + usize::from(fast.is_preflight(method));
            self.errors.extend(builder.claim(method.into(), place.clone(), target, true).err());
        }
        Some(ClaimedFast { place, path, fast, target })
    }

    /// Builds the tree of patterns, whose values are indices of `pattern_builders`.
    fn insert_patterns(&mut self) -> Router<usize> {
        let mut router = Router::new();
        for (number, (path, builder)) in self.pattern_builders.iter().enumerate() {
            let Some(place) = builder.place() else { continue };
            if let Some(name) = path::repeated_name(path) {
                let why = format!("two of its parameters are named {name:?}");
                self.errors.push(RouteError::Refused { given: place.clone(), why });
            } else if let Err(error) = router.insert(path.as_str(), number) {
                self.errors.push(self.insert_error(place.clone(), error));
            }
        }
        router
    }

    /// Returns the error for a pattern that matchit rejects.
    fn insert_error(&self, given: SourceLocation, error: InsertError) -> RouteError {
        let why = match error {
            InsertError::Conflict { with } => match self.place_of(&with) {
                Some(with) => return RouteError::Conflict { given, with: with.clone() },
                None => format!("it conflicts with {with}"),
            },
            InsertError::InvalidParamSegment => "a segment can have one parameter only".to_owned(),
            InsertError::InvalidCatchAll => {
                "{*name} must be last, because it matches the rest of the path".to_owned()
            }
            _ => "a parameter is written {name} or {*name}, and a literal brace {{ or }}".to_owned(),
        };
        RouteError::Refused { given, why }
    }

    /// Returns the place that adds a pattern first.
    fn place_of(&self, pattern: &str) -> Option<&SourceLocation> {
        self.numbers.get(pattern).and_then(|&number| self.pattern_builders[number].1.place())
    }

    /// Encodes a fast route, once all methods of its path are known.
    fn encode(&mut self, claimed: ClaimedFast, patterns: &Router<usize>) {
        let ClaimedFast { place, path, fast, target } = claimed;
        let Some(builder) = self.exact.get(&path) else { return };
        let allow = builder.allow(&self.fallthrough_methods(&path, builder, patterns));
        let (response, preflight) = match fast.encode(&allow) {
            Ok(encoded) => encoded,
            Err(why) => return self.refuse(place, why),
        };
        self.targets[target] = match response {
            Encoded::Static(fixed) => {
                self.static_responses.push(fixed);
                Target::Static(self.static_responses.len() - 1)
            }
            Encoded::Dynamic(dynamic) => Target::Dynamic(dynamic),
        };
        if let Some(lines) = preflight {
            self.targets[target + 1] = Target::Preflight(lines);
        }
    }

    /// Returns the methods of the pattern that requests of an exact path fall through to.
    fn fallthrough_methods(
        &self,
        path: &str,
        builder: &NodeBuilder,
        patterns: &Router<usize>,
    ) -> Vec<RouteMethod> {
        let matched = patterns.at(path).ok().filter(|_| builder.falls_through());
        matched.map_or_else(Vec::new, |matched| {
            self.pattern_builders[*matched.value].1.methods().cloned().collect()
        })
    }

    /// Compiles mounts and fallbacks, sorted by length of their prefixes, the longest first.
    fn prefixes(&mut self, given: Vec<Registered<Target>>, patterns: &Router<usize>) -> Vec<PrefixRoute> {
        let mut places: HashMap<String, SourceLocation> = HashMap::new();
        // Has more segments than any pattern: a pattern that matches them takes all paths under the prefix.
        let deepest =
            self.pattern_builders.iter().map(|(path, _)| path.matches('/').count()).max().unwrap_or(0);
        let unnamed = UNNAMED.repeat(deepest + 1);
        let mut routes = Vec::new();
        for Registered { place, path, item } in given {
            let prefix = match path::prefix(&path) {
                Ok(prefix) => prefix,
                Err(why) => {
                    self.refuse(place, why);
                    continue;
                }
            };
            if let Some(with) = places.insert(prefix.clone(), place.clone()) {
                self.errors.push(RouteError::Conflict { given: place.clone(), with });
            }
            let all = format!("{prefix}{unnamed}");
            let before = patterns.at(&all).ok();
            if let Some(by) = before.and_then(|matched| self.pattern_builders[*matched.value].1.place()) {
                self.errors.push(RouteError::Unreachable { given: place.clone(), by: by.clone() });
            }
            if let Target::Route(route) = &item
                && let Some(why) = route.mistake("")
            {
                self.refuse(place, why);
            }
            routes.push(PrefixRoute { prefix, target: self.targets.len() });
            self.targets.push(item);
        }
        routes.sort_by_key(|route| Reverse(route.prefix.len()));
        routes
    }
}
