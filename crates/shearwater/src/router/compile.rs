//! Compiles an app's routes, or reports all their mistakes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use matchit::{InsertError, Router};
use shearwater_engine::FieldLines;

use super::definitions::{Content, Definitions, PrefixDefinition, Registered, RouteDefinition};
use super::exact::Exact;
use super::method::RouteMethod;
use super::node::{ClaimKind, NodeBuilder, allow};
use super::table::{PrefixRoute, Preflight, RouteTable, Target};
use crate::error::{RouteError, RouteErrors, SourceLocation};
use crate::fast::{Cors, Fast, StaticResponse};
use crate::middleware::PathSteps;
use crate::path::{self, Path};

/// A segment that no request can have and no pattern names.
const UNNAMED: &str = "/\u{1}";

/// Checks definitions and compiles them.
pub(super) fn compile<S: 'static>(definitions: Definitions<S>) -> Result<RouteTable<S>, RouteErrors> {
    let Definitions { routes, prefixes, mut parts, errors } = definitions;
    let mut compiler = Compiler::new(errors);
    routes.into_iter().for_each(|route| compiler.route(route));
    let patterns = compiler.insert_patterns();
    let mut prefixes = compiler.prefixes(prefixes, &patterns);
    RouteErrors::check(std::mem::take(&mut compiler.errors))?;
    parts.middleware.sort();
    let exact = std::mem::take(&mut compiler.exact).into_iter().map(|(path, builder)| {
        let others = compiler.fallthrough_methods(&path, &builder, &patterns);
        let steps = parts.middleware.of_path(path.as_bytes());
        let is_bare = steps.is_empty();
        (path.into_bytes().into_boxed_slice(), builder.into_node(&others, steps, is_bare))
    });
    let exact = Exact::of(exact);
    let Compiler { mut targets, static_responses, pattern_builders, extensions, protocols, .. } = compiler;
    let is_only = pattern_builders.is_empty()
        && extensions.is_empty()
        && parts.middleware.is_empty()
        && matches!(&prefixes[..], [PrefixRoute { prefix, .. }] if prefix.is_empty());
    let mut everything = None;
    if is_only {
        prefixes.clear();
        // The last target is that of the only prefix.
        everything = targets.pop();
    }
    let node = |(_, builder): (String, NodeBuilder)| builder.into_node(&[], PathSteps::default(), false);
    Ok(RouteTable {
        exact,
        patterns,
        pattern_nodes: pattern_builders.into_iter().map(node).collect(),
        prefixes,
        everything,
        targets,
        static_responses,
        extensions,
        protocols,
        parts,
    })
}

/// The routes compiled so far.
struct Compiler<S> {
    errors: Vec<RouteError>,
    targets: Vec<Target<S>>,
    static_responses: Vec<StaticResponse>,
    /// Sorted, so that the same program always gets the same table.
    exact: BTreeMap<String, NodeBuilder>,
    /// Patterns in the order in which they were added.
    pattern_builders: Vec<(String, NodeBuilder)>,
    /// The index of each pattern in `pattern_builders`.
    numbers: HashMap<String, usize>,
    /// Extension methods, each once.
    extensions: Vec<Box<str>>,
    /// Protocols of extended CONNECTs.
    protocols: Vec<String>,
}

impl<S> Compiler<S> {
    fn new(errors: Vec<RouteError>) -> Self {
        Self {
            errors,
            targets: Vec::new(),
            static_responses: Vec::new(),
            exact: BTreeMap::new(),
            pattern_builders: Vec::new(),
            numbers: HashMap::new(),
            extensions: Vec::new(),
            protocols: Vec::new(),
        }
    }

    fn refuse(&mut self, given: SourceLocation, why: impl Into<String>) {
        self.errors.push(RouteError::Refused { given, why: why.into() });
    }

    fn route(&mut self, given: Registered<RouteDefinition<S>>) {
        let Registered { place, path, item } = given;
        let RouteDefinition { method, content, cors, protocol } = item;
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
        let kind = match content {
            Content::Fast(_) => ClaimKind::Constant,
            Content::Preflight { are_constant, .. } => ClaimKind::Preflight { are_constant },
            Content::Sync(..) | Content::Deferred(..) => ClaimKind::Handler,
        };
        let claimed = builder.claim(method.clone(), place.clone(), self.targets.len(), kind);
        if let Some(protocol) = protocol {
            builder.claim_connect(place.clone(), self.targets.len());
            self.protocols.push(protocol);
        }
        if let Some(name) = method.extension()
            && !self.extensions.iter().any(|known| **known == *name)
        {
            self.extensions.push(name.into());
        }
        self.errors.extend(claimed.err());
        match self.target(content, cors.as_ref()) {
            Ok(target) => self.targets.push(target),
            Err(why) => self.refuse(place, why),
        }
    }

    /// Creates the target of a handler.
    fn target(&mut self, content: Content<S>, cors: Option<&Cors>) -> Result<Target<S>, String> {
        let target = match content {
            Content::Fast(fast) => return self.constant(fast, cors),
            Content::Preflight { methods, cors, .. } => {
                return preflight(&methods, &cors).map(Target::Preflight);
            }
            Content::Sync(handler, body) => Target::Sync(handler, body),
            Content::Deferred(index, body) => Target::Deferred(index, body),
        };
        // An invalid policy is reported once, by the preflight.
        Ok(match cors.and_then(|cors| cors.response_lines(&FieldLines::new()).ok()) {
            Some(lines) => Target::Cors(Box::new((target, lines))),
            None => target,
        })
    }

    /// Encodes a constant.
    fn constant(&mut self, fast: Fast, cors: Option<&Cors>) -> Result<Target<S>, String> {
        let valid = cors.filter(|cors| cors.response_lines(&FieldLines::new()).is_ok());
        self.static_responses.push(fast.encode(valid)?);
        Ok(Target::Static(self.static_responses.len() - 1))
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
    fn prefixes(
        &mut self,
        given: Vec<Registered<PrefixDefinition<S>>>,
        patterns: &Router<usize>,
    ) -> Vec<PrefixRoute> {
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
            let target = match item {
                PrefixDefinition::Mount(index) => Ok(Target::Mount(index)),
                PrefixDefinition::Fallback(content) => self.target(content, None),
            };
            match target {
                Ok(target) => {
                    routes.push(PrefixRoute { prefix, target: self.targets.len() });
                    self.targets.push(target);
                }
                Err(why) => self.refuse(place, why),
            }
        }
        routes.sort_by_key(|route| Reverse(route.prefix.len()));
        routes
    }
}

/// Encodes the preflight responses of a table.
fn preflight(methods: &[RouteMethod], cors: &Cors) -> Result<Preflight, String> {
    cors.response_lines(&FieldLines::new())?;
    let allow = allow(methods.iter());
    let usable = allow.strip_suffix(", OPTIONS").unwrap_or(&allow);
    let lines = cors.preflight_lines(&allow, usable)?;
    Ok(Preflight { lines, methods: usable.split(", ").map(Into::into).collect() })
}
