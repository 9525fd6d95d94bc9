//! What a copy takes along and what a removal cannot remove.

use super::stays_inside;

#[test]
fn links_are_judged_by_their_names() {
    for (below, target, expected) in [
        ("l", "a", true),
        ("l", "a/../b", true),
        ("d/l", "../a", true),
        ("l", "../a", false),
        ("d/l", "../../a", false),
        ("d/l", "x/../../../a", false),
        ("l", "/a", false),
    ] {
        assert_eq!(stays_inside(below, target), expected, "{below} -> {target}");
    }
}
