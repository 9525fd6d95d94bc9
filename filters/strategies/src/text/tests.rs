use proptest::prelude::*;

use super::{find, has, is_blank, trim, trim_end, trim_start, unframed};

proptest! {
    #[test]
    fn lines_are_trimmed_as_by_the_standard_library(line in "([ \t\u{b}\u{c}\r\u{1c}\u{a0}\u{3000}\u{85}]|[a:é]){0,8}") {
        prop_assert_eq!(trim_start(&line), line.trim_start());
        prop_assert_eq!(trim_end(&line), line.trim_end());
        prop_assert_eq!(trim(&line), line.trim());
        prop_assert_eq!(is_blank(&line), line.trim().is_empty());
        prop_assert_eq!(has(&line, b"a:"), line.contains("a:"));
    }
}

#[test]
fn a_part_is_found_where_its_rare_byte_is() {
    assert_eq!(find("a = b = c", b" = ", 1), Some(1));
    assert_eq!(find("= a=b =", b" = ", 1), None);
    assert_eq!(find("", b" = ", 1), None);
    assert_eq!(find("k panicked at x", b"panicked at ", 5), Some(2));
}

#[test]
fn a_frame_is_taken_off() {
    assert_eq!(unframed("___ test_a_b ___", b'_'), " test_a_b ");
    assert_eq!(unframed("a", b'_'), "a");
    assert_eq!(unframed("____", b'_'), "");
    assert_eq!(unframed("_ü_", b'_'), "ü");
}
