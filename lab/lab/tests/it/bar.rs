//! The bar: every row is run or says why not, and is judged by its own figure.

use lab::alone::{Finding, Subject, Trial};
use lab::bar::cases::{self, AXUM, CASES, PEERS, select};
use lab::bar::run::{Agenda, Settings};
use lab::bar::table;
use lab::bar::{Case, Figure, Measure, Verdict, judge};
use lab::block::Block;
use lab::compare::Outcome;
use lab::statistics::Estimate;

use crate::pairing::{block, outcome};

const CPU: Measure = Measure::Cpu { over: "shearwater-epoll", under: "null-epoll" };
const SYSCALLS: Measure = Measure::Syscalls { of: "shearwater-epoll", less: "null-epoll" };
const SUBJECT: Subject = Subject { trial: Trial::Quiet, of: "shearwater-epoll", scenario: "1k" };
const SETTINGS: Settings = Settings { blocks: 16, seconds: 1, seed: 1, wait_percent_max: None };

fn case(scenario: &'static str, measure: Measure, figure: Figure) -> Case {
    Case { name: "planted", scenario, measure, figure }
}

fn verdict(case: &Case, outcomes: &[Outcome], findings: &[Finding]) -> Verdict {
    judge(case, outcomes, findings, 1)
}

#[test]
fn a_ratio_is_met_or_missed_or_not_measured() {
    let outcomes = [outcome(vec![block(4.0); 3], vec![block(5.0); 3])];
    let at = |scenario, figure| verdict(&case(scenario, CPU, figure), &outcomes, &[]);
    assert!(matches!(at("plaintext", Figure::AtMost(1.25)), Verdict::Met(_)));
    assert!(matches!(at("plaintext", Figure::AtMost(1.24)), Verdict::Missed(_)));
    assert!(matches!(at("plaintext", Figure::AtLeast(1.26)), Verdict::Missed(_)));
    assert!(matches!(at("plaintext", Figure::Shown), Verdict::Shown(_)));
    assert!(matches!(at("1k", Figure::AtMost(2.0)), Verdict::NotMeasured(_)));
}

#[test]
fn a_row_whose_blocks_do_not_count_is_not_measured() {
    let outcomes = [outcome(vec![block(4.0); 3], vec![Block::failed("planted".to_owned()); 3])];
    let row = case("plaintext", CPU, Figure::AtMost(9.0));
    assert!(matches!(verdict(&row, &outcomes, &[]), Verdict::NotMeasured(_)));
    let row: &'static Case = &CASES[0];
    let text = table::render(&[row], &outcomes, &[], 1);
    assert!(
        text.contains("NOT MEASURED")
            && text.contains("not counted: plaintext shearwater-epoll: 3 of 3: planted")
    );
}

#[test]
fn a_row_with_too_few_rounds_is_not_measured() {
    let at = |valid: usize, blocks: u32| {
        let mut blocks_of = vec![block(4.0); valid];
        blocks_of.resize(blocks as usize, Block::failed("planted".to_owned()));
        let mut outcome = outcome(vec![block(4.0); blocks as usize], blocks_of);
        outcome.plan.blocks = blocks;
        verdict(&case("plaintext", CPU, Figure::AtMost(1.0)), &[outcome], &[])
    };
    for (least, blocks) in [(8, 16), (3, 4), (2, 2), (1, 1)] {
        assert!(matches!(at(least, blocks), Verdict::Met(_)), "{least} of {blocks}");
        assert!(matches!(at(least - 1, blocks), Verdict::NotMeasured(_)), "{} of {blocks}", least - 1);
    }
    assert_eq!(at(7, 16), Verdict::NotMeasured("7 of 16 rounds count, 8 have to".to_owned()));
}

#[test]
fn an_interval_over_the_figure_is_said() {
    let outcomes = [outcome(vec![block(4.0); 4], vec![block(4.0), block(4.4), block(4.4), block(5.0)])];
    let text = |figure: Figure| verdict(&case("plaintext", CPU, figure), &outcomes, &[]).text(figure);
    assert_eq!(text(Figure::AtMost(1.15)), "met, within noise");
    assert_eq!(text(Figure::AtMost(1.05)), "MISSED, within noise");
    assert_eq!(text(Figure::AtMost(1.5)), "met");
    assert_eq!(text(Figure::AtLeast(1.5)), "MISSED");
}

#[test]
fn a_claim_to_be_less_at_all_needs_the_whole_interval() {
    let judged = |ours: Vec<Block>| {
        let outcomes = [outcome(vec![block(4.0); 4], ours)];
        verdict(&case("plaintext", CPU, Figure::Below(1.0)), &outcomes, &[])
    };
    assert!(matches!(judged(vec![block(3.9); 4]), Verdict::Met(_)));
    assert!(matches!(judged(vec![block(3.9), block(3.8), block(3.9), block(4.1)]), Verdict::Missed(_)));
    assert!(matches!(judged(vec![block(4.0); 4]), Verdict::Missed(_)));
    assert!(matches!(
        judged(vec![block(3.9), block(3.8), block(3.9), Block::failed(String::new())]),
        Verdict::Met(_)
    ));
    let outcomes = [outcome(vec![block(4.0); 2], vec![block(3.0); 2])];
    let row = case("plaintext", CPU, Figure::Below(1.0));
    assert!(matches!(verdict(&row, &outcomes, &[]), Verdict::NotMeasured(_)), "two values have no interval");
    assert!(!Figure::Below(1.0).holds_for(Estimate { median: 0.5, interval: None, values: 2 }));
}

#[test]
fn syscalls_are_compared_round_by_round() {
    let mut outcome = outcome(vec![block(4.0); 3], vec![block(5.0); 3]);
    let row = case("plaintext", SYSCALLS, Figure::AtMost(0.05));
    let judged = |outcome: &Outcome| verdict(&row, std::slice::from_ref(outcome), &[]);
    assert!(matches!(judged(&outcome), Verdict::NotMeasured(_)));
    let failed = || Err("planted".to_owned());
    outcome.entries[0].syscalls = vec![Ok(2.0), failed(), Ok(2.2), Ok(2.4)];
    outcome.entries[2].syscalls = vec![Ok(2.04), Ok(9.0), Ok(2.23), Ok(2.42)];
    let Verdict::Met(estimate) = judged(&outcome) else { panic!("{:?}", judged(&outcome)) };
    assert_eq!(estimate.values, 3);
    assert!((estimate.median - 0.03).abs() < 1e-9, "{estimate:?}");
    outcome.entries[0].syscalls = vec![failed(); 4];
    assert_eq!(judged(&outcome), Verdict::NotMeasured("planted".to_owned()));
}

#[test]
fn a_trial_is_judged_by_its_own_figure() {
    let measure = Measure::Alone { subject: SUBJECT, figure: "cpu_percent", about: "CPU" };
    let row = case("1k", measure, Figure::AtMost(0.05));
    let judged = |rounds| verdict(&row, &[], &[Finding { subject: SUBJECT, rounds }]);
    let round = |cpu_percent| Ok(vec![("wake_ups_per_s", 9.0), ("cpu_percent", cpu_percent)]);
    assert!(matches!(judged(vec![round(0.05)]), Verdict::Met(_)));
    assert!(matches!(judged(vec![round(0.05), round(0.07), round(0.06)]), Verdict::Missed(_)));
    assert_eq!(judged(vec![Err("planted".to_owned())]), Verdict::NotMeasured("planted".to_owned()));
    assert!(matches!(judged(vec![Ok(vec![("rss_mib", 1.0)])]), Verdict::NotMeasured(_)));
    let subject = Subject { trial: Trial::Downloads, ..SUBJECT };
    let row = case("1k", Measure::Alone { subject, figure: "p99_ms", about: "p99" }, Figure::AtMost(5.0));
    let with_held_up = |count: usize| {
        let mut rounds = vec![Ok(vec![("p99_ms", 1.0)]); 8 - count];
        rounds.resize(8, Err("held up".to_owned()));
        verdict(&row, &[], &[Finding { subject, rounds }])
    };
    assert!(matches!(with_held_up(4), Verdict::Met(_)));
    assert!(matches!(with_held_up(5), Verdict::NotMeasured(_)));
}

#[test]
fn a_trial_of_another_server_says_nothing() {
    let measure = Measure::Alone { subject: SUBJECT, figure: "cpu_percent", about: "CPU" };
    let row = case("1k", measure, Figure::AtMost(0.05));
    let round = |cpu_percent| Ok(vec![("cpu_percent", cpu_percent)]);
    let other = Finding { subject: Subject { of: "nginx", ..SUBJECT }, rounds: vec![round(0.0)] };
    assert!(matches!(verdict(&row, &[], &[other]), Verdict::NotMeasured(_)));
}

#[test]
fn every_row_is_run_with_servers_that_serve_it() {
    assert_eq!(select(None, true).expect("all but a group's").len(), CASES.len() + PEERS.len());
    let cases: Vec<&Case> = cases::all().collect();
    assert_eq!(cases.len(), CASES.len() + AXUM.len() + PEERS.len());
    let agenda = Agenda::of(&cases, SETTINGS).expect("the rows name what exists");
    for plan in &agenda.plans {
        let name = plan.scenario.name;
        assert!(plan.servers.iter().all(|server| server.serves(plan.scenario)), "{name}");
        assert_eq!(plan.syscall_rounds > 0, name == "plaintext", "{name}");
    }
    for case in cases {
        let names = match case.measure {
            Measure::Cpu { over, under } => [over, under],
            Measure::Syscalls { of, less } => [of, less],
            Measure::Alone { subject, .. } => {
                assert!(agenda.subjects.contains(&subject) && lab::server::find(subject.of).is_ok());
                assert_eq!(subject.scenario, case.scenario, "{}", case.name);
                continue;
            }
        };
        let plan = agenda.plans.iter().find(|plan| plan.scenario.name == case.scenario).expect("it is run");
        let runs = |name: &str| plan.servers.iter().any(|server| server.name == name);
        assert!(names.into_iter().all(runs), "{}", case.name);
    }
    let names: std::collections::BTreeSet<&str> = cases::all().map(|case| case.name).collect();
    assert_eq!(names.len(), cases::all().count());
    assert!(!names.contains("axum"), "it names a group");
}

#[test]
fn only_what_is_asked_is_run() {
    let cases = select(Some("churn-uring,fresh-rss-epoll"), false).expect("both exist");
    let agenda = Agenda::of(&cases, SETTINGS).expect("the rows name what exists");
    let servers: Vec<&str> = agenda.plans[0].servers.iter().map(|server| server.name).collect();
    assert_eq!((agenda.plans.len(), servers), (1, vec!["null-uring", "shearwater-uring"]));
    assert_eq!(agenda.subjects.len(), 1);
    let group = select(Some("fresh-rss-epoll,axum"), false).expect("both exist");
    assert_eq!(group.len(), 1 + AXUM.len());
    assert!(group[1..].iter().all(|case| AXUM.contains(case)));
    assert!(select(Some("nothing"), false).is_err());
    assert!(select(Some(""), false).is_err());
    assert_eq!(select(None, false).expect("all that have a figure").len(), CASES.len());
}

#[test]
fn the_default_run_fits_into_25_minutes() {
    let agenda = Agenda::of(&select(None, false).expect("all rows"), SETTINGS).expect("they exist");
    let minutes = agenda.estimated_s() / 60.0;
    assert!((5.0..=25.0).contains(&minutes), "{minutes}");
}

#[test]
fn the_table_shows_the_control() {
    let outcomes = [outcome(vec![block(4.0); 3], vec![block(5.0); 3])];
    let text = table::render(&[], &outcomes, &[], 1);
    assert!(text.contains("null-epoll (again) ÷ null-epoll  plaintext  1.000 [1.000 1.000]"), "{text}");
}
