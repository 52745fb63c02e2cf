//! The whole engine on the simulated kernel: each client gets its own responses in order, and no connection, block or timer remains.

use shearwater_engine::Limits;
use shearwater_engine::io::sim::Fault;

use crate::harness::Choices;
use crate::harness::conversation::Trouble;
use crate::{model, random};

/// Longest text of a client, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Bound on the operation that a fault hits.
const FAULT_AT_MAX: usize = 200;

/// Runs the conversation in `input`: the length of the program, the program, and a client's bytes. The program chooses the kernel's
/// behaviour, a fault, limits, clients and their steps.
pub fn run(input: &[u8]) {
    let Some((&len, rest)) = input.split_first() else { return };
    let (program, text) = rest.split_at(usize::from(len).min(rest.len()));
    let mut dice = Choices::of_program(program);
    let seed = dice.below(256) as u64;
    let limits = Limits {
        head_bytes_max: [64 * 1024, 200][dice.below(2)],
        target_bytes_max: [8 * 1024, 40][dice.below(2)],
        fields_max: [100, 4][dice.below(2)],
        receive_bytes: [64 * 1024, 512][dice.below(2)],
        ..Limits::default()
    };
    let fault =
        dice.once_in(3).then(|| (dice.below(FAULT_AT_MAX) as u64, Fault::ALL[dice.below(Fault::ALL.len())]));
    let one_at_once = dice.once_in(2);
    let first = model::units(&text[..text.len().min(TEXT_BYTES_MAX)], &limits);
    let mut conversation = random::conversation(&mut dice, seed, first);
    let waits = conversation.clients.iter().flatten().any(|unit| unit.continue_at.is_some());
    let setting = &mut conversation.setting;
    // A client that waits for another's end before its own would not get the `100` that it waits for.
    let connections_max = if one_at_once && !waits { 1 } else { usize::MAX };
    setting.limits = Limits { output_bytes_max: setting.limits.output_bytes_max, connections_max, ..limits };
    if conversation.trouble == Trouble::None {
        setting.sim.fault_at = fault;
        conversation.trouble = match fault {
            Some((_, Fault::Rst)) => Trouble::Resets(1),
            Some((_, Fault::Fin)) => Trouble::Fin,
            Some((_, Fault::Short | Fault::Eagain | Fault::Delay)) | None => Trouble::None,
        };
    }
    drop(conversation.run());
}
