//! P.
fn main(){}
