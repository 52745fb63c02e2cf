//! Sending: at once as far as the kernel takes it, the rest when it says that it takes more.

use super::Poll;
use crate::{Output, Token};

impl Poll {
    pub(super) fn start_send(&mut self, token: Token, output: Output) {
        // A full socket says by itself when to go on.
        self.conns.send_by_hand(token, output);
    }
}
