//! The status page: one document without references to others.

/// The page. Its script shows `/status.json` once a second.
pub(crate) const STATUS_PAGE: &str = include_str!("status.html");

/// Allows the page's script and style by their hashes, and requests to its own listener; a test compares the hashes.
pub(crate) const STATUS_POLICY: &str = "default-src 'none'; \
     script-src 'sha256-dRJ/pGu0NtH/ZEzVYlWE7koVK17H6cvzjYvF23lZmkA='; \
     style-src 'sha256-ksG5itfdGYTSiDU+GypdU7PTSXj9BD2GMOTlPjlhAN8='; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
