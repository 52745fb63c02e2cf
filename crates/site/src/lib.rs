//! Sites: which host, which route, and what is answered there: files of folders, redirects, fixed answers; with which fields, and with which page where it is an
//! error.
//!
//! [`Options`] are checked once, by [`Sites::new`], and become tables that the workers share. [`SiteService`] is the whole way of a request:
//! `hosts` (which site) → `resolve` of `files` (the name that the path means) → `routes` (which rule) → files, redirect or fixed answer → where it
//! is an error, its page.

#![forbid(unsafe_code)]
#![warn(
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

mod error_pages;
mod fixed;
mod follow;
mod hash;
mod headers;
mod host;
mod hosts;
pub mod limits;
mod mistakes;
mod options;
mod pattern;
mod plain_page;
mod plan;
mod redirect;
#[doc(hidden)]
pub mod routes;
mod service;
mod site_plan;
mod sites;
mod table;
mod ways;

pub use mistakes::{Mistake, Mistakes, Place};
pub use options::{Content, ErrorPage, Fixed, Headers, Options, REDIRECT_STATUS, Redirect, Route, Site};
pub use service::SiteService;
pub use sites::Sites;
