//! Quality values (RFC 9110 section 12.4.2).

/// Parses a quality value, in thousandths: `0` or `1`, with up to three decimals.
pub(crate) fn parse_qvalue(value: &[u8]) -> Option<u16> {
    let (whole, decimals) = match value {
        [whole @ b'0'..=b'1'] => (whole, &[][..]),
        [whole @ b'0'..=b'1', b'.', decimals @ ..] => (whole, decimals),
        _ => return None,
    };
    if decimals.len() > 3 || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |place: usize| u16::from(decimals.get(place).map_or(0, |digit| digit - b'0'));
    let weight = u16::from(whole - b'0') * 1000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::parse_qvalue;

    #[test]
    fn weights_have_three_decimals() {
        for (value, weight) in [
            ("0", Some(0)),
            ("0.", Some(0)),
            ("0.5", Some(500)),
            ("0.05", Some(50)),
            ("0.999", Some(999)),
            ("1", Some(1000)),
            ("1.000", Some(1000)),
            ("1.001", None),
            ("2", None),
            ("", None),
            (".5", None),
            ("0.0000", None),
            ("0,5", None),
            ("0.5x", None),
            ("00.5", None),
        ] {
            assert_eq!(parse_qvalue(value.as_bytes()), weight, "{value}");
        }
    }
}
