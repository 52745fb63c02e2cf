//! The tests of `it` once more, on a disk on which nothing is cached: each response waits for another thread.

#[path = "../it/caching.rs"]
mod caching;
#[path = "../it/compression.rs"]
mod compression;
#[path = "../it/conditional.rs"]
mod conditional;
#[path = "../it/containment.rs"]
mod containment;
#[path = "../it/content.rs"]
mod content;
#[path = "../it/finding.rs"]
mod finding;
#[path = "../it/kept_lists.rs"]
mod kept_lists;
#[path = "../it/listing.rs"]
mod listing;
#[path = "../../../shearwater/tests/it/local.rs"]
mod local;
#[path = "../it/mounted.rs"]
mod mounted;
#[path = "../it/names.rs"]
mod names;
#[path = "../it/options.rs"]
mod options;
#[path = "../it/pages.rs"]
mod pages;
#[path = "../it/ranges.rs"]
mod ranges;
#[path = "../it/replaced.rs"]
mod replaced;
#[path = "../it/roots.rs"]
mod roots;
#[path = "../it/siblings.rs"]
mod siblings;
#[path = "../it/site.rs"]
mod site;
#[path = "../it/tags.rs"]
mod tags;

/// See `it`.
const SLOW_DISK: bool = true;
