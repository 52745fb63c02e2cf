//! The method of a route.

use std::fmt;

use shearwater_http1::{METHOD_BYTES_MAX, Method};

/// The method of a route: a standard one ([`Method`]), or an extension by name (RFC 9110 section 9.1). Names are
/// case-sensitive.
///
/// ```
/// use shearwater::{App, Method, Request, Status, on};
///
/// let notes = on(Method::Trace, |_: &Request| Status::NO_CONTENT)
///     .on("PROPFIND", |_: &Request| (Status::MULTI_STATUS, "<multistatus xmlns=\"DAV:\"/>"));
/// assert!(App::new().route("/notes/{id}", notes).build().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteMethod(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Standard(Method),
    Extension(Box<str>),
}

impl RouteMethod {
    /// Returns the method if it is a standard one.
    pub(crate) fn standard(&self) -> Option<Method> {
        match self.0 {
            Kind::Standard(method) => Some(method),
            Kind::Extension(_) => None,
        }
    }

    /// Returns the name if it is an extension.
    pub(crate) fn extension(&self) -> Option<&str> {
        match &self.0 {
            Kind::Standard(_) => None,
            Kind::Extension(name) => Some(name),
        }
    }

    /// Returns the mistake if no route can have this method.
    pub(crate) fn mistake(&self) -> Option<String> {
        match &self.0 {
            Kind::Standard(method @ (Method::Connect | Method::Other)) => {
                Some(format!("{method:?} can't be routed"))
            }
            Kind::Extension(name) if !Method::is_name(name.as_bytes()) => Some(format!(
                "invalid method {name:?}: a method is a token of at most {METHOD_BYTES_MAX} bytes"
            )),
            Kind::Extension(name) => {
                let standard = Method::from_name(name.to_ascii_uppercase().as_bytes()).name()?;
                Some(format!("method names are case-sensitive; help: write {standard:?}"))
            }
            Kind::Standard(_) => None,
        }
    }
}

impl From<Method> for RouteMethod {
    fn from(method: Method) -> Self {
        Self(Kind::Standard(method))
    }
}

impl From<&str> for RouteMethod {
    fn from(name: &str) -> Self {
        Self(match Method::from_name(name.as_bytes()) {
            Method::Other => Kind::Extension(name.into()),
            method => Kind::Standard(method),
        })
    }
}

/// Writes the name as requests send it.
impl fmt::Display for RouteMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Standard(method) => match method.name() {
                Some(name) => f.write_str(name),
                None => write!(f, "{method:?}"),
            },
            Kind::Extension(name) => f.write_str(name),
        }
    }
}
