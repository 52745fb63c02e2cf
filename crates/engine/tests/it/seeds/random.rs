//! A random conversation, from a seed or a fuzzer's bytes. The first alternative of each choice is the usual one.

use shearwater_engine::Limits;
use shearwater_engine::io::sim::SimOptions;

use crate::harness::conversation::Trouble;

use crate::harness::{Act, Choices, ClientEnd, Conversation, Setting, Unit};

/// Clients of a conversation at most.
const CLIENTS_MAX: usize = 5;
/// Requests of a client at most.
const REQUESTS_MAX: usize = 8;

/// Makes the conversation that `dice` chooses. The first client sends `first`, if there is any.
pub(crate) fn conversation(dice: &mut Choices, seed: u64, first: Vec<Unit>) -> Conversation {
    let setting = setting(seed, dice);
    let drained_after = dice.once_in(8).then(|| dice.below(40));
    // Who speaks after a drain has closed the connection meets a reset.
    let has_resets = setting.sim.resets > 0.0 || drained_after.is_some();
    let trouble = if has_resets { Trouble::Resets(CLIENTS_MAX) } else { Trouble::None };
    let mut conversation = Conversation { setting: setting.clone(), trouble, ..Conversation::default() };
    let mut plans = Vec::new();
    let mut first = Some(first).filter(|units| !units.is_empty());
    for client in 0..=dice.below(CLIENTS_MAX) {
        // Where little is moved at once, much of it would take minutes of simulated delays, and run into the timeouts.
        let is_roomy = setting.sim.recv_buffer_bytes >= 200 && setting.sim.send_buffer_bytes > 10_000;
        let (units, plan, end) = client_of(dice, client * 100, is_roomy, first.take());
        conversation.clients.push(units);
        conversation.ends.push(end);
        plans.push(plan.into_iter());
    }
    while plans.iter().any(|plan| plan.len() > 0) {
        let chosen = dice.below(plans.len());
        let is_waiting = |number: &usize| plans[*number].len() > 0;
        let number = [chosen].into_iter().chain(0..plans.len()).find(is_waiting).unwrap_or(chosen);
        conversation.steps.extend(plans[number].next().map(|step| (number, step)));
        if drained_after == Some(conversation.steps.len()) {
            conversation.steps.push((0, Act::Drain(2000)));
        }
    }
    conversation
}

fn setting(seed: u64, dice: &mut Choices) -> Setting {
    let sim = SimOptions {
        recv_buffer_bytes: dice.pick(&[64 * 1024, 23, 200, 2000]),
        send_buffer_bytes: dice.pick(&[256 * 1024, 50, 1000]),
        resets: dice.pick(&[0.0, 0.0, 0.01]),
        accept_errors: dice.pick(&[0.0, 0.0, 0.0, 0.1]),
        ..if dice.below(5) == 0 {
            SimOptions { seed, ..SimOptions::default() }
        } else {
            SimOptions::rough(seed)
        }
    };
    let limits = Limits { output_bytes_max: dice.pick(&[64 * 1024, 1, 300]), ..Limits::default() };
    Setting { sim, limits, is_unobserved: seed.is_multiple_of(2), ..Setting::default() }
}

/// Restrictions on the requests of a client.
#[derive(Debug, Clone, Copy)]
struct ClientKind {
    /// The client stops reading: it would not see the `100` that it waits for.
    is_slow: bool,
    /// The network moves much at once.
    is_roomy: bool,
}

/// Makes a client: its requests, its steps and its end.
fn client_of(
    dice: &mut Choices,
    number: usize,
    is_roomy: bool,
    units: Option<Vec<Unit>>,
) -> (Vec<Unit>, Vec<Act>, ClientEnd) {
    let is_slow = dice.once_in(4);
    let kind = ClientKind { is_slow, is_roomy };
    let units = units.unwrap_or_else(|| units_of(dice, number, kind));
    let mut plan = Vec::new();
    if is_slow {
        plan.push(Act::StopReading(30 + dice.below(3000)));
    }
    for unit in &units {
        plan_unit(dice, unit, is_slow, &mut plan);
    }
    if dice.once_in(4) {
        plan.truncate(dice.below(plan.len() + 1));
    }
    if is_slow {
        plan.push(Act::ReadOn);
    }
    let end = match dice.below(12) {
        0..=6 => ClientEnd::Silence,
        7..=9 => {
            plan.push(Act::Finish);
            ClientEnd::Finish
        }
        10 => {
            plan.push(Act::Close);
            ClientEnd::Gone
        }
        _ => {
            plan.push(Act::Reset);
            ClientEnd::Gone
        }
    };
    (units, plan, end)
}

/// Sends a request in one or more pieces, with pauses.
fn plan_unit(dice: &mut Choices, unit: &Unit, is_slow: bool, plan: &mut Vec<Act>) {
    let mut left = unit.bytes.len();
    if let Some(at) = unit.continue_at {
        // Waits for the 100, behind all earlier responses.
        plan.extend([Act::Settle, Act::Send(at), Act::Settle]);
        left -= at;
    }
    while left > 0 {
        let bytes = if dice.once_in(3) { 1 + dice.below(left) } else { left };
        plan.push(Act::Send(bytes));
        left -= bytes;
        match dice.below(6) {
            0 => plan.push(Act::Settle),
            1 | 2 => plan.push(Act::Turn),
            3 if is_slow => plan.push(Act::Read(1 + dice.below(5000))),
            _ => {}
        }
    }
}

fn units_of(dice: &mut Choices, first: usize, kind: ClientKind) -> Vec<Unit> {
    let mut units = Vec::new();
    for number in first..=first + dice.below(REQUESTS_MAX) {
        let unit = unit_of(dice, number, kind);
        let leaves_body = unit.leaves_body();
        units.push(unit);
        if leaves_body {
            break;
        }
    }
    units
}

fn unit_of(dice: &mut Choices, number: usize, kind: ClientKind) -> Unit {
    let route = dice.pick(&["plain", "buffer", "pulled", "taken"]);
    match dice.below(44) {
        0..=9 => Unit::get(number),
        10 | 11 => Unit::plain("HEAD", number),
        12 => Unit::no_content(number),
        13 => Unit::not_modified(number),
        14..=19 => Unit::post(route, number, dice.below(300)),
        20 => Unit::post(route, number, dice.below(30_000)),
        21 if kind.is_roomy && dice.once_in(4) => Unit::post("pulled", number, 70_000 + dice.below(90_000)),
        22..=25 => {
            let (len, chunk) = (dice.below(400), 1 + dice.below(99));
            Unit::post_chunked(route, number, len, chunk)
        }
        26..=28 if !kind.is_slow => Unit::post_expecting(route, number, 1 + dice.below(200)),
        29 | 30 => Unit::http10(number, true),
        31 => Unit::http10(number, false),
        32 => Unit::closing(number),
        33 => Unit::closed_by_handler(number),
        34 => Unit::panicking(number),
        35 => Unit::malformed(number),
        36 => Unit::too_large(number, 1 << 30, dice.below(5000)),
        37 if kind.is_roomy && !kind.is_slow && dice.once_in(10) => Unit::big(),
        38 if kind.is_roomy && !kind.is_slow && dice.once_in(10) => Unit::file(),
        39 | 40 => Unit::later("GET", number),
        41 => Unit::later("HEAD", number),
        42 if kind.is_roomy && dice.once_in(4) => Unit::post("taken", number, 70_000 + dice.below(90_000)),
        _ => Unit::plain("OPTIONS", number),
    }
}
