//! Tests of the control thread, with a driven clock and without a CA.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use super::{Handle, Manager};
use crate::limits::{LOCK_POLL_SECONDS, LOCKED_SECONDS_MAX, ORDERS_AT_ONCE_MAX, STORAGE_POLL_SECONDS};
use crate::options::{Clock, Options};
use crate::status::{Notice, State, Status};
use crate::storage::Storage;

const NOW: u64 = 1_800_000_000;
/// More than any step of a test takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// A manager whose CA accepts no connection, with a driven clock.
struct Fixture {
    root: tempfile::TempDir,
    now: Arc<AtomicU64>,
    directory: String,
    notices: Receiver<Notice>,
    handle: Handle,
}

impl Fixture {
    fn start(root: tempfile::TempDir, names: &[&str], now: u64, directory: &str) -> Self {
        let certificates = names.iter().map(|name| vec![(*name).to_owned()]).collect();
        let mut options = Options::new(root.path().to_owned(), certificates);
        let shared = Arc::new(AtomicU64::new(now));
        let clock = Arc::clone(&shared);
        options.clock = Clock::new(move || clock.load(Ordering::Relaxed));
        options.directory = directory.to_owned();
        options.terms_agreed = true;
        options.seed = Some(1);
        let (sender, notices) = sync_channel(1000);
        let handle = Manager::start(options, move |notice| sender.send(notice).unwrap()).unwrap();
        Self { root, now: shared, directory: directory.to_owned(), notices, handle }
    }

    /// The CA refuses connections.
    fn new(names: &[&str]) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self::start(tempfile::tempdir().unwrap(), names, NOW, &format!("https://{address}/"))
    }

    fn failure(&self) -> String {
        match self.notices.recv_timeout(DEADLINE).unwrap() {
            Notice::Failed(failure) => failure.message,
            notice @ Notice::Certificate(_) => panic!("{notice:?}"),
        }
    }

    /// Waits until the status fulfils a condition.
    fn wait(&self, is_reached: impl Fn(&[Status]) -> bool) -> Vec<Status> {
        let begin = Instant::now();
        loop {
            let status = self.handle.status();
            if is_reached(&status) {
                return status;
            }
            assert!(begin.elapsed() < DEADLINE, "{status:?}");
            std::thread::yield_now();
        }
    }

    /// Sets the clock, and wakes the control thread, which has slept by another one.
    fn advance(&self, seconds: u64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
        let names = self.handle.status().iter().map(|status| status.names.clone()).collect();
        self.handle.set_certificates(names).unwrap();
    }
}

/// Writes a certificate as another instance does. Returns its serial number.
pub(crate) fn store(root: &Path, name: &str) -> Vec<u8> {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let pem = certificate.pem() + &key.serialize_pem();
    let folder = Storage::open(root).unwrap().certificates;
    folder.write(&format!("{name}.pem"), pem.as_bytes()).unwrap();
    shearwater_tls::CertificateFacts::from_der(certificate.der()).unwrap().serial
}

#[test]
fn begins_with_the_stored_certificates() {
    let root = tempfile::tempdir().unwrap();
    let serial = store(root.path(), "a.example");
    let fixture = Fixture::start(root, &["a.example"], NOW, "https://127.0.0.1:1/");
    let Ok(Notice::Certificate(certificate)) = fixture.notices.try_recv() else {
        panic!("there is none at once")
    };
    assert_eq!(
        (certificate.names, certificate.pair.facts().serial.clone()),
        (vec!["a.example".to_owned()], serial)
    );
    fixture.handle.stop();
}

#[test]
fn takes_over_certificates_of_other_instances() {
    let fixture = Fixture::new(&["a.example"]);
    fixture.failure();
    let serial = store(fixture.root.path(), "a.example");
    fixture.advance(STORAGE_POLL_SECONDS);
    let Notice::Certificate(certificate) = fixture.notices.recv_timeout(DEADLINE).unwrap() else {
        panic!("expected the certificate")
    };
    assert_eq!(certificate.pair.facts().serial, serial);
    fixture.wait(|status| status[0].state == State::Valid);
}

#[test]
fn a_restart_keeps_the_back_off() {
    let fixture = Fixture::new(&["a.example"]);
    let message = fixture.failure();
    assert!(
        message.starts_with("no certificate for a.example: cannot connect to the CA at 127.0.0.1:"),
        "{message}"
    );
    let before = fixture.wait(|status| status[0].attempts == 1).remove(0);
    assert!((NOW + 60..=NOW + 75).contains(&before.next_attempt), "{before:?}");
    let Fixture { root, directory, handle, .. } = fixture;
    handle.stop();
    let fixture = Fixture::start(root, &["a.example"], NOW + 1, &directory);
    let after = fixture.handle.status().remove(0);
    assert_eq!(
        (after.next_attempt, after.failure.map(|failure| failure.message)),
        (before.next_attempt, Some(message))
    );
    fixture.advance(80);
    let again = fixture.wait(|status| status[0].attempts == 1).remove(0);
    assert!(again.next_attempt >= NOW + 81 + 120, "{again:?}");
}

#[test]
fn an_order_at_once_skips_the_back_off() {
    let fixture = Fixture::new(&["a.example"]);
    fixture.wait(|status| status[0].attempts == 1);
    let one_renewal =
        |status: Option<&Status>| status.filter(|status| status.renewals == 1).map(|status| status.attempts);
    assert_eq!(fixture.handle.wait_for("a.example", Duration::ZERO, one_renewal), None);
    fixture.handle.renew("a.example").unwrap();
    assert_eq!(fixture.handle.wait_for("a.example", Duration::from_secs(30), one_renewal), Some(2));
    let is_unknown = |status: Option<&Status>| Some(status.is_none());
    assert_eq!(fixture.handle.wait_for("b.example", Duration::ZERO, is_unknown), Some(true));
    let failure = fixture.handle.renew("b.example").unwrap_err();
    assert_eq!(failure.message, "no certificate for b.example is managed here");
}

#[test]
fn works_on_a_bounded_number_of_certificates() {
    // The CA accepts connections, and never responds.
    let ca = TcpListener::bind("127.0.0.1:0").unwrap();
    let names: Vec<String> = (0..10).map(|number| format!("n{number}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let url = format!("https://{}/", ca.local_addr().unwrap());
    let fixture = Fixture::start(tempfile::tempdir().unwrap(), &names, NOW, &url);
    let ordering = |status: &[Status]| status.iter().filter(|status| status.state == State::Ordering).count();
    fixture.wait(|status| ordering(status) == ORDERS_AT_ONCE_MAX);
    // The first one has sent its request: the others would have begun by then.
    drop(ca.accept().unwrap());
    assert_eq!(ordering(&fixture.handle.status()), ORDERS_AT_ONCE_MAX);
}

#[test]
fn pauses_while_the_ca_fails() {
    let names: Vec<String> = (0..10).map(|number| format!("n{number}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fixture = Fixture::new(&names);
    let attempts = |status: &[Status]| status.iter().map(|status| status.attempts).sum::<u64>();
    let is_idle = |status: &[Status]| status.iter().all(|status| status.state == State::Missing);
    // A few may begin before the first one has failed.
    let status = fixture.wait(|status| is_idle(status) && attempts(status) > 0);
    assert!(attempts(&status) < 10, "{}", attempts(&status));
    let before = attempts(&status);
    fixture.advance(80);
    fixture.wait(|status| attempts(status) > before);
}

#[test]
fn a_clock_that_was_never_set_causes_no_request() {
    let fixture = Fixture::start(tempfile::tempdir().unwrap(), &["a.example"], 1000, "https://127.0.0.1:1/");
    assert_eq!(
        fixture.failure(),
        "no certificate can be ordered: the clock of this machine is 1000 s after 1970",
    );
    fixture.wait(|status| status[0].attempts == 1);
    fixture.now.store(NOW, Ordering::Relaxed);
    fixture.advance(0);
    assert!(fixture.failure().contains("cannot connect to the CA"));
}

#[test]
fn a_broken_storage_is_reported_once_while_certificates_stay() {
    let root = tempfile::tempdir().unwrap();
    store(root.path(), "a.example");
    let fixture = Fixture::start(root, &["a.example", "b.example"], 1000, "https://127.0.0.1:1/");
    assert!(matches!(fixture.notices.recv_timeout(DEADLINE), Ok(Notice::Certificate(_))));
    assert!(fixture.failure().contains("the clock of this machine"));
    fixture.wait(|status| status.iter().all(|status| status.attempts == 1));
    // It fails only when a lock is taken.
    std::fs::remove_dir_all(fixture.root.path().join("acme/locks")).unwrap();
    fixture.now.store(NOW, Ordering::Relaxed);
    fixture.advance(0);
    assert!(fixture.failure().starts_with("cannot access "));
    fixture.wait(|status| status.iter().all(|status| status.attempts == 2));
    fixture.advance(STORAGE_POLL_SECONDS + 1);
    let status = fixture.wait(|status| status.iter().all(|status| status.attempts == 3));
    assert!(fixture.notices.try_recv().is_err());
    assert!(status[1].failure.as_ref().unwrap().message.starts_with("cannot access "));
    assert_eq!((status[0].state, status[1].state), (State::Valid, State::Missing));
}

#[test]
fn a_reload_changes_the_list() {
    let fixture = Fixture::new(&["a.example", "b.example"]);
    fixture.wait(|status| status.iter().all(|status| status.attempts == 1));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    fixture.handle.set_certificates(vec![names(&["b.example"]), names(&["c.example", "d.example"])]).unwrap();
    let status = fixture.wait(|status| status.len() == 2 && status[1].names[0] == "c.example");
    assert_eq!((status[0].attempts, &status[1].names), (1, &names(&["c.example", "d.example"])));
    assert!(fixture.handle.set_certificates(vec![names(&["*.example"])]).is_err());
    assert!(fixture.handle.set_certificates(vec![names(&["e.example"]), names(&["e.example"])]).is_err());
}

#[test]
fn serves_challenges_of_other_instances() {
    let fixture = Fixture::new(&[]);
    std::fs::write(fixture.root.path().join("acme/challenges/token.http"), "proof").unwrap();
    let begin = Instant::now();
    while fixture.handle.challenges().http("token").as_deref() != Some("proof") {
        assert!(begin.elapsed() < DEADLINE);
        std::thread::yield_now();
    }
}

#[test]
fn a_renewal_waits_for_another_instance() {
    let root = tempfile::tempdir().unwrap();
    let locks = Storage::open(root.path()).unwrap().locks;
    let lock = locks.lock("a.example").unwrap().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fixture = Fixture::start(root, &["a.example"], NOW, &format!("https://{address}/"));
    fixture.wait(|status| status[0].attempts == 1);
    fixture.handle.renew("a.example").unwrap();
    assert_eq!(fixture.wait(|status| status[0].attempts == 2)[0].renewals, 0);
    fixture.advance(LOCKED_SECONDS_MAX + 1);
    fixture.wait(|status| status[0].attempts == 3);
    assert_eq!(
        fixture.failure(),
        "another process has had the lock of a.example for more than 600 s",
        "once"
    );
    drop(lock);
    fixture.advance(LOCK_POLL_SECONDS);
    let status = fixture.wait(|status| status[0].attempts == 4);
    assert!(status[0].renewals == 1 && status[0].failure.is_some(), "{status:?}");
}
