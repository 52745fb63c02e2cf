//! From an input's choices to a conversation.

use shearwater_engine::Limits;
use shearwater_engine::io::sim::{Fault, SimOptions};

use super::choices::Choices;
use super::model;
use crate::harness::conversation::Trouble;
use crate::harness::{Conversation, End, Setting, Step, Unit};

/// Clients of a conversation at most.
const CLIENTS_MAX: usize = 3;
/// Requests of a client that speaks in whole requests, at most.
const REQUESTS_MAX: usize = 6;
/// Pieces that one request is sent in, at most.
const PIECES_MAX: usize = 40;
/// The last operation that a fault may hit.
const FAULT_AT_MAX: usize = 200;
/// How long a drained worker has, in milliseconds.
const DRAIN_MS: u64 = 2000;

/// The conversation that `choices` make, in which the first client says `raw` if there is any.
pub(crate) fn conversation(choices: &mut Choices<'_>, raw: &[u8]) -> Conversation {
    let mut setting = setting(choices);
    let fault = choices.of([None, None, Some(())]).map(|()| choices.of(Fault::ALL));
    setting.sim.fault_at = fault.map(|fault| (choices.below(FAULT_AT_MAX) as u64, fault));
    let mut trouble = match fault {
        Some(Fault::Rst) => Trouble::Resets(1),
        Some(Fault::Fin) => Trouble::Fin,
        Some(Fault::Short | Fault::Eagain | Fault::Delay) | None => Trouble::None,
    };
    let mut drained_after = None;
    if trouble == Trouble::None {
        setting.sim.resets = choices.of([0.0, 0.0, 0.01]);
        drained_after = choices.of([None, None, Some(())]).map(|()| choices.below(40));
        if setting.sim.resets > 0.0 || drained_after.is_some() {
            // Who speaks after a drain has closed the connection meets a reset too.
            trouble = Trouble::Resets(CLIENTS_MAX);
        }
    }
    let mut conversation = Conversation { setting, trouble, ..Conversation::default() };
    let mut plans = Vec::new();
    for number in 0..=choices.below(CLIENTS_MAX) {
        let said = if number == 0 { raw } else { b"" };
        plans.push(add_client(choices, &mut conversation, said).into_iter());
    }
    while plans.iter().any(|plan| plan.len() > 0) {
        let number = choices.below(plans.len());
        let next = if plans[number].len() > 0 { number } else { first_unfinished(&plans) };
        conversation.steps.extend(plans[next].next().map(|step| (next, step)));
        if drained_after == Some(conversation.steps.len()) {
            conversation.steps.push((0, Step::Drain(DRAIN_MS)));
        }
    }
    conversation
}

fn first_unfinished(plans: &[std::vec::IntoIter<Step>]) -> usize {
    plans.iter().position(|plan| plan.len() > 0).unwrap_or(0)
}

fn setting(choices: &mut Choices<'_>) -> Setting {
    let seed = choices.below(256) as u64;
    let temper = if choices.below(3) == 1 {
        SimOptions::rough(seed)
    } else {
        SimOptions { seed, ..SimOptions::default() }
    };
    let sim = SimOptions {
        recv_buffer_bytes: choices.of([64 * 1024, 23, 200, 2000]),
        send_buffer_bytes: choices.of([256 * 1024, 1000, 50]),
        accept_errors: choices.of([0.0, 0.0, 0.0, 0.1]),
        ..temper
    };
    let limits = Limits {
        output_bytes_max: choices.of([64 * 1024, 1, 300]),
        head_bytes_max: choices.of([64 * 1024, 200]),
        target_bytes_max: choices.of([8 * 1024, 40]),
        fields_max: choices.of([100, 4]),
        receive_bytes: choices.of([64 * 1024, 512]),
        connections_max: choices.of([usize::MAX, 1]),
        ..Limits::default()
    };
    Setting { sim, limits, ..Setting::default() }
}

/// Adds a client; gives its steps.
fn add_client(choices: &mut Choices<'_>, conversation: &mut Conversation, raw: &[u8]) -> Vec<Step> {
    let sim = &conversation.setting.sim;
    // Where little is moved at once, much of it would take minutes of simulated delays, and run into the timeouts.
    let is_roomy = sim.recv_buffer_bytes >= 200 && sim.send_buffer_bytes > 10_000;
    let is_slow = choices.below(4) == 1;
    // Who stops reading, or waits for a connection before its own to end, would not see the `100` that it waits for.
    let hears = !is_slow && conversation.setting.limits.connections_max > CLIENTS_MAX;
    let first = 100 * conversation.clients.len();
    let units = match model::units(raw, &conversation.setting.limits) {
        said if !said.is_empty() => said,
        _ => menu(choices, first, hears, is_roomy && !is_slow),
    };
    let mut plan = Vec::new();
    if is_slow {
        plan.push(Step::StopReading(30 + choices.below(3000)));
    }
    units.iter().for_each(|unit| plan_unit(choices, unit, is_slow, &mut plan));
    if choices.below(4) == 1 {
        plan.truncate(choices.below(plan.len() + 1));
    }
    if is_slow {
        plan.push(Step::ReadOn);
    }
    let (end, last) = choices.of([
        (End::Silence, None),
        (End::Finish, Some(Step::Finish)),
        (End::Gone, Some(Step::Close)),
        (End::Gone, Some(Step::Reset)),
    ]);
    plan.extend(last);
    conversation.clients.push(units);
    conversation.ends.push(end);
    plan
}

/// The request in pieces, with something else between them.
fn plan_unit(choices: &mut Choices<'_>, unit: &Unit, is_slow: bool, plan: &mut Vec<Step>) {
    let mut left = unit.bytes.len();
    if let Some(at) = unit.goes_on_at {
        // Waits for the 100, behind all earlier answers.
        plan.extend([Step::Settle, Step::Send(at), Step::Settle]);
        left -= at;
    }
    for piece in 1..=PIECES_MAX {
        if left == 0 {
            return;
        }
        let is_last = piece == PIECES_MAX || choices.below(3) == 0;
        let bytes = if is_last { left } else { 1 + choices.below(left) };
        plan.push(Step::Send(bytes));
        left -= bytes;
        match choices.below(5) {
            1 => plan.push(Step::Settle),
            2 | 3 => plan.push(Step::Turn),
            4 if is_slow => plan.push(Step::Read(1 + choices.below(5000))),
            _ => {}
        }
    }
}

/// Whole requests whose answers are known.
fn menu(choices: &mut Choices<'_>, first: usize, hears: bool, takes_much: bool) -> Vec<Unit> {
    let mut units = Vec::new();
    for number in first..=first + choices.below(REQUESTS_MAX) {
        let unit = dish(choices, number, hears, takes_much);
        let leaves_body = unit.leaves_body();
        units.push(unit);
        if leaves_body {
            break;
        }
    }
    units
}

/// One request.
fn dish(choices: &mut Choices<'_>, number: usize, hears: bool, takes_much: bool) -> Unit {
    match choices.below(20) {
        1 => Unit::head(number),
        2 => Unit::no_content(number),
        3 => Unit::not_modified(number),
        4 => Unit::post(route(choices), number, choices.below(300)),
        5 if takes_much => Unit::post(route(choices), number, choices.below(30_000)),
        6 => Unit::post_chunked(route(choices), number, choices.below(400), 1 + choices.below(99)),
        7 if hears => Unit::post_expecting(route(choices), number, 1 + choices.below(200)),
        8 => Unit::http10(number, true),
        9 => Unit::http10(number, false),
        10 => Unit::closing(number),
        11 => Unit::closed_by_handler(number),
        12 => Unit::panicking(number),
        13 => Unit::malformed(number),
        14 => Unit::too_large(number, 1 << 30, choices.below(5000)),
        15 if takes_much => Unit::file(),
        16 => Unit::plain("OPTIONS", number),
        17 => Unit::later("GET", number),
        18 => Unit::later("HEAD", number),
        _ => Unit::get(number),
    }
}

fn route(choices: &mut Choices<'_>) -> &'static str {
    choices.of(["plain", "buffer", "sink", "taken"])
}
