//! Public suffixes, below which names belong to many: <https://publicsuffix.org>.
//!
//! The rules are searched as they are written. As code, which other libraries make of them, they are twenty times as large.

/// Every rule in a line, sorted by bytes, names in the letters of DNS. From `data/rules.txt` of the crate `psl`, which the tests compare
/// it with; the list itself is under MPL-2.0.
const RULES: &str = include_str!("public_suffixes.txt");

/// Bytes of the public suffix of `name`, which is in lower case and in the letters of DNS. That of a name under an unknown top-level domain is its
/// last label.
pub(super) fn suffix_bytes(name: &str) -> usize {
    let mut rest = name;
    loop {
        let above = rest.split_once('.').map(|(_, above)| above);
        if is_rule(&format!("!{rest}")) {
            return above.map_or(rest.len(), str::len);
        }
        let is_below_any = || above.is_some_and(|above| is_rule(&format!("*.{above}")));
        match above {
            Some(above) if !is_rule(rest) && !is_below_any() => rest = above,
            _ => return rest.len(),
        }
    }
}

/// Whether this is a line of the rules.
fn is_rule(wanted: &str) -> bool {
    let rules = RULES.as_bytes();
    let (mut low, mut high) = (0, rules.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        let before = rules[low..middle].iter().rposition(|byte| *byte == b'\n');
        let start = before.map_or(low, |end| low + end + 1);
        let length = rules[start..].iter().position(|byte| *byte == b'\n');
        let end = length.map_or(rules.len(), |length| start + length);
        match rules[start..end].cmp(wanted.as_bytes()) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => low = end + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{RULES, suffix_bytes};

    #[test]
    fn the_rules_are_sorted() {
        assert!(RULES.lines().is_sorted());
        assert!(RULES.ends_with('\n'));
    }

    /// The rules and the code that another library makes of them agree about names at, below and above every rule.
    #[test]
    fn agrees_with_the_rules_as_code() {
        for rule in RULES.lines() {
            let rule = rule.trim_start_matches('!');
            let name = rule.replace('*', "any");
            for prefix in ["", "a.", "a.b.", "www."] {
                let name = format!("{prefix}{name}");
                let expected =
                    psl::suffix(name.as_bytes()).map_or(name.len(), |it| it.as_bytes().len());
                assert_eq!(suffix_bytes(&name), expected, "{name}");
            }
        }
        for name in [
            "localhost",
            "a.b.unknown",
            "example.com",
            "co.uk",
            "a.co.uk",
            "ck",
            "x.ck",
            "www.ck",
        ] {
            let expected =
                psl::suffix(name.as_bytes()).map_or(name.len(), |it| it.as_bytes().len());
            assert_eq!(suffix_bytes(name), expected, "{name}");
        }
    }
}
