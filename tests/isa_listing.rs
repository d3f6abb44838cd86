//! `ISA.md` is what the table of forms prints.

use handloom_tests::workspace::root;

#[test]
fn the_listing_is_up_to_date() {
    let path = root().join("ISA.md");
    let printed = handloom_isa::listing::markdown();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &printed).expect("ISA.md can be written");
    }
    let written = std::fs::read_to_string(&path).expect("ISA.md can be read");
    let differs = written.lines().zip(printed.lines()).position(|(a, b)| a != b);
    assert!(
        written == printed,
        "ISA.md differs from the table, first in line {:?}; UPDATE_EXPECT=1 writes it",
        differs.map(|n| n + 1)
    );
}
