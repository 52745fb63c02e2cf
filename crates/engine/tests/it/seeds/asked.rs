//! Random requests as bytes, for deferred and immediate handlers, and their world.

use shearwater_engine::io::sim::SimOptions;
use shearwater_engine::tasks::Order;

use crate::harness::dice::Dice;

/// Form of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Get,
    Head,
    /// With a body of known length.
    Post,
    /// With a body in chunks.
    Chunked,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) form: Form,
    pub(crate) target: String,
    minor: u8,
    /// Whole lines.
    fields: String,
    body_len: usize,
}

impl Asked {
    /// Returns a request for `target`, with a body of one of these lengths.
    pub(crate) fn new(dice: &mut Dice, target: String, body_lens: &[usize]) -> Self {
        let form = [Form::Get, Form::Head, Form::Post, Form::Chunked][dice.below(4)];
        let minor = u8::from(form == Form::Chunked || !dice.once_in(6));
        let mut fields =
            ["", "", "", "Connection: close\r\n", "Connection: keep-alive\r\n"][dice.below(5)].to_owned();
        if matches!(form, Form::Post | Form::Chunked) && dice.once_in(4) {
            fields += "Expect: 100-continue\r\n";
        }
        Self { form, target, minor, fields, body_len: body_lens[dice.below(body_lens.len())] }
    }

    /// Returns the same with a large head, now and then.
    pub(crate) fn maybe_large(mut self, dice: &mut Dice) -> Self {
        if dice.once_in(4) {
            self.fields += &format!("X-Large: {}\r\n", "x".repeat(5000));
        }
        self
    }

    /// The client requests the close.
    pub(crate) fn is_last(&self) -> bool {
        self.fields.contains("close") || self.minor == 0 && !self.fields.contains("keep-alive")
    }

    /// Appends it in wire format.
    pub(crate) fn push_to(&self, dice: &mut Dice, bytes: &mut Vec<u8>) {
        let Self { form, target, minor, fields, body_len } = self;
        let method = match form {
            Form::Get => "GET",
            Form::Head => "HEAD",
            Form::Post | Form::Chunked => "POST",
        };
        bytes.extend(format!("{method} {target} HTTP/1.{minor}\r\nHost: a\r\n{fields}").bytes());
        match form {
            Form::Get | Form::Head => bytes.extend(b"\r\n"),
            Form::Post => {
                bytes.extend(format!("Content-Length: {body_len}\r\n\r\n").bytes());
                bytes.resize(bytes.len() + body_len, b'x');
            }
            Form::Chunked => {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                push_chunks(dice, *body_len, bytes);
            }
        }
    }
}

/// Returns a body of so many bytes; of fewer if they would be chunks of one byte each.
fn push_chunks(dice: &mut Dice, len: usize, bytes: &mut Vec<u8>) {
    let mut left = len;
    while left > 0 {
        let count = left.min([1, 17, 3000, 65_536][dice.below(4)]);
        bytes.extend(format!("{count:x}\r\n").bytes());
        bytes.resize(bytes.len() + count, b'x');
        bytes.extend(b"\r\n");
        left -= count;
        if count == 1 {
            left = left.min(100);
        }
    }
    bytes.extend(b"0\r\n\r\n");
}

/// A kernel with these buffers, rough three times out of four.
pub(crate) fn kernel(dice: &mut Dice, seed: u64, recv: &[usize], send: &[usize]) -> SimOptions {
    let calm = SimOptions { seed, ..SimOptions::default() };
    let options = if dice.once_in(4) { calm } else { SimOptions::rough(seed) };
    SimOptions {
        recv_buffer_bytes: recv[dice.below(recv.len())],
        send_buffer_bytes: send[dice.below(send.len())],
        ..options
    }
}

pub(crate) fn order(dice: &mut Dice) -> Order {
    if dice.once_in(2) { Order::Lifo } else { Order::Fifo }
}
