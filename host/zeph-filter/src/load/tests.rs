use std::collections::BTreeSet;

use crate::rule::{Origin, Rule};
use crate::{BUILTIN, Filters};

const GOOD: &str =
    "[[rules]]\nname = 'good'\nmatch = { exact = 'good' }\nstrategy = { type = 'dedup' }\n";

fn warning_of(text: &str) -> String {
    let (filters, warnings) = Filters::load(&[], Some(("f.toml", &format!("{text}{GOOD}"))));
    assert_eq!(filters.rules().len(), 1, "{text}");
    let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 1, "{text}: {texts:?}");
    texts[0].clone()
}

fn check(rule: &str, reason: &str) {
    let warning = warning_of(&format!("[[rules]]\nname = 'bad'\n{rule}\n"));
    assert!(
        warning.starts_with("f.toml: rule `bad` is not used: "),
        "{warning}"
    );
    assert!(warning.contains(reason), "{warning}");
}

const DEDUP: &str = "strategy = { type = 'dedup' }";

#[test]
fn a_bad_rule_is_left_out_with_its_reason() {
    check(DEDUP, "`match` is missing");
    check("match = { exact = 'a' }", "`strategy` is missing");
    check(&format!("match = {{}}\n{DEDUP}"), "exactly one of");
    check(
        &format!("match = {{ exact = 'a', prefix = 'b' }}\n{DEDUP}"),
        "exactly one of",
    );
    check(
        &format!("match = {{ regex = '(' }}\n{DEDUP}"),
        "does not compile",
    );
    check(
        &format!("match = {{ regex = '{}' }}\n{DEDUP}", "a".repeat(513)),
        "513 characters",
    );
    check(
        &format!("match = {{ regex = '(\\w{{500}}){{500}}' }}\n{DEDUP}"),
        "does not compile",
    );
    check(
        &format!("match = {{ glob = 'a' }}\n{DEDUP}"),
        "unknown field `glob`",
    );
    check(
        &format!("match = {{ exact = '' }}\n{DEDUP}"),
        "0 characters",
    );
    check(
        &format!("colour = 1\nmatch = {{ exact = 'a' }}\n{DEDUP}"),
        "unknown field `colour`",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { type = 'nonsense' }",
        "there is no strategy `nonsense`",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { head = 3 }",
        "`strategy.type` is missing",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { type = 'truncate', heads = 3 }",
        "unknown field `heads`",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { type = 'truncate', head = -3 }",
        "invalid value",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { type = 'strip_noise', patterns = ['('] }",
        "unclosed group",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { type = 'strip_noise', patterns = [] }",
        "`patterns` is empty",
    );
    check(
        "match = { exact = 'a' }\nstrategy = { type = 'wasm:' }",
        "followed by the name",
    );
    let long = "a".repeat(513);
    check(
        &format!(
            "match = {{ exact = 'a' }}\nstrategy = {{ type = 'keep_matching', patterns = ['{long}'] }}"
        ),
        "513 characters",
    );
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    assert!(warning_of("[rule]\nx = 1\n").contains("there is no key `rule`"));
    assert!(
        warning_of("[[rules]]\nenabled = true\n")
            .contains("rule `number 1` is not used: missing field `name`")
    );
    let (filters, warnings) = Filters::load(BUILTIN, Some(("f.toml", "[[rules]\n")));
    assert_eq!(filters.rules().len(), BUILTIN.len());
    assert!(warnings[0].reason.contains("line 1"), "{}", warnings[0]);
    let (filters, warnings) = Filters::load(BUILTIN, Some(("f.toml", &"#".repeat((1 << 20) + 1))));
    assert_eq!(filters.rules().len(), BUILTIN.len());
    assert!(
        warnings[0].reason.contains("1048577 bytes"),
        "{}",
        warnings[0]
    );
}

fn names(filters: &Filters) -> Vec<&str> {
    filters
        .rules()
        .iter()
        .map(|rule| rule.name.as_str())
        .collect()
}

#[test]
fn the_users_file_goes_over_the_builtin_rules() {
    let builtin = &[
        ("good.toml", GOOD),
        (
            "other.toml",
            "[[rules]]\nname = 'other'\nmatch = { exact = 'other' }\nstrategy = { type = 'dedup' }\n",
        ),
    ];
    let user = "[[rules]]\nname = 'mine'\nmatch = { exact = 'm' }\nstrategy = { type = 'dedup' }\n\
        [[rules]]\nname = 'good'\nmatch = { exact = 'g' }\nstrategy = { type = 'truncate' }\n";
    let (filters, warnings) = Filters::load(builtin, Some(("f.toml", user)));
    assert_eq!(warnings, []);
    assert_eq!(names(&filters), ["mine", "good", "other"]);
    assert_eq!(filters.rules()[1].strategy(), "truncate");
    assert_eq!(filters.rules()[1].origin, Origin::User("f.toml".to_owned()));
    let (filters, warnings) = Filters::load(
        builtin,
        Some(("f.toml", "[[rules]]\nname = 'good'\nenabled = false\n")),
    );
    assert_eq!(warnings, []);
    assert_eq!(names(&filters), ["other"]);
    assert_eq!(filters.disabled(), ["good"]);
}

#[test]
fn a_name_that_is_switched_off_is_that_of_a_rule() {
    let own = "match = { exact = 'm' }\nstrategy = { type = 'dedup' }\n";
    for (rule, said) in [
        ("name = 'make'\n".to_owned(), None),
        (
            "name = 'mak'\n".to_owned(),
            Some(
                "f.toml: rule `mak` is not used: no built-in rule of this name is there to be switched off (did you mean `make`?)",
            ),
        ),
        // One of the file's own, which is kept for later.
        (format!("name = 'mine'\n{own}"), None),
    ] {
        let text = format!("[[rules]]\nenabled = false\n{rule}");
        let (_, warnings) = Filters::load(BUILTIN, Some(("f.toml", &text)));
        let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(told, Vec::from_iter(said), "{rule}");
    }
}

#[test]
fn a_name_stands_once() {
    let (filters, warnings) = Filters::load(&[], Some(("f.toml", &format!("{GOOD}{GOOD}"))));
    assert_eq!(names(&filters), ["good"]);
    assert!(warnings[0].reason.contains("of this name"));
}

#[test]
fn every_builtin_file_is_right() {
    for (name, text) in BUILTIN {
        let file = crate::rule::read(name, text, &Origin::User("f.toml".to_owned()));
        assert_eq!(file.warnings, [], "{name}");
        let (filters, _) = Filters::load(BUILTIN, None);
        for rule in &file.rules {
            let mut loaded = filters.rules().into_iter();
            let loaded = loaded.find(|other| other.name == rule.name);
            let loaded = loaded.expect("what stands before the tests is all of the rules");
            assert_eq!(loaded.matches(), rule.matches());
            assert_eq!(loaded.options(), rule.options());
        }
    }
}

#[test]
fn every_builtin_rule_is_read_for_the_commands_it_is_for() {
    let (filters, _) = Filters::load(BUILTIN, None);
    for rule in filters.rules() {
        let crate::rule::Matcher::Regex(pattern) = &rule.matcher else {
            panic!("{}: the index is made from an expression", rule.name);
        };
        let of_pattern = pattern.starts().expect("it begins with names of programs");
        let of_pattern: BTreeSet<_> = of_pattern.iter().map(String::as_str).collect();
        let indexed = crate::builtin::starts(&rule.name).expect("it is in the index");
        assert_eq!(
            of_pattern,
            indexed.iter().copied().collect(),
            "{}",
            rule.name
        );
    }
}

#[test]
fn every_builtin_strategy_can_be_made() {
    let (filters, _) = Filters::load(BUILTIN, None);
    for Rule { name, action, .. } in filters.rules() {
        if let crate::rule::Action::Native {
            definition,
            options,
            ..
        } = action
        {
            assert!((definition.create)(options).is_ok(), "{name}");
        }
    }
    assert_eq!(filters.rules().len(), BUILTIN.len());
}
