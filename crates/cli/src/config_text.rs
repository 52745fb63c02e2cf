//! `shearwater config`: the text of a configuration.

use shearwater_config::{print_default, print_effective};

use crate::args::ConfigText;
use crate::configured::file;
use crate::failure::Failure;

/// Prints what was asked for.
pub(crate) fn print(asked: &ConfigText) -> Result<(), Failure> {
    if let Some(path) = &asked.print_effective {
        let config = file::read(path)?;
        let head = format!("# What is in effect with {}.\n\n", path.display());
        return crate::print(&(head + &print_effective(&config)));
    }
    crate::print(&print_default())
}
