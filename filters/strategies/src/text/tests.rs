use proptest::prelude::*;

use super::{has, is_blank, trim, trim_end, trim_start};

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
