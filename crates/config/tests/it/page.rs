//! `docs/configuration.md` is what the crate says.

#[test]
fn the_page_is_up_to_date() {
    let page = include_str!("../../../../docs/configuration.md");
    assert!(
        page == shearwater_config::page(),
        "docs/configuration.md is not what the code says: \
         cargo run -p shearwater-config --example page > docs/configuration.md"
    );
}
