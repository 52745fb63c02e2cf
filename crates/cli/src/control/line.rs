//! Lines on a control connection, bounded in bytes and time.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Reads a line, without its end.
///
/// # Errors
/// [`ErrorKind::InvalidData`] for a longer line, [`ErrorKind::UnexpectedEof`] if the other end closes before,
/// [`ErrorKind::TimedOut`] at the deadline, whatever has arrived by then; otherwise the kernel's.
pub(super) fn read(mut stream: &UnixStream, bytes_max: usize, deadline: Instant) -> io::Result<Vec<u8>> {
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let count = match stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            // The deadline is checked above.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => continue,
            Err(error) => return Err(error),
        };
        let end = piece[..count].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&piece[..end.unwrap_or(count)]);
        if line.len() > bytes_max {
            return Err(ErrorKind::InvalidData.into());
        }
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// Writes a line and its end.
///
/// # Errors
/// [`ErrorKind::TimedOut`] or [`ErrorKind::WouldBlock`] at the deadline; otherwise the kernel's.
pub(super) fn write(mut stream: &UnixStream, line: &str, deadline: Instant) -> io::Result<()> {
    let bytes = format!("{line}\n");
    for piece in bytes.as_bytes().chunks(4096) {
        stream.set_write_timeout(Some(left(deadline)?))?;
        stream.write_all(piece)?;
    }
    Ok(())
}

/// Returns the time until the deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{read, write};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn lines_are_bounded_in_bytes() {
        for (sent, expected) in [
            ("1234\n", Ok(b"1234".to_vec())),
            ("12345\n", Err(ErrorKind::InvalidData)),
            ("12345", Err(ErrorKind::InvalidData)),
            ("1234", Err(ErrorKind::UnexpectedEof)),
            ("", Err(ErrorKind::UnexpectedEof)),
            ("\nmore", Ok(Vec::new())),
        ] {
            let (mut here, there) = UnixStream::pair().expect("descriptors");
            here.write_all(sent.as_bytes()).expect("sent");
            drop(here);
            assert_eq!(read(&there, 4, soon()).map_err(|error| error.kind()), expected, "{sent:?}");
        }
    }

    #[test]
    fn bytes_that_trickle_in_do_not_extend_the_time() {
        let (mut here, there) = UnixStream::pair().expect("descriptors");
        let sender = thread::spawn(move || {
            // Until the reader is gone.
            while here.write_all(b"x").is_ok() {
                thread::park_timeout(Duration::from_millis(5));
            }
        });
        let error = read(&there, 1 << 20, Instant::now() + Duration::from_millis(100)).expect_err("no line");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(there);
        sender.join().expect("no panic");
    }

    #[test]
    fn a_reader_that_hangs_does_not_extend_the_time() {
        let (here, _there) = UnixStream::pair().expect("descriptors");
        let long = "x".repeat(8 << 20);
        let error =
            write(&here, &long, Instant::now() + Duration::from_millis(50)).expect_err("nobody reads");
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
    }
}
