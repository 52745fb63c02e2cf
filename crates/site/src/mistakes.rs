//! What is wrong with sites, found before they serve anything.

use std::fmt;

use crate::limits::MISTAKES_MAX;

/// Where a mistake is: sites, routes and so on are counted from 0, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The server as a whole.
    Sites,
    /// A site as a whole, or its content.
    Site(usize),
    /// One of a site's hosts.
    Host {
        /// Which site.
        site: usize,
        /// Which host.
        host: usize,
    },
    /// One of a site's redirects.
    Redirect {
        /// Which site.
        site: usize,
        /// Which redirect.
        redirect: usize,
    },
    /// One of a site's routes.
    Route {
        /// Which site.
        site: usize,
        /// Which route.
        route: usize,
    },
    /// A field that a site or one of its routes changes.
    Header {
        /// Which site.
        site: usize,
        /// Which route; `None` for the site's own.
        route: Option<usize>,
        /// The field's name as it was given.
        name: String,
    },
    /// An error page of a site or one of its routes.
    ErrorPage {
        /// Which site.
        site: usize,
        /// Which route; `None` for the site's own.
        route: Option<usize>,
        /// The error's status.
        status: u16,
    },
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is.
    pub place: Place,
    /// The same for people, by names.
    pub name: String,
    /// What is wrong, and what would be right.
    pub why: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.why)
    }
}

/// All that is wrong. The first [`MISTAKES_MAX`] are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// Those that are told.
    pub told: Vec<Mistake>,
    /// How many more there are.
    pub more: usize,
}

impl Mistakes {
    pub(crate) fn add(&mut self, mistake: Mistake) {
        if self.told.len() < MISTAKES_MAX {
            self.told.push(mistake);
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.told.iter().enumerate() {
            let end = if index + 1 < self.told.len() { "\n" } else { "" };
            write!(formatter, "{mistake}{end}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Mistakes {}
