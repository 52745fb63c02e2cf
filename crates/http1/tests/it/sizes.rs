//! Sizes that the engine relies on.

use shearwater_http1::{BodyDecoder, BodyEvent, Known, Method, Parsed, Reject};

#[test]
fn what_is_kept_per_connection_is_small() {
    assert!(size_of::<BodyDecoder>() <= 32, "{}", size_of::<BodyDecoder>());
    assert_eq!(
        (size_of::<Known>(), size_of::<Option<Known>>(), size_of::<Reject>(), size_of::<Method>()),
        (1, 1, 1, 1)
    );
    assert!(size_of::<Result<Parsed, Reject>>() <= 16);
    assert!(size_of::<BodyEvent<'_>>() <= 24);
}

#[test]
fn a_parser_is_cheap_to_swap() {
    assert!(
        size_of::<shearwater_http1::HeadParser>() <= 320,
        "{}",
        size_of::<shearwater_http1::HeadParser>()
    );
}
