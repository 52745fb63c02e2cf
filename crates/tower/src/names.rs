//! Names of request fields that have a number, as `http` has them: made once, so that none is spelled out for a request.

use std::sync::LazyLock;

use http::HeaderName;
use shearwater::Known;

/// In the order of their numbers.
static NAMES: LazyLock<Box<[HeaderName]>> =
    LazyLock::new(|| Known::all().iter().map(|known| of(*known)).collect());

/// The name with this number. Cloning it allocates nothing.
pub(crate) fn name(known: Known) -> &'static HeaderName {
    &NAMES[known as usize]
}

/// Those that `http` has no number for itself stay for as long as the process: about twenty.
fn of(known: Known) -> HeaderName {
    HeaderName::from_static(Box::leak(known.name().to_ascii_lowercase().into_boxed_str()))
}

#[cfg(test)]
mod tests {
    use shearwater::Known;

    #[test]
    fn each_is_what_it_is_called() {
        for known in Known::all() {
            assert_eq!(super::name(*known).as_str(), known.name().to_ascii_lowercase());
        }
    }
}
