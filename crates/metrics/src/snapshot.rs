//! All metrics at one moment, summed over the workers.

use shearwater::{Message, Totals};

use crate::certificates::{self, Certificate};
use crate::counts::{CLASS_5XX, CLASSES, ENDS, METHODS, SiteCounts};
use crate::histogram::HistogramValues;
use crate::metrics::{
    CacheCounts, CompressionCounts, Configuration, LogCounts, Metrics, Readiness, lock, unix_seconds,
};
use crate::process::{ProcessFigures, cpu_seconds};

/// All metrics at one moment.
///
/// Workers count meanwhile, so two figures of it may be apart by the exchanges of that time.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) version: String,
    pub(crate) readiness: Readiness,
    pub(crate) started_unix_seconds: u64,
    pub(crate) uptime_seconds: f64,
    /// Figures of the server, once it has started.
    pub(crate) server: Option<ServerFigures>,
    pub(crate) configuration: Configuration,
    pub(crate) requests: [[u64; CLASSES.len()]; METHODS.len()],
    /// `501` and `505`, which are in `requests` too.
    pub(crate) unsupported: u64,
    pub(crate) duration: HistogramValues,
    pub(crate) first_byte: HistogramValues,
    pub(crate) ends: [u64; ENDS.len()],
    pub(crate) sites: Vec<SiteFigures>,
    pub(crate) log: Option<LogCounts>,
    pub(crate) cache: Option<CacheCounts>,
    pub(crate) compression: Option<CompressionCounts>,
    pub(crate) certificates: Vec<Certificate>,
    /// Seconds since 1970.
    pub(crate) now: u64,
    pub(crate) process: ProcessFigures,
}

/// Figures of a server that has started.
#[derive(Debug, Default)]
pub(crate) struct ServerFigures {
    pub(crate) driver: &'static str,
    pub(crate) workers: usize,
    pub(crate) listen: Vec<String>,
    /// Its workers secure connections.
    pub(crate) has_tls: bool,
    pub(crate) totals: Totals,
    pub(crate) messages: Vec<Message>,
}

/// Counts of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SiteFigures {
    pub(crate) name: String,
    pub(crate) classes: [u64; CLASSES.len()],
    pub(crate) bytes_sent: u64,
}

impl SiteFigures {
    fn add(&mut self, counts: &SiteCounts) {
        for (sum, class) in self.classes.iter_mut().zip(&counts.classes) {
            *sum += class.get();
        }
        self.bytes_sent += counts.bytes_sent.get();
    }
}

impl Metrics {
    /// Takes all metrics now. Needs nothing from a worker's thread.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = &*self.0;
        let mut snapshot = self.counts();
        if let (Some(server), Some(serving)) = (&mut snapshot.server, shared.serving.get()) {
            // A reload changes them.
            server.listen = serving.control.addresses();
            server.messages = serving.control.messages();
        }
        let certificates = shared.certificates.get().map(|source| certificates::listed(source()));
        Snapshot {
            version: shared.version.clone(),
            readiness: self.readiness(),
            started_unix_seconds: shared.started_unix_seconds,
            configuration: lock(&shared.configuration).clone(),
            certificates: certificates.unwrap_or_default(),
            now: unix_seconds(),
            process: ProcessFigures::read(),
            ..snapshot
        }
    }

    /// Takes the counts alone, without a copy of texts or a read of files: for each second of the history.
    pub(crate) fn counts(&self) -> Snapshot {
        let shared = &*self.0;
        let server = shared.serving.get().map(|serving| ServerFigures {
            driver: serving.start_report.driver,
            workers: serving.start_report.workers,
            has_tls: !serving.start_report.secure_addresses.is_empty(),
            totals: serving.control.totals(),
            ..ServerFigures::default()
        });
        let tags = shared.sites.tags();
        let mut snapshot = Snapshot {
            uptime_seconds: shared.started.elapsed().as_secs_f64(),
            server,
            sites: Vec::with_capacity(tags.len()),
            log: shared.log.get().map(|counts| counts()),
            cache: shared.cache.get().map(|counts| counts()),
            compression: shared.compression.get().map(|counts| counts()),
            process: ProcessFigures { cpu_seconds: cpu_seconds(), ..ProcessFigures::default() },
            ..Snapshot::default()
        };
        let workers = lock(&shared.workers);
        for worker in workers.iter() {
            for (sums, counters) in snapshot.requests.iter_mut().zip(&worker.requests) {
                sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum += counter.get());
            }
            snapshot.unsupported += worker.unsupported.get();
            snapshot.duration.add(&worker.duration);
            snapshot.first_byte.add(&worker.first_byte);
            snapshot.ends.iter_mut().zip(&worker.ends).for_each(|(sum, counter)| *sum += counter.get());
        }
        for (name, tag) in tags {
            let mut site = SiteFigures { name, classes: Default::default(), bytes_sent: 0 };
            workers.iter().for_each(|worker| site.add(&worker.sites[usize::from(tag)]));
            snapshot.sites.push(site);
        }
        snapshot
    }
}

impl Snapshot {
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness == Readiness::Serving
    }

    /// Returns the number of exchanges of a class, by its index.
    pub(crate) fn of_class(&self, class: usize) -> u64 {
        self.requests.iter().map(|classes| classes[class]).sum()
    }

    pub(crate) fn requests_total(&self) -> u64 {
        self.requests.iter().flatten().sum()
    }

    /// Returns the number of `5xx` that the server or a handler has caused.
    pub(crate) fn server_errors(&self) -> u64 {
        self.of_class(CLASS_5XX).saturating_sub(self.unsupported)
    }
}
