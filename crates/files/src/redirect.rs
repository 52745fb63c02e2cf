//! The redirect from a folder without its slash to the folder, so that relative links in its index hold.

use shearwater::{Request, Response};

/// `301` to the same target with a slash at the end of the path (RFC 9110 section 15.4.2).
pub(crate) fn to_directory(request: &Request<'_>, response: &mut Response<'_>) {
    let location = with_slash(request.path(), request.query());
    response.status(301).field("Location", &location).text("The folder's name ends with a slash.\n");
}

/// A reference to the folder on this very host. Two slashes at the start, or a slash and a backslash as browsers read
/// it, would name another host: neither is left.
fn with_slash(path: &str, query: Option<&str>) -> String {
    let path = path.trim_start_matches('/').replace('\\', "%5C");
    match query {
        Some(query) => format!("/{path}/?{query}"),
        None => format!("/{path}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::with_slash;

    #[test]
    fn stays_on_the_host() {
        assert_eq!(with_slash("/a/b", None), "/a/b/");
        assert_eq!(with_slash("/a", Some("x=1&y")), "/a/?x=1&y");
        assert_eq!(with_slash("//example.org/a", None), "/example.org/a/");
        assert_eq!(with_slash("/\\example.org", None), "/%5Cexample.org/");
    }
}
