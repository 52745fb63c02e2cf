//! Tests of files over real sockets: responses for files, folders and missing names.

mod caching;
mod clean_urls;
#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod conditional;
mod content;
mod descriptors;
mod finding;
mod folders;
mod headers;
mod hostile;
mod kept_lists;
mod kinds;
mod listing;
mod methods;
mod mounted;
mod names;
mod options;
mod pages;
mod range_properties;
mod ranges;
mod replaced;
mod roots;
mod siblings;
mod site;
mod spa;
mod tags;
