//! Bounds of what sites are made of. Each has a line in `docs/limits.md`.

/// Sites of one server.
pub const SITES_MAX: usize = 65_536;

/// Routes and redirects of one site, together.
pub const ROUTES_MAX: usize = 65_536;

/// Segments of a route for all that is beneath a path: as many places of a request's path are looked up at most.
pub const ROUTE_SEGMENTS_MAX: usize = 32;

/// Bytes of a host's name, without its port. No name in the DNS is longer (RFC 1035 section 2.3.4).
pub const HOST_BYTES_MAX: usize = 253;

/// Bytes of a fixed answer, which each worker keeps. A longer one is a file.
pub const FIXED_BYTES_MAX: usize = 65_536;

/// Ways that a worker remembers: from host and path of a request, as they were sent, to what answers it.
pub const WAYS_MAX: usize = 256;

/// Bytes of host and path together that are remembered; longer ones are looked up each time.
pub const WAY_BYTES_MAX: usize = 104;

/// Redirects that are followed at the start, to see whether one leads back to itself.
pub const REDIRECTS_FOLLOWED_MAX: usize = 16;

/// Mistakes that are told of at once.
pub const MISTAKES_MAX: usize = 50;
