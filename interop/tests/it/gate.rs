//! A gate that blocks handlers until the test opens it.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// A gate that opens once. Clones share it.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    pub(crate) fn open(&self) {
        self.0.close();
    }

    /// Waits until the gate is open.
    pub(crate) async fn passed(&self) {
        drop(self.0.acquire().await);
    }
}
