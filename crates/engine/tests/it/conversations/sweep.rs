//! Each fault at each operation of a conversation.

use shearwater_engine::io::sim::{Fault, SimOptions};

use crate::harness::conversation::Trouble;
use crate::harness::{Conversation, Setting};

/// Maximum number of operations per conversation, to bound the duration of a sweep.
const OPERATIONS_MAX: u64 = 2000;

/// Runs the conversation without a fault, then with each fault at each of its operations. A failure names
/// both.
pub(crate) fn sweep(conversation: &Conversation) {
    let operations = conversation.run().net.operations();
    assert!((10..OPERATIONS_MAX).contains(&operations), "{operations} operations");
    println!("{operations} operations, each with {} faults", Fault::ALL.len());
    for fault in Fault::ALL {
        let trouble = match fault {
            Fault::Rst => Trouble::Resets(1),
            Fault::Fin => Trouble::Fin,
            Fault::Short | Fault::Eagain | Fault::Delay => Trouble::None,
        };
        for at in 0..operations {
            let _told = Told { fault, at };
            let sim = SimOptions { fault_at: Some((at, fault)), ..conversation.setting.sim.clone() };
            let setting = Setting { sim, ..conversation.setting.clone() };
            Conversation { setting, trouble, ..conversation.clone() }.run();
        }
    }
}

/// Prints the fault if the conversation panics.
struct Told {
    fault: Fault,
    at: u64,
}

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with the fault {:?} at operation {}", self.fault, self.at);
        }
    }
}
