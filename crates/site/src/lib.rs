//! Sites: finds the host and route of a request, and responds with files, redirects or fixed responses, their headers and error pages.
//!
//! [`Sites::new`] checks [`Options`] once and compiles them into tables that the workers share. [`SiteService`] handles a request: `hosts`
//! finds the site, `resolve` of `files` the name of the path, `routes` the rule; then files, a redirect or a fixed response, and an error
//! page if it failed. `https` redirects requests that came in clear.

#![forbid(unsafe_code)]

mod builder;
mod error_pages;
mod guards;
mod headers;
mod hosts;
mod https;
pub mod limits;
mod options;
mod plan;
mod redirect;
mod responses;
mod route_cache;
#[doc(hidden)]
pub mod routes;
mod service;
mod table;

pub use guards::{Guards, SiteCors};
pub use options::{
    Content, Download, ErrorPage, Fixed, Headers, Hsts, Mistake, Mistakes, Options, REDIRECT_STATUS,
    Redirect, Route, Site,
};
pub use service::{SiteService, Sites};
