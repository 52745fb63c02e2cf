//! Sites on real sockets, with each driver.

#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod error_pages;
mod fixed;
mod headers;
mod hosts;
mod mistakes;
mod redirects;
mod route_properties;
mod routes;
mod served;
mod spellings;
