//! Tests of times and delays.

use shearwater_tls::{CertificateFacts, KeyKind};

use super::{DAY, HOUR, Plan, back_off, check_clock, clock_failure};
use crate::limits::{RETRY_AFTER_SECONDS_MAX, RETRY_SECONDS_MAX, RETRY_SECONDS_MIN};

const NOW: u64 = 1_800_000_000;

/// A certificate for `example.org` that is valid from now on.
pub(crate) fn facts(life: u64) -> CertificateFacts {
    CertificateFacts {
        dns_names: vec!["example.org".to_owned()],
        addresses: Vec::new(),
        not_before: NOW,
        not_after: NOW + life,
        issuer: "CN=Test".to_owned(),
        is_self_signed: false,
        key: KeyKind::P256,
        serial: vec![1, 2, 3],
        authority_key_id: Some(vec![4, 5, 6]),
    }
}

fn random() -> fastrand::Rng {
    fastrand::Rng::with_seed(1)
}

#[test]
fn renews_at_two_thirds_of_the_life() {
    for days in [6, 45, 90] {
        let at = Plan::by_life(&facts(days * DAY), &mut random()).renew_at - NOW;
        assert!((days * DAY * 61 / 100..=days * DAY * 2 / 3).contains(&at), "{days} days: {at}");
    }
}

#[test]
fn takes_a_moment_of_the_suggested_window_once() {
    let random = &mut random();
    let mut plan = Plan::by_life(&facts(90 * DAY), random);
    plan.suggest(NOW + 50 * DAY, NOW + 52 * DAY, 21_600, NOW, random);
    let chosen = plan.renew_at;
    assert!((NOW + 50 * DAY..=NOW + 52 * DAY).contains(&chosen));
    assert_eq!(plan.ask_at, NOW + 21_600);
    plan.suggest(NOW + 50 * DAY, NOW + 52 * DAY, 0, NOW, random);
    assert_eq!((plan.renew_at, plan.ask_at), (chosen, NOW + HOUR));
    // The CA will revoke the certificate.
    plan.suggest(NOW - DAY, NOW - HOUR, 30 * DAY, NOW, random);
    assert!(plan.renew_at < NOW);
    assert_eq!(plan.ask_at, NOW + DAY);
    // A window that ends before it begins.
    plan.suggest(NOW + DAY, NOW, 0, NOW, random);
    assert_eq!(plan.renew_at, NOW + DAY);
}

#[test]
fn delays_grow_from_a_minute_to_a_day() {
    let random = &mut random();
    for (failures, least) in
        [(1, RETRY_SECONDS_MIN), (2, 120), (5, 960), (10, 30_720), (u32::MAX, RETRY_SECONDS_MAX)]
    {
        let delay = back_off(failures, None, None, random);
        assert!(
            (least..=least + least / 4).contains(&delay) && delay <= RETRY_SECONDS_MAX,
            "{failures}: {delay}"
        );
    }
}

#[test]
fn a_certificate_that_ends_soon_is_tried_more_often() {
    let delay = back_off(20, Some(DAY), None, &mut random());
    assert!((3 * HOUR..4 * HOUR).contains(&delay), "{delay}");
    let delay = back_off(20, Some(60), None, &mut random());
    assert!((HOUR..2 * HOUR).contains(&delay), "{delay}");
}

#[test]
fn a_retry_after_is_honoured_within_a_week() {
    assert_eq!(back_off(1, None, Some(7200), &mut random()), 7200);
    assert!(back_off(20, None, Some(1), &mut random()) >= RETRY_SECONDS_MAX);
    assert_eq!(back_off(1, None, Some(u64::MAX), &mut random()), RETRY_AFTER_SECONDS_MAX);
}

#[test]
fn clocks_that_were_never_set_are_found() {
    assert!(check_clock(0).is_err() && check_clock(1_700_000_000).is_err());
    assert_eq!(check_clock(NOW), Ok(()));
}

#[test]
fn a_new_certificate_shows_a_wrong_clock() {
    let facts = facts(1000);
    assert_eq!(clock_failure(&facts, NOW), None);
    let behind = clock_failure(&facts, NOW - 7).unwrap();
    assert!(behind.message.ends_with("the clock of this machine is behind by 7 s or more"), "{behind}");
    let ahead = clock_failure(&facts, NOW + 1000).unwrap();
    assert!(ahead.message.ends_with("the clock of this machine is ahead by 0 s or more"), "{ahead}");
}
