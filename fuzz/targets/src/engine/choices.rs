//! The choices that an input makes: a byte each, and the first of the alternatives once it is used up.

/// What is left of a program.
#[derive(Debug)]
pub(crate) struct Choices<'a> {
    program: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(program: &'a [u8]) -> Self {
        Self { program }
    }

    fn byte(&mut self) -> usize {
        let Some((&byte, rest)) = self.program.split_first() else { return 0 };
        self.program = rest;
        usize::from(byte)
    }

    /// A number from 0 to `end - 1`. Takes two bytes where one can't tell so many apart.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let number = if end > 256 { self.byte() << 8 | self.byte() } else { self.byte() };
        number % end
    }

    /// One of `alternatives`; the first is the usual one.
    pub(crate) fn of<T: Copy, const COUNT: usize>(&mut self, alternatives: [T; COUNT]) -> T {
        alternatives[self.below(COUNT)]
    }
}
