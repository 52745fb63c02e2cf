//! Numbers as text, without the formatting machinery.

/// Number of digits of the largest `u64`.
pub(super) const DECIMAL_DIGITS_MAX: usize = u64::MAX.ilog10() as usize + 1;
const HEXADECIMAL_DIGITS_MAX: usize = u64::BITS as usize / 4;

/// Two digits for each number below 100.
static PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
}

/// Returns the number of decimal digits of `number`.
#[inline]
pub(super) fn digits(number: u64) -> usize {
    match number {
        ..100_000 => {
            [10, 100, 1_000, 10_000].iter().fold(1, |digits, power| digits + usize::from(number >= *power))
        }
        _ => number.ilog10() as usize + 1,
    }
}

/// Writes `number` in decimal so that it ends before `end`; returns where it starts.
#[inline]
pub(super) fn write_decimal<const BYTES: usize>(
    bytes: &mut [u8; BYTES],
    end: usize,
    mut number: u64,
) -> usize {
    let mut start = end;
    while number >= 10 {
        start -= 2;
        bytes[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 || start == end {
        start -= 1;
        bytes[start] = b'0' + number as u8;
    }
    start
}

/// Exclusive upper bound of [`few_digits`].
pub(super) const FEW_DIGITS_END: u64 = 10_000;

/// Returns the digits of a number below [`FEW_DIGITS_END`], the first one in the lowest byte, and their
/// count.
#[inline]
pub(super) fn few_digits(number: u64) -> (u32, usize) {
    let count = digits(number);
    let ([thousands, hundreds], [tens, ones]) =
        (PAIRS[(number / 100 % 100) as usize], PAIRS[(number % 100) as usize]);
    let all = u32::from_le_bytes([thousands, hundreds, tens, ones]);
    (all >> ((size_of::<u32>() - count) as u32 * u8::BITS), count)
}

/// Appends `number` in decimal, without leading zeros.
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; DECIMAL_DIGITS_MAX];
    let start = write_decimal(&mut digits, DECIMAL_DIGITS_MAX, number);
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

#[cfg(test)]
mod tests {
    use super::{PAIRS, pairs};

    #[test]
    fn pairs_are_two_digits() {
        let built = pairs();
        assert_eq!(built, PAIRS);
        for (number, pair) in built.iter().enumerate() {
            assert_eq!(pair.as_slice(), format!("{number:02}").as_bytes());
        }
    }
}
