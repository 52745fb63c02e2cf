//! Sites on real sockets, with each driver.

mod error_pages;
mod fixed;
mod headers;
mod hosts;
mod https;
mod mistakes;
mod redirects;
mod reloading;
mod routes;
mod served;
