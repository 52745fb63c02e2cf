//! Why this server answers otherwise than the others where it does.

mod codings;
mod conditions;
mod fields;
mod messages;
mod methods;
mod paths;

use super::case::Case;
use super::comparison::Peer;
use super::outcome::Difference;

/// Differences of one cause.
#[derive(Debug)]
pub(super) struct Cause {
    pub(super) title: &'static str,
    /// What is said for it, or that another does better; sections are those of RFC 9110, unless said otherwise.
    pub(super) why: &'static str,
    pub(super) covers: &'static [Cover],
}

/// Differences that are covered.
#[derive(Debug)]
pub(super) struct Cover {
    /// One of the servers, or each.
    peer: Option<Peer>,
    aspect: &'static str,
    /// Whole values; `*` is any.
    ours: &'static str,
    theirs: &'static str,
    /// What the request's name has in it, one of these; none: any request. Its site stands before the name, `$` behind it.
    of: &'static [&'static str],
}

const NGINX: Option<Peer> = Some(Peer::Nginx);
const STATIC_WEB_SERVER: Option<Peer> = Some(Peer::StaticWebServer);
const EACH: Option<Peer> = None;

/// Another status.
const fn status(
    peer: Option<Peer>,
    ours: &'static str,
    theirs: &'static str,
    of: &'static [&'static str],
) -> Cover {
    Cover { peer, aspect: "status", ours, theirs, of }
}

/// Another value of something else.
const fn value(
    peer: Option<Peer>,
    aspect: &'static str,
    ours: &'static str,
    theirs: &'static str,
    of: &'static [&'static str],
) -> Cover {
    Cover { peer, aspect, ours, theirs, of }
}

impl Cause {
    /// The place of the first of its covers that covers this.
    pub(super) fn cover_of(&self, case: &Case, peer: Peer, difference: &Difference) -> Option<usize> {
        self.covers.iter().position(|cover| cover.covers(case, peer, difference))
    }
}

impl Cover {
    fn covers(&self, case: &Case, peer: Peer, difference: &Difference) -> bool {
        let is = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let name = format!("{}: {}$", case.site.name(), case.name);
        self.peer.is_none_or(|only| only == peer)
            && self.aspect == difference.aspect
            && is(self.ours, &difference.ours)
            && is(self.theirs, &difference.theirs)
            && (self.of.is_empty() || self.of.iter().any(|part| name.contains(part)))
    }
}

/// All of them, as the page has them. Where two cover the same, the first counts.
pub(super) fn all() -> Vec<&'static Cause> {
    let parts = [
        paths::CAUSES,
        methods::CAUSES,
        conditions::CAUSES,
        codings::CAUSES,
        messages::CAUSES,
        fields::CAUSES,
    ];
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::sites::Site;
    use super::{Case, Cover, Difference, EACH, NGINX, Peer, all, value};

    #[test]
    fn a_cover_covers_what_it_says() {
        let case = Case::usual(Site::Spa, "GET", "/a", "");
        let difference =
            Difference { aspect: "vary".to_owned(), ours: "Accept".to_owned(), theirs: "–".to_owned() };
        let covers = |cover: Cover| cover.covers(&case, Peer::StaticWebServer, &difference);
        assert!(covers(value(EACH, "vary", "Accept", "*", &[])));
        assert!(covers(value(EACH, "vary", "*", "–", &["GET /b", "spa: GET /a$"])));
        assert!(!covers(value(EACH, "vary", "Accept", "*", &["plain: "])));
        assert!(!covers(value(NGINX, "vary", "Accept", "*", &[])));
        assert!(!covers(value(EACH, "etag", "Accept", "*", &[])));
        assert!(!covers(value(EACH, "vary", "Accept", "Accept", &[])));
    }

    #[test]
    fn every_cause_is_argued_once() {
        let mut titles: Vec<_> = all().iter().map(|cause| cause.title).collect();
        let count = titles.len();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), count);
        assert!(all().iter().all(|cause| !cause.covers.is_empty() && cause.why.ends_with(['.', ')'])));
    }
}
