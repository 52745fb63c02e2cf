//! Compiles an app's routes, or reports all their mistakes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use matchit::{InsertError, Router};
use shearwater_http1::Method;

use crate::app::{App, PrefixHandler, Registered};
use crate::encoded::{EncodedResponse, StaticResponse};
use crate::exact::Exact;
use crate::fast::Fast;
use crate::middleware::{Middleware, Steps};
use crate::node::allow;
use crate::node_builder::{ClaimedBy, NodeBuilder};
use crate::pattern::{self, Path};
use crate::plan::{PrefixRoute, PrefixTarget, RouteTable, Target};
use crate::route::Route;
use crate::{RouteError, RouteErrors, RouteMethod, SourceLocation};

/// A segment that no request can have and no pattern names.
const UNNAMED: &str = "/\u{1}";

/// Checks an app and compiles its routes.
pub(crate) fn compile(app: App) -> Result<RouteTable, RouteErrors> {
    let App {
        routes,
        fast,
        prefixes,
        services,
        mut middleware,
        states,
        locals,
        deferred,
        stacks,
        errors,
        ..
    } = app;
    let mut compiler = Compiler { errors, ..Compiler::default() };
    routes.into_iter().for_each(|route| compiler.route(route));
    let fast = fast.into_iter().enumerate();
    let fast: Vec<_> = fast.filter_map(|(number, fast)| compiler.claim_fast(number, fast)).collect();
    let patterns = compiler.insert_patterns();
    fast.into_iter().for_each(|fast| compiler.encode(fast, &patterns));
    let prefixes = compiler.prefixes(prefixes, &patterns);
    RouteErrors::check(std::mem::take(&mut compiler.errors))?;
    middleware.sort();
    let has_state = !states.is_empty() || !locals.is_empty();
    let exact = compiler.exact_nodes(&patterns, &middleware, has_state);
    let Compiler { targets, static_responses, fast, pattern_builders, extensions, .. } = compiler;
    let is_only = pattern_builders.is_empty() && extensions.is_empty() && middleware.is_empty() && !has_state;
    let everything = match &prefixes[..] {
        [PrefixRoute { prefix, target }] if prefix.is_empty() && is_only => Some(*target),
        _ => None,
    };
    let of_fast = |number: usize, method: &RouteMethod| fast[number].of(method);
    let node = |(_, builder): (String, NodeBuilder)| builder.into_node(&[], Steps::default(), of_fast);
    Ok(RouteTable {
        exact,
        everything,
        patterns,
        pattern_nodes: pattern_builders.into_iter().map(node).collect(),
        prefixes,
        targets,
        static_responses,
        services,
        extensions,
        middleware,
        states,
        locals,
        deferred,
        stacks,
    })
}

/// The target indices of a fast route.
struct FastTargets {
    response: usize,
    /// The target of `OPTIONS`.
    preflight: Option<usize>,
}

impl FastTargets {
    fn of(&self, method: &RouteMethod) -> usize {
        let is_options = method.standard() == Some(Method::Options);
        self.preflight.filter(|_| is_options).unwrap_or(self.response)
    }
}

/// The routes compiled so far.
#[derive(Default)]
struct Compiler {
    errors: Vec<RouteError>,
    targets: Vec<Target>,
    static_responses: Vec<StaticResponse>,
    /// By the index of the fast route; complete unless there are errors.
    fast: Vec<FastTargets>,
    /// Sorted, so that the same program always gets the same table.
    exact: BTreeMap<String, NodeBuilder>,
    /// Patterns in the order in which they were added.
    pattern_builders: Vec<(String, NodeBuilder)>,
    /// Extension methods, each once.
    extensions: Vec<Box<str>>,
    /// The index of each pattern in `pattern_builders`.
    numbers: HashMap<String, usize>,
}

impl Compiler {
    fn route(&mut self, given: Registered<Route>) {
        let Registered { place, path, item: route } = given;
        let builder = match pattern::read(&path) {
            Ok(Path::Exact(path)) => self.exact.entry(path).or_default(),
            Ok(Path::Pattern) => {
                let number = *self.numbers.entry(path.clone()).or_insert(self.pattern_builders.len());
                if number == self.pattern_builders.len() {
                    self.pattern_builders.push((path, NodeBuilder::default()));
                }
                &mut self.pattern_builders[number].1
            }
            Err(why) => return self.errors.push(RouteError::Refused { given: place, why }),
        };
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
            self.errors.push(RouteError::Refused { given: place.clone(), why });
        }
        let claimed = builder.claim(route.method.clone(), place, ClaimedBy::Target(self.targets.len()));
        self.errors.extend(claimed.err());
        self.targets.push(Target::Route(route));
    }

    /// Registers a fast route's methods. Returns it with its path as requests send it.
    fn claim_fast(&mut self, number: usize, given: Registered<Fast>) -> Option<Registered<Fast>> {
        let Registered { place, path, item: fast } = given;
        let refused = |why: String| RouteError::Refused { given: place.clone(), why };
        let path = match pattern::read(&path) {
            Ok(Path::Exact(path)) => path,
            Ok(Path::Pattern) => {
                self.errors.push(refused("a fast route can't have parameters".to_owned()));
                return None;
            }
            Err(why) => {
                self.errors.push(refused(why));
                return None;
            }
        };
        let builder = self.exact.entry(path.clone()).or_default();
        for method in fast.all_methods() {
            self.errors.extend(builder.claim(method.into(), place.clone(), ClaimedBy::Fast(number)).err());
        }
        Some(Registered { place, path, item: fast })
    }

    /// Builds the tree of patterns, whose values are indices of `pattern_builders`.
    fn insert_patterns(&mut self) -> Router<usize> {
        let mut router = Router::new();
        for (number, (path, builder)) in self.pattern_builders.iter().enumerate() {
            let Some(place) = builder.place() else { continue };
            if let Some(name) = pattern::repeated_name(path) {
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

    /// Encodes a fast route whose methods are registered.
    fn encode(&mut self, given: Registered<Fast>, patterns: &Router<usize>) {
        let Registered { place, path, item: fast } = given;
        let Some(builder) = self.exact.get(&path) else { return };
        let allow = allow(builder.methods().chain(&self.fallthrough_methods(&path, builder, patterns)));
        let encoded = match fast.encode(&allow) {
            Ok(encoded) => encoded,
            Err(why) => return self.errors.push(RouteError::Refused { given: place, why }),
        };
        let response = self.targets.len();
        self.targets.push(match encoded.response {
            EncodedResponse::Static(fixed) => {
                self.static_responses.push(fixed);
                Target::Static(self.static_responses.len() - 1)
            }
            EncodedResponse::Dynamic(dynamic) => Target::Dynamic(dynamic),
        });
        let preflight = encoded.preflight.map(|lines| {
            self.targets.push(Target::Preflight(lines));
            self.targets.len() - 1
        });
        self.fast.push(FastTargets { response, preflight });
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

    fn exact_nodes(&mut self, patterns: &Router<usize>, middleware: &Middleware, has_state: bool) -> Exact {
        let exact = std::mem::take(&mut self.exact);
        let nodes = exact.into_iter().map(|(path, builder)| {
            let fallthrough_methods = self.fallthrough_methods(&path, &builder, patterns);
            let path = path.into_bytes().into_boxed_slice();
            let of_fast = |number: usize, method: &RouteMethod| self.fast[number].of(method);
            let mut node = builder.into_node(&fallthrough_methods, middleware.steps(&path), of_fast);
            node.is_bare = node.steps().is_empty() && !has_state;
            (path, node)
        });
        Exact::of(nodes)
    }

    /// Compiles mounts and fallbacks, sorted by length of their prefixes, the longest first.
    fn prefixes(
        &mut self,
        handlers: Vec<Registered<PrefixHandler>>,
        patterns: &Router<usize>,
    ) -> Vec<PrefixRoute> {
        let mut places: HashMap<String, SourceLocation> = HashMap::new();
        // Has more segments than any pattern: a pattern that matches them takes all paths under the prefix.
        let deepest =
            self.pattern_builders.iter().map(|(path, _)| path.matches('/').count()).max().unwrap_or(0);
        let unnamed = UNNAMED.repeat(deepest + 1);
        let mut routes = Vec::new();
        for Registered { place, path, item } in handlers {
            let prefix = match pattern::prefix(&path) {
                Ok(prefix) => prefix,
                Err(why) => {
                    self.errors.push(RouteError::Refused { given: place, why });
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
            let target = match item {
                PrefixHandler::Mount(service) => PrefixTarget::Mount(service),
                PrefixHandler::Fallback(route) => {
                    if let Some(why) = route.mistake("") {
                        self.errors.push(RouteError::Refused { given: place, why });
                    }
                    self.targets.push(Target::Route(route));
                    PrefixTarget::Fallback(self.targets.len() - 1)
                }
            };
            routes.push(PrefixRoute { prefix, target });
        }
        routes.sort_by_key(|route| Reverse(route.prefix.len()));
        routes
    }
}
