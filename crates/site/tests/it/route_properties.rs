//! Compares random tables of routes with a linear search.

use shearwater_site::routes::Routes;

use crate::Numbers;

impl Numbers {
    /// Returns a path of up to `segments` segments, from few names so that many collide.
    fn path(&mut self, segments: usize) -> String {
        const NAMES: [&str; 8] = ["a", "b", "ab", "a b", "%25", "index.html", "long-name-of-a-segment", "b2"];
        let mut path: String =
            (0..self.below(segments + 1)).map(|_| format!("/{}", NAMES[self.below(8)])).collect();
        if path.is_empty() || self.below(4) == 0 {
            path.push('/');
        }
        path
    }
}

/// A route, decoded.
struct Given {
    name: String,
    is_beneath: bool,
}

fn name(path: &str) -> String {
    path[1..].replace("%25", "%")
}

/// Returns the expected route: the exact path, or the longest prefix.
fn wanted(given: &[Given], name: &str) -> u32 {
    let exact = given.iter().position(|route| !route.is_beneath && route.name == name);
    let has = |route: &(usize, &Given)| {
        let (_, route) = route;
        let own = route.name.trim_end_matches('/');
        route.is_beneath && (own.is_empty() || name == own || name.starts_with(&format!("{own}/")))
    };
    let longest = given.iter().enumerate().filter(has).max_by_key(|(_, route)| route.name.len());
    exact.or(longest.map(|(at, _)| at)).map_or(u32::MAX - 1, |at| at as u32)
}

#[test]
fn finds_the_same_as_a_linear_search() {
    let mut numbers = Numbers(0x5eed);
    let (mut found, mut refused) = (0, 0);
    for _ in 0..2_000 {
        let mut routes = Routes::new(u32::MAX - 1);
        let mut given: Vec<Given> = Vec::new();
        for _ in 0..numbers.below(30) {
            let path = numbers.path(4);
            let is_beneath = numbers.below(2) == 0;
            let text = match is_beneath {
                true => format!("{}/*", path.trim_end_matches('/')),
                false => path.clone(),
            };
            let name =
                if is_beneath { name(&format!("{}/", path.trim_end_matches('/'))) } else { name(&path) };
            let is_known = given.iter().any(|route| route.is_beneath == is_beneath && route.name == name);
            let added = routes.add(&text, given.len() as u32);
            assert_eq!(added.is_err(), is_known, "{text}: {added:?}");
            refused += usize::from(is_known);
            if !is_known {
                given.push(Given { name, is_beneath });
            }
        }
        for _ in 0..40 {
            let name = name(&numbers.path(6));
            let route = routes.find(name.as_bytes());
            assert_eq!(route, wanted(&given, &name), "{name:?}");
            found += usize::from(route < u32::MAX - 1);
        }
    }
    assert!(found > 20_000 && refused > 1_000, "{found} {refused}");
}
