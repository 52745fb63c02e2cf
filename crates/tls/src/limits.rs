//! Bounds of this crate. `docs/limits.md` lists them.

/// Largest PEM file that is read: a certificate chain, a key, a file of client authorities.
pub const PEM_BYTES_MAX: usize = 1 << 20;

/// Largest number of certificates in a server's chain.
pub const CHAIN_CERTIFICATES_MAX: usize = 16;

/// Largest number of names with an open ACME challenge.
pub const CHALLENGES_MAX: usize = 1024;

/// Largest number of session ticket keys in a file.
pub const TICKET_KEYS_MAX: usize = 16;

/// Number of keys whose tickets are accepted, where the server rotates them itself.
pub const TICKET_KEYS_KEPT: usize = 3;

/// Seconds between two session ticket keys, and the lifetime of a ticket that clients are sent.
pub const TICKET_ROTATION_SECONDS: u64 = 12 * 3600;

/// Largest session ticket; one contains the client's certificates.
pub const TICKET_BYTES_MAX: usize = 16 << 10;

/// Largest ClientHello, with its four bytes of header.
pub const HELLO_BYTES_MAX: usize = 64 << 10;

/// Largest number of bytes of records that hold an unfinished message of a handshake.
pub const HANDSHAKE_BYTES_MAX: usize = 128 << 10;

/// Largest number of bytes of records that hold an unfinished message after the handshake.
pub const MESSAGE_BYTES_MAX: usize = 4 << 10;
