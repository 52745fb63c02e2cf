//! HPACK, the compression of header lists (RFC 7541).

mod decoder;
mod dynamic_table;
mod encoder;
mod huffman;
mod integer;
mod static_table;
#[cfg(test)]
mod vectors;

pub(crate) use decoder::{Decoder, HpackError, Strings};
pub(crate) use encoder::{Encoder, append_static};
