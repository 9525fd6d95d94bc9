//! RSpec, minitest and RuboCop.

use super::{FactKind, Facts};

pub(super) fn read_tests(lines: &[&str], facts: &mut Facts) {
    for line in lines {
        let text = line.trim_start();
        // Both number their failures; minitest names the test in the line below.
        let named = text
            .split_once(") ")
            .filter(|(n, _)| n.parse::<u32>().is_ok());
        if let Some((_, name)) = named.filter(|(_, name)| !name.contains(':')) {
            facts.add(FactKind::Name, name);
        }
        if text.contains(" [/") && text.ends_with("]:") {
            facts.add(FactKind::Name, text.split(" [").next().unwrap_or(text));
        }
        let is_frame =
            text.starts_with("# ./") || text.starts_with("rspec ./") || text.contains("_test.rb:");
        if is_frame || text.starts_with("/home/") {
            facts.add_places(text);
        }
        for start in [
            "Failure/Error: ",
            "expected: ",
            "got: ",
            "Expected: ",
            "Actual: ",
            "Expected ",
        ] {
            if text.starts_with(start) {
                facts.add(FactKind::Message, text);
            }
        }
        let is_total = text.contains(" examples, ")
            || text.contains(" assertions, ") && text.contains(" runs");
        if is_total && !text.contains("runs/s") {
            facts.add(FactKind::Total, text);
        }
    }
}

/// `lib/a.rb:1:2: C: [Correctable] Style/X: message`.
pub(super) fn read_rubocop(lines: &[&str], facts: &mut Facts) {
    for line in lines {
        let Some((place, rest)) = line.split_once(": ") else {
            if line.contains(" offenses detected") {
                facts.add(FactKind::Total, line);
            }
            continue;
        };
        let cop = rest.split(": ").find(|part| part.contains('/'));
        if let Some(cop) = cop.filter(|_| place.contains(".rb:")) {
            let cop = cop.trim_start_matches("[Correctable] ");
            facts.add_finding(place, "", cop.split(' ').next().unwrap_or(cop));
        }
    }
}
