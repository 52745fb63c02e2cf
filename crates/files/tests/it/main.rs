//! Files over real sockets: what each request for a file, a folder or nothing at all is answered with.

mod caching;
mod clean_urls;
#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod conditional;
mod content;
mod descriptors;
mod finding;
mod folders;
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
mod said;
mod siblings;
mod site;
mod spa;
mod tags;
