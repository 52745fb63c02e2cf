//! Mutations of inputs, all from one seed: what a fuzzer does, without its eyes.

/// Changes to an input at most.
const CHANGES_MAX: usize = 6;
/// Pieces that are worth putting in, besides bytes: what the protocol is made of.
const PIECES: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    ": ",
    " ",
    "\t",
    ",",
    ";",
    "0\r\n\r\n",
    "Host: a\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "HTTP/1.0",
    "HTTP/1.1",
    "GET ",
    "POST ",
    "HEAD ",
    "OPTIONS * ",
    "/buffer/1",
    "/sink/1",
    "/sink-refuses",
    "/panic",
    "/close",
    "%2e",
    "%2f",
    "%00",
    "..",
    "//",
    "bytes=",
    "0-",
    "-1",
    "\"tag\"",
    "W/",
    ";q=0.5",
    "identity",
    "gzip",
    "18446744073709551615",
    "ffffffffffffffff",
];

/// The state of the generator (SplitMix64).
pub(crate) struct Mutator {
    state: u64,
    bytes_max: usize,
}

impl Mutator {
    pub(crate) fn new(seed: u64, bytes_max: usize) -> Self {
        Self { state: seed, bytes_max }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Up to `count_max` of the pieces, one behind the other.
    pub(crate) fn compose(&mut self, pieces: &[&[u8]], count_max: usize) -> Vec<u8> {
        (0..self.below(count_max + 1)).flat_map(|_| pieces[self.below(pieces.len())].to_vec()).collect()
    }

    /// One of the inputs, changed.
    pub(crate) fn mutate(&mut self, inputs: &[&[u8]]) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].to_vec();
        for _ in 0..=self.below(CHANGES_MAX) {
            let at = self.below(input.len() + 1);
            let until = at + self.below((input.len() - at).min(16) + 1);
            match self.below(6) {
                0 if at < input.len() => input[at] = self.next() as u8,
                1 if at < input.len() => input[at] ^= 1 << self.below(8),
                2 => drop(input.drain(at..until)),
                3 => {
                    let piece = PIECES[self.below(PIECES.len())];
                    input.splice(at..until, piece.bytes()).for_each(drop);
                }
                4 => {
                    let piece = input[at..until].to_vec();
                    input.splice(at..at, piece).for_each(drop);
                }
                _ => {
                    let other = inputs[self.below(inputs.len())];
                    let from = self.below(other.len() + 1);
                    input.splice(at.., other[from..].iter().copied()).for_each(drop);
                }
            }
        }
        input.truncate(self.bytes_max);
        input
    }
}
