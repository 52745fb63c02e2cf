//! Faults of operations, by script or by the seed.

use super::SimOptions;
use super::rng::Rng;
use super::trace::OperationKind;

/// A fault of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The peer resets the connection just before the operation.
    Rst,
    /// The peer ends its sending side just before the operation.
    Fin,
    /// Moves fewer bytes than possible. No effect on operations that move none.
    Short,
    /// Not ready: retried in a later turn. No effect on a verb that can't wait.
    Eagain,
    /// The connection makes no progress for some driven time. No effect where `Eagain` has none.
    Delay,
}

impl Fault {
    /// All faults, for tests that try each.
    pub const ALL: [Self; 5] = [Self::Rst, Self::Fin, Self::Short, Self::Eagain, Self::Delay];
}

/// Draws a fault for an operation. `deferrable` is false if the connection's last operation was deferred
/// already.
pub(super) fn draw(
    rng: &mut Rng,
    options: &SimOptions,
    kind: OperationKind,
    deferrable: bool,
) -> Option<Fault> {
    use OperationKind as Kind;
    let short = match kind {
        Kind::Receive => options.short_reads,
        Kind::SendAttempt => options.short_writes,
        _ => 0.0,
    };
    let (eagain, delay) = match kind {
        Kind::Accept | Kind::Receive | Kind::ReadEnd | Kind::PeerEnd | Kind::SendAttempt if deferrable => {
            (options.eagain, options.delays)
        }
        _ => (0.0, 0.0),
    };
    let reset = match kind {
        Kind::Closed | Kind::Wake => 0.0,
        _ => options.resets,
    };
    let choices =
        [(eagain, Fault::Eagain), (delay, Fault::Delay), (reset, Fault::Rst), (short, Fault::Short)];
    choices.into_iter().find(|(probability, _)| rng.chance(*probability)).map(|(_, fault)| fault)
}
