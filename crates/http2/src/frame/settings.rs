//! SETTINGS (RFC 9113 6.5, RFC 8441 3, RFC 9218 2.1): the peer's values, and ours as a frame.

use super::write::{SETTINGS, header};
use crate::error::ConnectionError;
use crate::limits::{HEADER_TABLE_BYTES_MAX, Limits, WINDOW_BYTES_CEILING};

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// Length of one setting in bytes.
const SETTING_BYTES: usize = 6;
/// Range of the largest frame that a peer may allow, in bytes.
const FRAME_SIZES: std::ops::RangeInclusive<u32> = 1 << 14..=(1 << 24) - 1;

/// Settings of the client that matter to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    /// Size of our encoder's table in bytes, at most `HEADER_TABLE_BYTES_MAX`.
    pub(crate) header_table_bytes: usize,
    /// Initial window of each stream in bytes.
    pub(crate) window_bytes: i32,
    /// Payload of the largest frame that we may send, in bytes.
    pub(crate) frame_bytes_max: usize,
    /// First value of `NO_RFC7540_PRIORITIES`, which must not change (RFC 9218 2.1).
    no_priorities: Option<u32>,
}

impl PeerSettings {
    /// Values before the first SETTINGS (RFC 9113 6.5.2).
    pub(crate) const INITIAL: Self = Self {
        header_table_bytes: HEADER_TABLE_BYTES_MAX,
        window_bytes: 65_535,
        frame_bytes_max: 1 << 14,
        no_priorities: None,
    };

    /// Applies a payload in order; calls `table_size` for each size of the table, since a smaller one between two
    /// others counts too (RFC 7541 4.2). Unknown settings are ignored.
    pub(crate) fn apply(
        &mut self,
        payload: &[u8],
        mut table_size: impl FnMut(usize),
    ) -> Result<(), ConnectionError> {
        let (settings, rest) = payload.as_chunks::<SETTING_BYTES>();
        if !rest.is_empty() {
            return Err(ConnectionError::FrameSize);
        }
        for &[n0, n1, v0, v1, v2, v3] in settings {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            match u16::from_be_bytes([n0, n1]) {
                HEADER_TABLE_SIZE => {
                    self.header_table_bytes = HEADER_TABLE_BYTES_MAX.min(value as usize);
                    table_size(self.header_table_bytes);
                }
                ENABLE_PUSH | ENABLE_CONNECT_PROTOCOL if value > 1 => {
                    return Err(ConnectionError::SettingValue);
                }
                INITIAL_WINDOW_SIZE if value > WINDOW_BYTES_CEILING => {
                    return Err(ConnectionError::SettingWindow);
                }
                INITIAL_WINDOW_SIZE => self.window_bytes = value as i32,
                MAX_FRAME_SIZE if !FRAME_SIZES.contains(&value) => return Err(ConnectionError::SettingValue),
                MAX_FRAME_SIZE => self.frame_bytes_max = value as usize,
                NO_RFC7540_PRIORITIES => {
                    if value > 1 || self.no_priorities.is_some_and(|first| first != value) {
                        return Err(ConnectionError::SettingValue);
                    }
                    self.no_priorities = Some(value);
                }
                _ => {}
            }
        }
        // A later SETTINGS can't give a value that the first one didn't have.
        self.no_priorities.get_or_insert(0);
        Ok(())
    }
}

/// Appends our SETTINGS. Values that equal the initial ones are omitted.
pub(crate) fn append_settings(out: &mut Vec<u8>, limits: &Limits) {
    let settings = [
        (MAX_CONCURRENT_STREAMS, Some(limits.streams_max)),
        (INITIAL_WINDOW_SIZE, (limits.stream_window_bytes != 65_535).then_some(limits.stream_window_bytes)),
        (MAX_HEADER_LIST_SIZE, u32::try_from(limits.head.head_bytes_max).ok()),
        (ENABLE_CONNECT_PROTOCOL, limits.extended_connect.then_some(1)),
        (NO_RFC7540_PRIORITIES, Some(1)),
    ];
    let sent = || settings.iter().filter_map(|&(name, value)| value.map(|value: u32| (name, value)));
    out.extend_from_slice(&header(sent().count() * SETTING_BYTES, SETTINGS, 0, 0));
    for (name, value) in sent() {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(settings: &[(u16, u32)]) -> Vec<u8> {
        let bytes = |&(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        settings.iter().flat_map(bytes).collect()
    }

    fn apply(settings: &[(u16, u32)]) -> Result<(PeerSettings, Vec<usize>), ConnectionError> {
        let (mut peer, mut sizes) = (PeerSettings::INITIAL, Vec::new());
        peer.apply(&payload(settings), |size| sizes.push(size)).map(|()| (peer, sizes))
    }

    #[test]
    fn applies_values_in_order() {
        let (peer, sizes) = apply(&[
            (HEADER_TABLE_SIZE, 0),
            (HEADER_TABLE_SIZE, 1 << 20),
            (INITIAL_WINDOW_SIZE, 7),
            (INITIAL_WINDOW_SIZE, 9),
            (MAX_FRAME_SIZE, 1 << 20),
            (MAX_CONCURRENT_STREAMS, 0),
            (0xABCD, 5),
        ])
        .expect("valid settings");
        assert_eq!((peer.window_bytes, peer.frame_bytes_max), (9, 1 << 20));
        assert_eq!((peer.header_table_bytes, sizes), (4096, vec![0, 4096]));
    }

    #[test]
    fn rejects_forbidden_values() {
        for (setting, expected) in [
            ((ENABLE_PUSH, 2), ConnectionError::SettingValue),
            ((ENABLE_CONNECT_PROTOCOL, 2), ConnectionError::SettingValue),
            ((NO_RFC7540_PRIORITIES, 2), ConnectionError::SettingValue),
            ((MAX_FRAME_SIZE, (1 << 14) - 1), ConnectionError::SettingValue),
            ((MAX_FRAME_SIZE, 1 << 24), ConnectionError::SettingValue),
            ((INITIAL_WINDOW_SIZE, 1 << 31), ConnectionError::SettingWindow),
        ] {
            assert_eq!(apply(&[setting]), Err(expected), "{setting:?}");
        }
        assert!(apply(&[(INITIAL_WINDOW_SIZE, (1 << 31) - 1), (ENABLE_PUSH, 1)]).is_ok());
        let mut peer = PeerSettings::INITIAL;
        assert_eq!(peer.apply(b"\0\0\0\0\0", |_| {}), Err(ConnectionError::FrameSize));
    }

    #[test]
    fn the_scheme_of_priorities_must_not_change() {
        let mut peer = PeerSettings::INITIAL;
        assert_eq!(peer.apply(&[], |_| {}), Ok(()));
        let later = peer.apply(&payload(&[(NO_RFC7540_PRIORITIES, 1)]), |_| {});
        assert_eq!(later, Err(ConnectionError::SettingValue));
    }

    #[test]
    fn omits_initial_values_of_ours() {
        let limits = Limits { stream_window_bytes: 65_535, extended_connect: false, ..Limits::default() };
        let mut out = Vec::new();
        append_settings(&mut out, &limits);
        let expected = payload(&[
            (MAX_CONCURRENT_STREAMS, 100),
            (MAX_HEADER_LIST_SIZE, 65_536),
            (NO_RFC7540_PRIORITIES, 1),
        ]);
        assert_eq!(out, [b"\0\0\x12\x04\0\0\0\0\0", &expected[..]].concat());
    }
}
