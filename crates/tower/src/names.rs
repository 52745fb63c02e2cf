//! Names of known request fields as `http` has them, made once so that no request allocates one.

use std::sync::LazyLock;

use http::HeaderName;
use shearwater::Known;

/// Indexed by [`Known`].
static NAMES: LazyLock<Box<[HeaderName]>> =
    LazyLock::new(|| Known::all().iter().map(|known| of(*known)).collect());

/// Returns the name of a field. Cloning it doesn't allocate.
pub(crate) fn name(known: Known) -> &'static HeaderName {
    &NAMES[known as usize]
}

/// Creates a name. About twenty that `http` doesn't know itself are leaked.
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
