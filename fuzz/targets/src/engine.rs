//! The whole engine on the simulated kernel: the input chooses the kernel's temper, a fault, the clients, their steps, and what one of them
//! says word for word. Each client gets its own answers, in order, and nothing else; in the end no connection, block or timer is left.

mod choices;
mod model;
mod script;

use choices::Choices;

/// The most bytes that are said word for word.
const RAW_BYTES_MAX: usize = 4096;

/// Holds the conversation in `input`: a byte that tells the length of the program, the program, and the raw bytes of a client.
///
/// # Panics
/// Where a client gets something else than the model says, or the worker leaves something behind.
pub fn run(input: &[u8]) {
    let Some((&len, rest)) = input.split_first() else { return };
    let (program, raw) = rest.split_at(usize::from(len).min(rest.len()));
    let raw = &raw[..raw.len().min(RAW_BYTES_MAX)];
    drop(script::conversation(&mut Choices::new(program), raw).run());
}
