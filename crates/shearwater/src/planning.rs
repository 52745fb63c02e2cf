//! From what a program has given to an app to a plan, or to all that is wrong with it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use matchit::{InsertError, Router};
use shearwater_http1::Method;

use crate::app::{App, Beneath as GivenBeneath, Given};
use crate::draft::{By, Draft};
use crate::encoded::{Answer, Block};
use crate::exact::Exact;
use crate::fast::Fast;
use crate::middleware::{Middleware, Steps};
use crate::node::allow;
use crate::pattern::{self, Path};
use crate::plan::{Answerer, Beneath, Plan, Target};
use crate::route::Route;
use crate::{Place, RouteError, RouteErrors, RouteMethod};

/// A segment that no request has and no pattern names.
const UNNAMED: &str = "/\u{1}";

/// Checks and settles all that was given.
pub(crate) fn plan(app: App) -> Result<Plan, RouteErrors> {
    let App {
        routes, fast, beneath, services, mut middleware, states, locals, later, stacks, errors, ..
    } = app;
    let mut planning = Planning { errors, ..Planning::default() };
    routes.into_iter().for_each(|route| planning.route(route));
    let fast = fast.into_iter().enumerate();
    let fast: Vec<_> = fast.filter_map(|(number, fast)| planning.claim_fast(number, fast)).collect();
    let patterns = planning.insert_patterns();
    fast.into_iter().for_each(|fast| planning.encode(fast, &patterns));
    let beneath = planning.beneath(beneath, &patterns);
    RouteErrors::of(std::mem::take(&mut planning.errors))?;
    middleware.settle();
    let has_state = !states.is_empty() || !locals.is_empty();
    let exact = planning.exact_nodes(&patterns, &middleware, has_state);
    let Planning { targets, blocks, fast, drafts, extensions, .. } = planning;
    let is_only = drafts.is_empty() && extensions.is_empty() && middleware.is_empty() && !has_state;
    let everything = match &beneath[..] {
        [Beneath { prefix, by }] if prefix.is_empty() && is_only => Some(*by),
        _ => None,
    };
    let of_fast = |number: usize, method: &RouteMethod| fast[number].of(method);
    let node = |(_, draft): (String, Draft)| draft.into_node(&[], Steps::default(), of_fast);
    Ok(Plan {
        exact,
        everything,
        patterns,
        pattern_nodes: drafts.into_iter().map(node).collect(),
        beneath,
        targets,
        blocks,
        services,
        extensions,
        middleware,
        states,
        locals,
        later,
        stacks,
    })
}

/// The numbers of a fast route's targets.
struct FastTargets {
    answer: usize,
    /// For `OPTIONS`.
    preflight: Option<usize>,
}

impl FastTargets {
    fn of(&self, method: &RouteMethod) -> usize {
        let is_options = method.standard() == Some(Method::Options);
        self.preflight.filter(|_| is_options).unwrap_or(self.answer)
    }
}

/// What is settled so far.
#[derive(Default)]
struct Planning {
    errors: Vec<RouteError>,
    targets: Vec<Target>,
    blocks: Vec<Block>,
    /// By the number of the fast route: each has its own unless there is an error.
    fast: Vec<FastTargets>,
    /// In order, so that the same program has the same table each time.
    exact: BTreeMap<String, Draft>,
    /// Patterns, in the order in which they were given.
    drafts: Vec<(String, Draft)>,
    /// Names of extension methods, each once.
    extensions: Vec<Box<str>>,
    /// The number of each pattern's draft.
    numbers: HashMap<String, usize>,
}

impl Planning {
    fn route(&mut self, given: Given<Route>) {
        let Given { place, path, what: route } = given;
        let draft = match pattern::read(&path) {
            Ok(Path::Exact(path)) => self.exact.entry(path).or_default(),
            Ok(Path::Pattern) => {
                let number = *self.numbers.entry(path.clone()).or_insert(self.drafts.len());
                if number == self.drafts.len() {
                    self.drafts.push((path, Draft::default()));
                }
                &mut self.drafts[number].1
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
        let claimed = draft.claim(route.method.clone(), place, By::Target(self.targets.len()));
        self.errors.extend(claimed.err());
        self.targets.push(Target::Route(route));
    }

    /// Takes a fast route's methods; gives it back with its path as requests have it.
    fn claim_fast(&mut self, number: usize, given: Given<Fast>) -> Option<Given<Fast>> {
        let Given { place, path, what: fast } = given;
        let refused = |why: String| RouteError::Refused { given: place.clone(), why };
        let path = match pattern::read(&path) {
            Ok(Path::Exact(path)) => path,
            Ok(Path::Pattern) => {
                self.errors.push(refused("a fast route has no parameters".to_owned()));
                return None;
            }
            Err(why) => {
                self.errors.push(refused(why));
                return None;
            }
        };
        let draft = self.exact.entry(path.clone()).or_default();
        for method in fast.answered() {
            self.errors.extend(draft.claim(method.into(), place.clone(), By::Fast(number)).err());
        }
        Some(Given { place, path, what: fast })
    }

    /// Builds the tree of patterns, which holds the numbers of their drafts.
    fn insert_patterns(&mut self) -> Router<usize> {
        let mut router = Router::new();
        for (number, (path, draft)) in self.drafts.iter().enumerate() {
            let Some(place) = draft.place() else { continue };
            if let Some(name) = pattern::repeated_name(path) {
                let why = format!("two of its parameters are called {name:?}");
                self.errors.push(RouteError::Refused { given: place.clone(), why });
            } else if let Err(error) = router.insert(path.as_str(), number) {
                self.errors.push(self.at_odds(place.clone(), error));
            }
        }
        router
    }

    /// Why a pattern can't stand beside the others.
    fn at_odds(&self, given: Place, error: InsertError) -> RouteError {
        let why = match error {
            InsertError::Conflict { with } => match self.place_of(&with) {
                Some(with) => return RouteError::Conflict { given, with: with.clone() },
                None => format!("it stands for the same as {with}"),
            },
            InsertError::InvalidParamSegment => "a segment has one parameter at most".to_owned(),
            InsertError::InvalidCatchAll => {
                "nothing stands behind {*name}, which takes all the rest".to_owned()
            }
            _ => "a parameter is {name} or {*name}, and a brace itself is doubled".to_owned(),
        };
        RouteError::Refused { given, why }
    }

    /// Where a pattern was given first.
    fn place_of(&self, pattern: &str) -> Option<&Place> {
        self.numbers.get(pattern).and_then(|&number| self.drafts[number].1.place())
    }

    /// Encodes a fast route whose methods were taken.
    fn encode(&mut self, given: Given<Fast>, patterns: &Router<usize>) {
        let Given { place, path, what: fast } = given;
        let Some(draft) = self.exact.get(&path) else { return };
        let allow = allow(draft.methods().chain(&self.others(&path, draft, patterns)));
        let encoded = match fast.encode(&allow) {
            Ok(encoded) => encoded,
            Err(why) => return self.errors.push(RouteError::Refused { given: place, why }),
        };
        let answer = self.targets.len();
        self.targets.push(match encoded.answer {
            Answer::Block(block) => {
                self.blocks.push(block);
                Target::Block(self.blocks.len() - 1)
            }
            Answer::Written(written) => Target::Written(written),
        });
        let preflight = encoded.preflight.map(|lines| {
            self.targets.push(Target::Preflight(lines));
            self.targets.len() - 1
        });
        self.fast.push(FastTargets { answer, preflight });
    }

    /// The methods of the pattern that requests of an exact path go on to.
    fn others(&self, path: &str, draft: &Draft, patterns: &Router<usize>) -> Vec<RouteMethod> {
        let matched = patterns.at(path).ok().filter(|_| draft.is_open());
        matched.map_or_else(Vec::new, |matched| self.drafts[*matched.value].1.methods().cloned().collect())
    }

    fn exact_nodes(&mut self, patterns: &Router<usize>, middleware: &Middleware, has_state: bool) -> Exact {
        let exact = std::mem::take(&mut self.exact);
        let nodes = exact.into_iter().map(|(path, draft)| {
            let others = self.others(&path, &draft, patterns);
            let path = path.into_bytes().into_boxed_slice();
            let of_fast = |number: usize, method: &RouteMethod| self.fast[number].of(method);
            let mut node = draft.into_node(&others, middleware.steps(&path), of_fast);
            node.is_bare = node.steps().is_empty() && !has_state;
            (path, node)
        });
        Exact::of(nodes)
    }

    /// What answers beneath prefixes, the longest first.
    fn beneath(&mut self, given: Vec<Given<GivenBeneath>>, patterns: &Router<usize>) -> Vec<Beneath> {
        let mut places: HashMap<String, Place> = HashMap::new();
        // More segments than any pattern has: what matches them beneath a prefix takes all that lies there.
        let deepest = self.drafts.iter().map(|(path, _)| path.matches('/').count()).max().unwrap_or(0);
        let unnamed = UNNAMED.repeat(deepest + 1);
        let mut settled = Vec::new();
        for Given { place, path, what } in given {
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
            if let Some(by) = before.and_then(|matched| self.drafts[*matched.value].1.place()) {
                self.errors.push(RouteError::Unreachable { given: place.clone(), by: by.clone() });
            }
            let by = match what {
                GivenBeneath::Mount(service) => Answerer::Mount(service),
                GivenBeneath::Fallback(route) => {
                    if let Some(why) = route.mistake("") {
                        self.errors.push(RouteError::Refused { given: place, why });
                    }
                    self.targets.push(Target::Route(route));
                    Answerer::Fallback(self.targets.len() - 1)
                }
            };
            settled.push(Beneath { prefix, by });
        }
        settled.sort_by_key(|beneath| Reverse(beneath.prefix.len()));
        settled
    }
}
