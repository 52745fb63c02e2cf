//! Large downloads beside the requests: each receives as fast as it can and is never finished.

use std::io::{self, Error};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::{Load, Sources, wait};
/// Maximum length of a download: beyond, its file has a hole, which costs the server other work.
pub(crate) const DOWNLOAD_BYTES_MAX: u64 = 176 << 20;
/// Event data of the requests' own epoll instance.
const REQUESTS: u64 = u64::MAX;

pub(super) struct Downloads {
    /// The downloads' sockets and, as one event, the epoll instance of the requests.
    epoll: OwnedFd,
    events: Vec<Event>,
    streams: Vec<(OwnedFd, u64)>,
}

impl Downloads {
    pub(super) fn start(load: &Load, sources: &mut Sources, requests: &OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, requests, EventData::new_u64(REQUESTS), EventFlags::IN)?;
        let mut streams = Vec::new();
        for (number, target) in load.downloads.iter().enumerate() {
            let socket = sources.connect(load.address)?;
            epoll::add(&epoll, &socket, EventData::new_u64(number as u64), EventFlags::IN)?;
            let request = format!("GET {target} HTTP/1.1\r\nHost: lab\r\n\r\n");
            if rustix::net::send(&socket, request.as_bytes(), SendFlags::NOSIGNAL)? != request.len() {
                return Err(Error::other("the request of a download was cut"));
            }
            streams.push((socket, 0));
        }
        Ok(Self { epoll, events: Vec::with_capacity(streams.len() + 1), streams })
    }

    /// Waits until a download or a request is ready; returns the numbers, which [`Self::receive`] takes.
    pub(super) fn wait(&mut self, patience: Duration) -> io::Result<Vec<u64>> {
        wait(&self.epoll, &mut self.events, patience)?;
        Ok(self.events.iter().map(|event| event.data.u64()).collect())
    }

    /// Receives once. An error is a failed socket, a wrong status, or a download that got too far.
    pub(super) fn receive(&mut self, number: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Some((socket, bytes)) = self.streams.get_mut(number as usize) else { return Ok(()) };
        let length = match rustix::net::recv(&*socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Err(Error::other("closed")),
            Ok((length, _)) => length,
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let is_right = *bytes > 0 || buffer[..length].starts_with(b"HTTP/1.1 200");
        *bytes += length as u64;
        if is_right && *bytes <= DOWNLOAD_BYTES_MAX { Ok(()) } else { Err(Error::other("a wrong download")) }
    }

    /// Returns the bytes of all downloads, and of the one that got least.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let bytes = self.streams.iter().map(|(_, bytes)| *bytes);
        (bytes.clone().sum(), bytes.min().unwrap_or(0))
    }
}
