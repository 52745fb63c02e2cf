//! Numbers as text, without the formatting machinery.

/// The digits of the largest `u64`.
const DECIMAL_DIGITS_MAX: usize = u64::MAX.ilog10() as usize + 1;
const HEXADECIMAL_DIGITS_MAX: usize = u64::BITS as usize / 4;

/// Appends `number` in decimal, without leading zeros.
pub fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; DECIMAL_DIGITS_MAX];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends `number` in lower-case hexadecimal, without leading zeros.
pub fn hexadecimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; HEXADECIMAL_DIGITS_MAX];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b"0123456789abcdef"[(number & 0xF) as usize];
        number >>= 4;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
