//! Sites on real sockets, with each driver.

#[path = "../../../shearwater/tests/it/client.rs"]
mod client;
mod error_pages;
mod fixed;
mod headers;
mod hosts;
mod mistakes;
mod redirects;
mod route_properties;
mod routes;
mod served;
mod spellings;

/// Pseudo-random numbers from a seed (xorshift).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
