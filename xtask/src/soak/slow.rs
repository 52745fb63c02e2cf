//! The slow clients: heads and bodies that come in drops, and a large answer that is read in sips, many side by side.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::exchange::Form;
use super::expected::Awaited;
use super::site::Site;
use super::tally::Tally;
use crate::harness::answer::Fault;
use crate::harness::client::Client;
use crate::harness::random::Random;

/// Slow clients side by side.
const CLIENTS: usize = 192;
/// How long nobody of them does anything between two drops.
const PAUSE: Duration = Duration::from_millis(50);
/// Drops of a head or a body; together they take 2 s, a fifth of what a head may.
const DROPS: usize = 40;
/// Sips of an answer.
const SIPS: usize = 40;
/// How many bytes a read asks for at the end.
const READ_SIZE: usize = 256 * 1024;

/// One slow client.
struct Sluggard<'a> {
    client: Client,
    form: &'a Form,
    sent: usize,
    awaited: Awaited<'a>,
}

/// Visits slowly until it is told to stop; those that are there then are seen through.
pub(super) fn work(site: &Site, mut random: Random, stop: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    let mut buffer = vec![0; READ_SIZE];
    while !stop.load(Ordering::Relaxed) {
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            match open(site, number, &mut random) {
                Ok(client) => clients.push(client),
                Err(fault) => tally.wrong.push(format!("slow: {fault}")),
            }
        }
        tally.connections += clients.len() as u64;
        tally.sent += clients.len() as u64;
        for _ in 0..DROPS + SIPS {
            std::thread::sleep(PAUSE);
            clients.retain_mut(|client| keep(client.drop_or_sip(&mut buffer, &mut tally), &mut tally));
        }
        for mut client in clients {
            keep(client.finish(&mut buffer, &mut tally), &mut tally);
        }
    }
    tally
}

/// True if it went well; else it is written down.
fn keep(outcome: Result<(), Fault>, tally: &mut Tally) -> bool {
    match outcome {
        Ok(()) => true,
        Err(fault) => {
            tally.wrong.push(format!("slow: {fault}"));
            false
        }
    }
}

/// In turns: a small file, the large one, a body.
fn open<'a>(site: &'a Site, number: usize, random: &mut Random) -> Result<Sluggard<'a>, Fault> {
    let [program, example] = site.addresses();
    let catalogue = &site.catalogue;
    let (address, from) = match number % 3 {
        0 => (program, catalogue.short.as_slice()),
        1 => (program, std::slice::from_ref(&catalogue.large)),
        _ => (example, catalogue.posts.as_slice()),
    };
    let form = &from[random.below(from.len() as u64) as usize].staying;
    let mut awaited = Awaited::default();
    awaited.push(&form.answer);
    Ok(Sluggard { client: Client::open(address)?, form, sent: 0, awaited })
}

impl Sluggard<'_> {
    /// Sends a drop of the request, or reads a sip of the answer.
    fn drop_or_sip(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<(), Fault> {
        let request = &self.form.request;
        if self.sent < request.len() {
            let end = (self.sent + request.len().div_ceil(DROPS)).min(request.len());
            self.client.send(&request[self.sent..end])?;
            self.sent = end;
            return Ok(());
        }
        let sip = self.form.answer.len().div_ceil(SIPS).min(buffer.len());
        self.read(&mut buffer[..sip], tally)
    }

    /// Reads what is left.
    fn finish(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<(), Fault> {
        while !self.awaited.is_over() {
            self.read(buffer, tally)?;
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<(), Fault> {
        use std::io::Read;
        if self.awaited.is_over() {
            return Ok(());
        }
        let length = self.client.stream().read(buffer)?;
        if length == 0 {
            return Err(Fault::Truncated);
        }
        tally.bytes += length as u64;
        tally.right += self.awaited.take(&buffer[..length])?;
        Ok(())
    }
}
