//! Secured connections, with a provider without cryptography.

mod echo;
mod edge;
pub(crate) mod fake;
mod handshakes;
mod harness;
mod records;
mod sealing;

use shearwater_io::secure::Secure;
use shearwater_io::sim::Sim;

use crate::contract::on_sim::SimHarness;
use crate::contract::sockets::{ByReadiness, SocketHarness};
use fake::Fake;
use harness::{Encrypted, Over};

type EncryptedSim<const SEED: u64> = Encrypted<SimHarness<SEED, Secure<Sim, Fake>>>;

mod kind {
    crate::contract::contract_suite!(super::EncryptedSim<0>);
}

mod rough_1 {
    crate::contract::contract_suite!(super::EncryptedSim<1>);
}

mod on_poll {
    crate::contract::contract_suite!(super::Encrypted<super::SocketHarness<super::Over<super::ByReadiness>>>);
}

/// Plain connections of a driver that can secure them.
mod plain_on_poll {
    crate::contract::contract_suite!(super::SocketHarness<super::Over<super::ByReadiness>>);
}

#[cfg(target_os = "linux")]
mod on_uring {
    use super::{Encrypted, Over, SocketHarness};
    use crate::contract::sockets::on_uring::ByCompletion;

    mod multishot {
        crate::contract::contract_suite!(
            super::Encrypted<super::SocketHarness<super::Over<super::ByCompletion<true>>>>
        );
    }
}
