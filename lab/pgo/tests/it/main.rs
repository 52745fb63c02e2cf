//! A profile in a checkout: fresh, stale, changed, gone.

mod profiles;
