//! The status page: one document without references to others.

/// The page. Its script shows `/status.json` once a second.
pub(crate) const STATUS_PAGE: &str = include_str!("status.html");

/// Allows the page's script and style by their hashes, and requests to its own listener; a test compares the hashes.
pub(crate) const STATUS_POLICY: &str = "default-src 'none'; \
     script-src 'sha256-Ppe4zTDelLl1raxnFrz+no8WLLCcuGmeo5uPv4SIyDg='; \
     style-src 'sha256-V0ysQ7f1tvHYNj+ZaOmnRjSBWRoB87Byhfu/WPnaDx0='; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
