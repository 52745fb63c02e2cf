//! Case `large-file`: a sparse file beyond 2 GiB, downloaded whole beside slow readers.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use socket2::{Domain, Protocol, Socket, Type};
use testkit::{Client, Error, Framing, random, request};

use crate::context::{CaseContext, Usage, in_threads};
use crate::report::CaseReport;

/// Length of the file: a signed 32-bit number can't hold it.
const LENGTH: u64 = (2 << 30) + 4_097;
/// Length of a block of known random bytes; the rest is zeros.
const BLOCK: u64 = 4096;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
/// Growth of resident memory during the download, KiB.
const GROWTH_MAX_KIB: f64 = 16.0 * 1024.0;
const SLOW_READERS: u64 = 10;
/// A slow reader's receive buffer, bytes: so small that the server must wait for it.
const SLOW_RECEIVE_BUFFER: usize = 16 * 1024;
const SLOW_BYTES: usize = 16 * 1024;
const SLOW_PAUSE: Duration = Duration::from_millis(50);

/// Contents of a sparse file: where its known blocks start, in order, with their bytes.
pub(crate) struct SparseFile {
    length: u64,
    blocks: Vec<(u64, Vec<u8>)>,
}

impl SparseFile {
    /// Places known blocks at the start, the end, across 2^31, and at random.
    pub(crate) fn new(length: u64, random: &mut random::Rng) -> Self {
        let last = length - BLOCK;
        let mut starts = vec![0, (1 << 31) - BLOCK / 2, last];
        starts.extend((0..64).map(|_| random.u64(..last)));
        starts.retain(|start| *start <= last);
        starts.sort_unstable();
        starts.dedup_by(|next, before| *next < *before + BLOCK);
        let blocks = starts.into_iter().map(|start| (start, random::bytes(random, BLOCK as usize)));
        Self { length, blocks: blocks.collect() }
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = File::create(path)?;
        file.set_len(self.length)?;
        for (start, bytes) in &self.blocks {
            file.seek(SeekFrom::Start(*start))?;
            file.write_all(bytes)?;
        }
        Ok(())
    }

    /// Returns true if the file has these bytes at `offset`.
    fn matches(&self, mut offset: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let next = self.blocks.partition_point(|(start, _)| start + BLOCK <= offset);
            let (expected, end): (&[u8], u64) = match self.blocks.get(next) {
                Some((start, block)) if *start <= offset => {
                    (&block[(offset - start) as usize..], start + BLOCK)
                }
                Some((start, _)) => (&ZEROS, *start),
                None => (&ZEROS, self.length),
            };
            let length = bytes.len().min(expected.len()).min(end.saturating_sub(offset) as usize);
            if length == 0 || expected[..length] != bytes[..length] {
                return false;
            }
            offset += length as u64;
            bytes = &bytes[length..];
        }
        true
    }

    /// Downloads the file, or as much as arrives in `time` by slow reading. Returns the number of bytes, all of them compared.
    fn download(&self, client: &mut Client, time: Option<Duration>) -> Result<u64, Error> {
        client.send(request("GET", "/large.bin", &[]))?;
        let head = client.head("GET")?;
        if head.status != 200 || head.framing("GET") != Framing::Length(self.length) {
            return Err(Error::Malformed(head.text().to_owned()));
        }
        let deadline = time.map(|time| Instant::now() + time);
        let (most, mut read) = (if time.is_some() { SLOW_BYTES } else { usize::MAX }, 0);
        while deadline.is_none_or(|deadline| Instant::now() < deadline) {
            let mut same = true;
            let length = client.data(most, &mut |data| same = self.matches(read, data))? as u64;
            if !same {
                return Err(Error::Malformed(format!("other bytes after offset {read}")));
            }
            if length == 0 {
                break;
            }
            read += length;
            if time.is_some() {
                thread::sleep(SLOW_PAUSE);
            }
        }
        Ok(read)
    }
}

fn slow_client(address: SocketAddr) -> Result<Client, Error> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_recv_buffer_size(SLOW_RECEIVE_BUFFER)?;
    socket.connect(&address.into())?;
    Client::over(socket.into())
}

/// Downloads the file whole while slow readers read it, and compares every byte.
pub(crate) fn large_file(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let file = SparseFile::new(LENGTH, &mut context.random(0));
    context.write_file("public/large.bin", b"")?;
    let root = context.folder.join("public");
    file.write(&root.join("large.bin"))?;
    let mut server = context.serve(&root)?;
    let before = Usage::of(&server);
    let time = context.amount.seconds(2, 10);
    let address = server.address();
    let results = in_threads(SLOW_READERS + 1, |number| {
        if number > 0 {
            return file.download(&mut slow_client(address)?, Some(time));
        }
        let mut client = Client::connect(address)?;
        let read = file.download(&mut client, None)?;
        // The next response begins right where the body ends.
        let next = client.request("HEAD", "/large.bin", &[])?;
        if next.status() == 200 { Ok(read) } else { Err(Error::Malformed(next.head.text().to_owned())) }
    });
    let after = Usage::of(&server);
    let bytes: Vec<u64> = results.iter().flatten().copied().collect();
    let errors: Vec<&Error> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    report.none("failed downloads", &errors);
    report.equal("whole download, bytes compared", bytes.first().copied().unwrap_or(0), LENGTH);
    report.note("slow readers, bytes compared", bytes.iter().skip(1).sum::<u64>());
    report.growth("resident, growth", before.rss_kib, after.rss_kib, GROWTH_MAX_KIB, "KiB");
    report.stop(&mut server);
    Ok(())
}

#[cfg(test)]
mod tests {
    use testkit::random::Rng;

    use super::{BLOCK, SparseFile};

    #[test]
    fn compares_bytes_in_any_pieces() {
        let file = SparseFile::new(100_000, &mut Rng::with_seed(5));
        let mut bytes = vec![0; 100_000];
        for (start, block) in &file.blocks {
            bytes[*start as usize..(start + BLOCK) as usize].copy_from_slice(block);
        }
        for piece in [1, 999, 4096, 65_537] {
            for (number, part) in bytes.chunks(piece).enumerate() {
                assert!(file.matches((number * piece) as u64, part), "piece {number} of {piece}");
            }
        }
        assert!(!file.matches(99_999, &[bytes[99_999], 0]));
        bytes[50] ^= 1;
        assert!(!file.matches(0, &bytes));
    }
}
