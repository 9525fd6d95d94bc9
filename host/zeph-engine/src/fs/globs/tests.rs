//! Patterns over made-up names.

use std::path::Path;

use proptest::prelude::*;

use super::{Patterns, Shade};

proptest! {
    #[test]
    fn where_no_pattern_reaches_nothing_is_hidden(
        deny in prop::collection::vec("(/(a|b|ab|\\*|a\\?|\\*\\*)){1,4}", 0..4),
        allow in prop::collection::vec("(/(a|b|\\*)){1,3}", 0..2),
        path in "(/(a|b|ab|aa)){0,4}",
        below in "(/(a|b|ab|aa)){0,3}",
    ) {
        let patterns = Patterns::compile(&deny, &allow, &[]);
        prop_assume!(patterns.is_ok());
        let patterns = patterns.expect("assumed");
        let whole = format!("{path}{below}/a");
        let matched = whole.match_indices('/').skip(1).map(|(end, _)| end).chain([whole.len()]).fold(
            Shade::default(),
            |shade, end| Shade {
                deny: shade.deny || patterns.deny.is_match(Path::new(&whole[..end]), true),
                allow: shade.allow || patterns.allow.is_match(Path::new(&whole[..end]), false),
                ..shade
            },
        );
        let top = Path::new(if path.is_empty() { "/" } else { &path });
        prop_assert!(!patterns.is_clear(top) || !matched.hides(), "{deny:?} {top:?} {whole}");
        let next = whole[path.len() + 1..].split('/').next().unwrap_or_default();
        let may_hide = patterns.hideable(top, patterns.shade(top)).has(next);
        prop_assert!(may_hide || !matched.hides(), "{deny:?} {top:?} {whole}");
        prop_assert_eq!(patterns.shade(Path::new(&whole)).hides(), matched.hides());
    }
}

#[test]
fn far_directories_are_clear() {
    let deny = ["/home/u/.local/zeph", "/home/u/.cache/*/key", "/srv/x?/**"].map(str::to_owned);
    let patterns = Patterns::compile(&deny, &[], &[]).expect("patterns");
    for (path, is_clear) in [
        ("/home/u/project", true),
        ("/home/u/.local/zephyr", true),
        ("/home/u/.cachet", true),
        ("/", false),
        ("/home/u", false),
        ("/home/u/.local/zeph", false),
        ("/home/u/.local/zeph/store/db", false),
        ("/home/u/.cache/any", false),
        ("/srv/y", false),
    ] {
        let is_expected = is_clear && !cfg!(target_os = "macos");
        assert_eq!(patterns.is_clear(Path::new(path)), is_expected, "{path}");
    }
    for (dir, name, may_hide) in [
        ("/home/u", "project", false),
        ("/home/u", ".cache", true),
        ("/home/u/.local", "zeph", true),
        ("/home/u/.local", "zephyr", false),
        ("/home/u/.cache", "any", true),
        ("/srv", "y", true),
    ] {
        let hideable = patterns.hideable(Path::new(dir), Shade::default());
        assert_eq!(
            hideable.has(name),
            may_hide || cfg!(target_os = "macos"),
            "{dir} {name}"
        );
    }
}
