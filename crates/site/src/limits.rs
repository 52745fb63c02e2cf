//! Limits of sites, each with a line in `docs/limits.md`.

/// Maximum number of sites of a server.
pub const SITES_MAX: usize = 65_536;

/// Maximum number of routes and redirects of a site, together.
pub const ROUTES_MAX: usize = 65_536;

/// Maximum number of segments of a prefix, and of lookups per request.
pub const ROUTE_SEGMENTS_MAX: usize = 32;

/// Maximum bytes of a host name without its port, as in DNS (RFC 1035 section 2.3.4).
pub const HOST_BYTES_MAX: usize = 253;

/// Maximum bytes of a fixed response, which each worker keeps in memory.
pub const FIXED_BYTES_MAX: usize = 65_536;

/// Entries of a worker's cache of route lookups.
pub const CACHED_ROUTES_MAX: usize = 256;

/// Maximum bytes of host and path of a cached route lookup.
pub const CACHED_ROUTE_BYTES_MAX: usize = 104;

/// Maximum number of redirects followed at the start to detect loops.
pub const REDIRECTS_FOLLOWED_MAX: usize = 16;

/// Maximum number of mistakes reported at once.
pub const MISTAKES_MAX: usize = 50;
