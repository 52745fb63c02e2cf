//! Tests of files over real sockets: responses for files, folders and missing names.

mod caching;
mod compression;
mod conditional;
mod containment;
mod content;
mod disk;
mod finding;
mod kept_lists;
mod listing;
#[path = "../../../shearwater/tests/it/local.rs"]
mod local;
mod mounted;
mod names;
mod options;
mod pages;
mod ranges;
mod replaced;
mod revalidation;
mod roots;
mod siblings;
mod site;
mod tags;

/// Serves from a disk on which nothing is cached if true: another test binary has the same tests.
const SLOW_DISK: bool = false;
