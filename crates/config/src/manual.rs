//! Every section with its keys, in the order of the file: for the text of the defaults and for the page.

use crate::config::Config;
use crate::fields::Fields;
use crate::reading::Written;
use crate::rows::{Row, rows};
use crate::sections::cache_control::CacheControl;
use crate::sections::headers::Headers;
use crate::sections::listen::Listen;
use crate::sections::redirect::Redirect;
use crate::sections::respond::Respond;
use crate::sections::route::Route;
use crate::sections::serving::Serving;
use crate::sections::site::Site;

/// One section.
pub(crate) struct Section {
    /// As it stands in the file.
    pub(crate) heading: &'static str,
    pub(crate) means: &'static str,
    pub(crate) kind: Kind,
    pub(crate) keys: Vec<Key>,
}

/// How often a section may stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Once.
    Once,
    /// Any number of times; what it shows is an example.
    Often,
    /// As the value of a key of other sections.
    Inside,
}

/// One key of it.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) means: &'static str,
    pub(crate) allowed: String,
    pub(crate) is_required: bool,
    /// What it says by itself; nothing, where it has to be there.
    pub(crate) default: Option<String>,
    pub(crate) example: Option<String>,
}

/// All sections.
pub(crate) fn sections() -> Vec<Section> {
    let Config { server, performance, limits, timeouts, cache, logging, .. } = Config::default();
    let means = |name: &str| means_of_section(name);
    let section = |heading, kind, keys| Section { heading, means: means(heading), kind, keys };
    let of_serving = keys(&Serving::default());
    let mut of_route = keys(&Route::default());
    of_route.retain(|key| of_serving.iter().all(|shared| shared.name != key.name));
    vec![
        section("server", Kind::Once, keys(&server)),
        section("performance", Kind::Once, keys(&performance)),
        section("limits", Kind::Once, keys(&limits)),
        section("timeouts", Kind::Once, keys(&timeouts)),
        section("cache", Kind::Once, keys(&cache)),
        section("logging", Kind::Once, keys(&logging)),
        section("listen", Kind::Often, keys(&Listen::default())),
        section("site", Kind::Often, keys(&Site::default())),
        section("site.redirect", Kind::Often, keys(&Redirect::default())),
        section("site.route", Kind::Often, of_route),
        section("headers", Kind::Inside, keys(&Headers::default())),
        section("cache_control", Kind::Inside, keys(&CacheControl::default())),
        section("respond", Kind::Inside, keys(&Respond::default())),
    ]
}

/// A section's keys: what its default says beside what its example says. Tables with a heading of their own are left out.
fn keys<T: Fields>(default: &T) -> Vec<Key> {
    let written = Written::new();
    let pairs = rows(default, "", &written).into_iter().zip(rows(&T::example(), "", &written));
    let key = |(default, example): (Row, Row)| Key {
        name: default.name,
        means: default.means,
        allowed: default.allowed,
        is_required: T::REQUIRED.contains(&default.name),
        default: default.value.filter(|_| !T::REQUIRED.contains(&default.name)),
        example: example.value,
    };
    pairs.map(key).filter(|key| !key.means.starts_with("See [[")).collect()
}

fn means_of_section(heading: &str) -> &'static str {
    let config = rows(&Config::default(), "", &Written::new());
    let row = config.iter().find(|row| row.name == heading);
    match heading {
        "site.redirect" => {
            "From one path of the site above, or one with all beneath it, to another place. It comes before a route of the same path."
        }
        "site.route" => {
            "What is different for one path of the site above, or one with all beneath it. The most specific counts, wherever it stands: an \
             exact path before one with all beneath it, the longer of two that end with * before the shorter. Every key of [[site]] from \
             `root` to `cache_control` may stand here too, in place of the site's."
        }
        "headers" => {
            "Fields of answers that are set or removed. Those that say how a message is framed are the server's own. A request \
             that can't be read is no site's: its answer has the server's own fields."
        }
        "cache_control" => "One rule on how long answers may be kept by others.",
        "respond" => "An answer that needs no file.",
        _ => row.map_or("", |row| row.means),
    }
}
