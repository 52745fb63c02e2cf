//! Wrong uses that don't compile: each file of `wrong` with what the compiler says.

#[test]
fn wrong_uses_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/wrong/*.rs");
}
