//! The suite on the completion driver, with multishot receives and with one entry per receive.

use std::io;

use shearwater_io::Entrances;
use shearwater_io::uring::{Uring, UringOptions, probe};

use super::harness::Setup;
use super::sockets::{Kernel, SocketHarness};

/// The completion driver, with or without multishot receives.
pub(crate) struct ByCompletion<const MULTISHOT: bool>;

impl<const MULTISHOT: bool> Kernel for ByCompletion<MULTISHOT> {
    type Driver = Uring;

    fn driver(entrances: impl Into<Entrances>, setup: Setup) -> io::Result<Uring> {
        let Setup { connections_max, recv_buffer_bytes, .. } = setup;
        Uring::new(entrances, UringOptions { connections_max, recv_buffer_bytes, multishot: MULTISHOT })
    }

    fn missing() -> Option<String> {
        probe().err().map(|why| why.to_string())
    }
}

mod multishot {
    use super::super::contract_suite;

    contract_suite!(super::SocketHarness<super::ByCompletion<true>>);
}

mod one_by_one {
    use super::super::contract_suite;

    contract_suite!(super::SocketHarness<super::ByCompletion<false>>);
}
