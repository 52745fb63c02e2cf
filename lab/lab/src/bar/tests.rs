//! Every row is judged by its own figure, and only by enough rounds.

use super::*;
use crate::block::Block;
use crate::compare::tests::{block, failed, outcome};
use crate::trials::Trial;

const CPU: Measure = Measure::Cpu { scenario: "plaintext", over: "shearwater-epoll", under: "null-epoll" };
const SUBJECT: Subject = Subject { trial: Trial::Quiet, server: "shearwater-epoll" };

fn row(measure: Measure, figure: Figure) -> Row {
    Row { name: "planted", measure, figure }
}

fn measured(base: Vec<Block>, other: Vec<Block>) -> Measured {
    Measured { seed: 1, outcomes: vec![outcome(base, other)], ..Measured::default() }
}

#[test]
fn a_ratio_is_met_or_missed_or_not_measured() {
    let measured = measured(vec![block(4.0); 3], vec![block(5.0); 3]);
    let judge = |figure| measured.judge(&row(CPU, figure));
    assert!(matches!(judge(Figure::AtMost(1.25)), Verdict::Met(_)));
    assert!(matches!(judge(Figure::AtMost(1.24)), Verdict::Missed(_)));
    assert!(matches!(judge(Figure::AtLeast(1.26)), Verdict::Missed(_)));
    assert!(matches!(judge(Figure::Shown), Verdict::Shown(_)));
    let other = Measure::Cpu { scenario: "1k", over: "shearwater-epoll", under: "null-epoll" };
    assert!(matches!(measured.judge(&row(other, Figure::AtMost(2.0))), Verdict::NotMeasured(_)));
    let text = render(&[], &measured);
    assert!(text.contains("null-epoll (again) ÷ null-epoll  plaintext  1.000 [1.000 1.000]"), "{text}");
}

#[test]
fn a_row_with_too_few_valid_rounds_is_not_measured() {
    let judge = |valid: usize, blocks: u32| {
        let mut others = vec![block(4.0); valid];
        others.resize(blocks as usize, failed());
        let mut measured = measured(vec![block(4.0); blocks as usize], others);
        measured.outcomes[0].plan.blocks = blocks;
        measured.judge(&row(CPU, Figure::AtMost(1.0)))
    };
    for (least, blocks) in [(8, 16), (3, 4), (2, 2), (1, 1)] {
        assert!(matches!(judge(least, blocks), Verdict::Met(_)), "{least} of {blocks}");
        assert!(matches!(judge(least - 1, blocks), Verdict::NotMeasured(_)), "{} of {blocks}", least - 1);
    }
    assert_eq!(judge(7, 16), Verdict::NotMeasured("7 of 16 rounds count, 8 are needed".to_owned()));
    let text = render(&[&row(CPU, Figure::AtMost(9.0))], &measured(vec![block(4.0); 3], vec![failed(); 3]));
    assert!(text.contains("NOT MEASURED"), "{text}");
    assert!(text.contains("not counted: plaintext shearwater-epoll: 3 of 3: planted"), "{text}");
}

#[test]
fn an_interval_across_the_bound_is_reported() {
    let measured = measured(vec![block(4.0); 4], vec![block(4.0), block(4.4), block(4.4), block(5.0)]);
    let text = |figure: Figure| measured.judge(&row(CPU, figure)).text(figure);
    assert_eq!(text(Figure::AtMost(1.15)), "met, within noise");
    assert_eq!(text(Figure::AtMost(1.05)), "MISSED, within noise");
    assert_eq!(text(Figure::AtMost(1.5)), "met");
    assert_eq!(text(Figure::AtLeast(1.5)), "MISSED");
}

#[test]
fn a_claim_to_be_less_needs_the_whole_interval() {
    let judge =
        |ours: Vec<Block>| measured(vec![block(4.0); ours.len()], ours).judge(&row(CPU, Figure::Below(1.0)));
    assert!(matches!(judge(vec![block(3.9); 4]), Verdict::Met(_)));
    assert!(matches!(judge(vec![block(3.9), block(3.8), block(3.9), failed()]), Verdict::Met(_)));
    assert!(matches!(judge(vec![block(3.9), block(3.8), block(3.9), block(4.1)]), Verdict::Missed(_)));
    assert!(matches!(judge(vec![block(4.0); 4]), Verdict::Missed(_)));
    let mut two = measured(vec![block(4.0); 2], vec![block(3.0); 2]);
    two.outcomes[0].plan.blocks = 2;
    assert!(matches!(two.judge(&row(CPU, Figure::Below(1.0))), Verdict::NotMeasured(_)), "no interval");
}

#[test]
fn syscalls_are_compared_round_by_round() {
    let mut measured = measured(vec![block(4.0); 3], vec![block(5.0); 3]);
    let measure = Measure::Syscalls { scenario: "plaintext", of: "shearwater-epoll", less: "null-epoll" };
    let row = row(measure, Figure::AtMost(0.05));
    assert!(matches!(measured.judge(&row), Verdict::NotMeasured(_)));
    let none = || Err("planted".to_owned());
    measured.outcomes[0].entries[0].syscalls = vec![Ok(2.0), none(), Ok(2.2), Ok(2.4)];
    measured.outcomes[0].entries[2].syscalls = vec![Ok(2.04), Ok(9.0), Ok(2.23), Ok(2.42)];
    let Verdict::Met(estimate) = measured.judge(&row) else { panic!("{:?}", measured.judge(&row)) };
    assert!(estimate.values == 3 && (estimate.median - 0.03).abs() < 1e-9, "{estimate:?}");
    measured.outcomes[0].entries[0].syscalls = vec![none(); 4];
    assert_eq!(measured.judge(&row), Verdict::NotMeasured("planted".to_owned()));
}

#[test]
fn a_trial_is_judged_by_its_own_figure_and_server() {
    let judge = |subject: Subject, rounds| {
        let trials = vec![Finding { subject, rounds }];
        let measure = Measure::Trial { subject: SUBJECT, figure: "cpu_percent", about: "CPU" };
        Measured { trials, ..Measured::default() }.judge(&row(measure, Figure::AtMost(0.05)))
    };
    let round = |cpu_percent| Ok(vec![("wake_ups_per_s", 9.0), ("cpu_percent", cpu_percent)]);
    assert!(matches!(judge(SUBJECT, vec![round(0.05)]), Verdict::Met(_)));
    assert!(matches!(judge(SUBJECT, vec![round(0.05), round(0.07), round(0.06)]), Verdict::Missed(_)));
    assert_eq!(judge(SUBJECT, vec![Err("planted".to_owned())]), Verdict::NotMeasured("planted".to_owned()));
    assert!(matches!(judge(SUBJECT, vec![Ok(vec![("rss_mib", 1.0)])]), Verdict::NotMeasured(_)));
    let other = Subject { server: "nginx", ..SUBJECT };
    assert!(matches!(judge(other, vec![round(0.0)]), Verdict::NotMeasured(_)));
}

#[test]
fn instructions_are_compared_as_ratio_or_difference() {
    let (of, base) = (("a", "1k"), ("b", "1k"));
    let instructions = [(of, Ok(2_400.0)), (base, Ok(2_000.0))].into();
    let mut measured = Measured { instructions, ..Measured::default() };
    let measure = |is_ratio| Measure::Instructions { of, base, is_ratio };
    assert!(matches!(measured.judge(&row(measure(true), Figure::AtMost(1.2))), Verdict::Met(_)));
    assert!(matches!(measured.judge(&row(measure(false), Figure::AtMost(399.0))), Verdict::Missed(_)));
    measured.instructions.insert(base, Err("no valgrind".to_owned()));
    let verdict = measured.judge(&row(measure(true), Figure::Shown));
    assert_eq!(verdict, Verdict::NotMeasured("no valgrind".to_owned()));
}
