//! Tests of files over real sockets: responses for files, folders and missing names.

mod caching;
mod conditional;
mod containment;
mod content;
mod finding;
mod kept_lists;
mod listing;
mod mounted;
mod names;
mod options;
mod pages;
mod ranges;
mod replaced;
mod roots;
mod siblings;
mod site;
mod tags;
