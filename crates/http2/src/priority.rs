//! Priorities of responses (RFC 9218 4).

/// Number of urgencies; 0 is the most urgent.
pub(crate) const URGENCIES: usize = 8;

/// A response's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 to 7, the most urgent first.
    pub urgency: u8,
    /// True if parts of the response are useful before its end.
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// Reads the value of a `Priority` field, a dictionary (RFC 9218 5, RFC 8941 3.2). Unknown members and
    /// invalid values are ignored; of several, the last one counts.
    #[must_use]
    pub fn of_field(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            // Parameters mean nothing.
            let member = member.split(|&byte| byte == b';').next().unwrap_or(member).trim_ascii_end();
            match member {
                [b'u', b'=', urgency @ b'0'..=b'7'] => priority.urgency = urgency - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::Priority;

    #[test]
    fn reads_a_dictionary() {
        for (value, urgency, is_incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=5", 5, true),
            ("u=1;x=2 , i=?1;y", 1, true),
            ("i, i=?0, u=1, u=2", 2, false),
            ("u=8, u=-1, u=10, U=1, i=1, u", 3, false),
            ("a=\"b\", u=4", 4, false),
        ] {
            let priority = Priority::of_field(value.as_bytes());
            assert_eq!(priority, Priority { urgency, is_incremental }, "{value}");
        }
    }
}
