//! Files over real sockets: what each request for a file, a folder or nothing at all is answered with.

mod caching;
#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod conditional;
mod content;
mod folders;
mod hostile;
mod kinds;
mod methods;
mod names;
mod range_properties;
mod ranges;
mod siblings;
mod site;
