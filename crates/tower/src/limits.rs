//! Named bounds of the bridge.

/// Bytes of one block that copies of request heads are cut from. A request keeps the whole block for as long as it is being answered.
pub const HEAD_BLOCK_BYTES: usize = 4096;

/// Copies of heads that are longer get memory of their own.
pub const HEAD_IN_BLOCK_BYTES_MAX: usize = HEAD_BLOCK_BYTES / 4;

/// Header maps that a worker keeps for further requests.
pub const SPARE_MAPS_MAX: usize = 64;

/// Fields that a header map may have room for to be kept.
pub const SPARE_MAP_FIELDS_MAX: usize = 64;

/// Bytes of a body that leave with the head in one piece; a longer one follows its head as the client takes it.
pub const WHOLE_BODY_BYTES_MAX: usize = 16 * 1024;

/// Default of [`Serve::upgrades_max`](crate::Serve::upgrades_max).
pub const UPGRADES_MAX: usize = 4096;

/// Bytes of a body that are handed to the engine at once, each time the client has taken enough of those before.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Memory of ended futures of services, in bytes, that a worker keeps for the next ones; as much again of bodies of their answers.
pub const SPARE_SEATS_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a request field's value that a worker keeps for the next request with the same; one for each field that tells of clients.
pub const USUAL_VALUE_BYTES_MAX: usize = 256;

/// Other values that may come before the one that is kept makes room.
pub const USUAL_VALUE_MISSES_MAX: u8 = 8;
