//! Sizes that the engine relies on.

use shearwater_http1::{BodyDecoder, BodyEvent, KnownField, Method, ParseError, Parsed};

#[test]
fn what_is_kept_per_connection_is_small() {
    assert!(size_of::<BodyDecoder>() <= 32, "{}", size_of::<BodyDecoder>());
    assert_eq!(
        (
            size_of::<KnownField>(),
            size_of::<Option<KnownField>>(),
            size_of::<ParseError>(),
            size_of::<Method>()
        ),
        (1, 1, 1, 1)
    );
    assert!(size_of::<Result<Parsed, ParseError>>() <= 16);
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
