//! Names of known request fields as `http` has them, made once so that no request allocates one.

use std::sync::LazyLock;

use http::HeaderName;
use shearwater::KnownField;

/// Indexed by [`Known`].
static NAMES: LazyLock<Box<[HeaderName]>> =
    LazyLock::new(|| KnownField::all().iter().map(|known| of(*known)).collect());

/// Returns the name of a field. Cloning it doesn't allocate.
pub(crate) fn name(known: KnownField) -> &'static HeaderName {
    &NAMES[known as usize]
}

/// Creates a name. About twenty that `http` doesn't know itself are leaked.
fn of(known: KnownField) -> HeaderName {
    HeaderName::from_static(Box::leak(known.name().to_ascii_lowercase().into_boxed_str()))
}

#[cfg(test)]
mod tests {
    use shearwater::KnownField;

    #[test]
    fn each_is_what_it_is_called() {
        for known in KnownField::all() {
            assert_eq!(super::name(*known).as_str(), known.name().to_ascii_lowercase());
        }
    }
}
