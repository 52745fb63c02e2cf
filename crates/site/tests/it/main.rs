//! Sites on real sockets, with each driver.

mod error_pages;
mod fixed;
mod headers;
mod hosts;
mod https;
#[path = "../../../shearwater/tests/it/local.rs"]
mod local;
mod mistakes;
mod redirects;
mod reloading;
mod routes;
mod served;
