//! Compares the transitions that connections may make with the table of phases.

use shearwater_io::Token;

use super::Phase;
use crate::worker::state::Table;

const PHASES: [Phase; 15] = [
    Phase::Idle,
    Phase::StrayCr,
    Phase::StrayLine,
    Phase::Head,
    Phase::Body,
    Phase::Waiting,
    Phase::Multiplexed,
    Phase::ProxyHeader,
    Phase::Evicted,
    Phase::Truncated,
    Phase::LastResponse,
    Phase::Linger,
    Phase::HandedOver,
    Phase::Tunnel,
    Phase::Closing,
];

/// Returns the columns "phase" and "next" of the module's table.
fn rows() -> Vec<(Vec<Phase>, String)> {
    let table = include_str!("../connection.rs").lines().filter(|line| line.starts_with("//! | `"));
    table
        .map(|line| {
            let columns: Vec<&str> = line.split('|').collect();
            (phases(columns[1]), columns[3].to_owned())
        })
        .collect()
}

fn phases(text: &str) -> Vec<Phase> {
    let named = |phase: &Phase| text.contains(&format!("`{phase:?}`"));
    PHASES.into_iter().filter(named).collect()
}

/// Returns the phases that the table has after `phase`, including those of the text beneath it.
fn listed(rows: &[(Vec<Phase>, String)], phase: Phase) -> Vec<Phase> {
    let (_, text) = rows.iter().find(|(row, _)| row.contains(&phase)).expect("each phase has a row");
    let (inherited, own) = match text.trim().strip_prefix("as ") {
        Some(rest) => rest.split_once(';').unwrap_or((rest, "")),
        None => ("", text.as_str()),
    };
    let mut next = phases(own);
    for base in phases(inherited) {
        next.extend(listed(rows, base));
    }
    if matches!(phase, Phase::Idle | Phase::Head | Phase::Body | Phase::Waiting | Phase::Multiplexed) {
        next.extend([Phase::LastResponse, Phase::Truncated, Phase::Evicted]);
    }
    if phase != Phase::Closing {
        next.push(Phase::Closing);
    }
    next
}

#[test]
fn allows_the_transitions_of_the_table() {
    let rows = rows();
    for phase in PHASES {
        let listed = listed(&rows, phase);
        for next in PHASES {
            assert_eq!(phase.allows(next), listed.contains(&next), "{next:?} after {phase:?}");
        }
    }
    assert!(Phase::Free.allows(Phase::Idle) && Phase::Closing.allows(Phase::Free));
}

#[test]
fn a_trimmed_table_keeps_open_connections_only() {
    let mut table = Table::default();
    let tokens: Vec<_> = (0..300).map(|slot| Token::new(slot, 0)).collect();
    tokens.iter().for_each(|token| table.open(*token, 0));
    for token in &tokens[5..] {
        table.get(*token).close();
        table.free(*token);
    }
    let slots = table.trim();
    assert!((5..tokens.len()).contains(&slots), "{slots} slots");
    assert!(table.find(tokens[4]).is_some() && table.find(tokens[299]).is_none());
    let again = Token::new(299, 1);
    table.open(again, 0);
    assert!(table.find(again).is_some() && table.find(tokens[299]).is_none());
}
