//! Patterns over paths mean the same however they are spelt.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;

use super::lab::{call, decide, naming, permissions, redirected, rule, rules};
use crate::policy::path_glob::PathGlob;
use crate::policy::pattern::Pattern;
use crate::policy::{
    Action, AllowRule, Effect, PathLayer, PermissionRule, Policy, PolicyRule, PolicyRuleText,
    SessionFacts,
};

fn over(effect: Effect, glob: &str) -> PolicyRuleText {
    PolicyRuleText {
        paths: vec![glob.to_owned()],
        ..rule(effect, "*", None)
    }
}

/// The policies that have one rule over paths, each of another kind.
fn policies(glob: &str) -> [Policy; 5] {
    let ruled = |effect| Policy {
        rules: rules(&[over(effect, glob)], Effect::Allow),
        ..Policy::default()
    };
    let permitted = |action: &str| Policy {
        permissions: permissions("write", &[&format!("{action} {glob}")]),
        ..Policy::default()
    };
    [
        ruled(Effect::Deny),
        ruled(Effect::Allow),
        permitted("deny"),
        permitted("allow"),
        Policy {
            allow: vec![AllowRule::parse(&format!("write:{glob}"), "/w").unwrap()],
            ..Policy::default()
        },
    ]
}

/// What each of them says of a call that names `path`, of a command that does, and what is hidden.
fn said(glob: &str, path: &str) -> Vec<(&'static str, &'static str, Vec<Vec<PathLayer>>)> {
    let asked = policies(glob).into_iter().map(|policy| {
        let write = || call("write", json!({"path": path}), &[path]);
        let hidden = policy.hidden_paths(&SessionFacts::default(), &write());
        let of_command = decide(&policy, naming("cat", &[path]));
        (decide(&policy, write()), of_command, hidden)
    });
    asked.collect()
}

fn hidden_from_commands(glob: &str) -> Vec<PathBuf> {
    let rules = rules(&[over(Effect::Deny, glob)], Effect::Allow).unwrap();
    rules.hidden_from_commands().paths
}

/// Names and wildcards of patterns.
const PARTS: [&str; 8] = ["a", "b", "*", "**", "?", "a*", "{a,b}", "[ab]"];
/// What stands for nothing; what takes a name away again comes in front of it.
const NOTHING: [&str; 6] = ["", "/", "./", "x/../", ".//x/./..//", "x/y/../../"];

proptest! {
    #[test]
    fn a_pattern_decides_as_its_plain_spelling(
        parts in prop::collection::vec((0..PARTS.len(), 0..NOTHING.len()), 1..4),
        start in 0..5_usize,
        end in prop::sample::select(&["", "/", "/.", "/x/..", "//"][..]),
        path in prop::sample::select(&[
            "/w", "/w/a", "/w/b", "/w/a/b", "/w/b/a/b", "/w/x", "/w/x/a", "/a", "/a/b", "/", "/v/a",
        ][..]),
    ) {
        let names: Vec<&str> = parts.iter().map(|(part, _)| PARTS[*part]).collect();
        let rest: String = parts.iter().map(|(part, nothing)| {
            format!("{}{}/", NOTHING[*nothing], PARTS[*part])
        }).collect();
        let (before, spelt) = [
            ("/w", "./"), ("/w", "../w//"), ("/w", "/w/./"), ("", "/v/..///"), ("", "../../../"),
        ][start];
        // The slash behind the last part comes from `end`.
        let spelt = format!("{spelt}{}{end}", rest.trim_end_matches('/'));
        let plain = format!("{before}/{}", names.join("/"));

        let glob = PathGlob::read(&spelt, "/w").unwrap();
        prop_assert_eq!(glob.glob(), plain.clone(), "{}", spelt);
        let oracle = Pattern::new(&plain).unwrap();
        let read = Pattern::path(&spelt, "/w").unwrap();
        prop_assert_eq!(read.fits(path), oracle.fits(path), "{} {}", spelt, path);
        prop_assert_eq!(said(&spelt, path), said(&plain, path), "{} {}", spelt, path);
        prop_assert_eq!(hidden_from_commands(&spelt), hidden_from_commands(&plain), "{}", spelt);
    }

    /// What the paths of calls cannot hold is what is dissolved: a plain pattern stays as it is.
    #[test]
    fn a_plain_pattern_is_not_changed(text in r"/?[ab*?\[\]{},.\\!^-]{1,6}(/[ab*?\[\]{},.\\!^-]{1,6}){0,3}") {
        prop_assume!(!text.split('/').any(|part| part == "." || part == ".."));
        // What a brace begins with is read by itself.
        prop_assume!(!text.starts_with('{'));
        let class = text.split(']').next().filter(|_| text.starts_with('['));
        let may_be_slash = class.is_some_and(|class| class.contains('/'));
        let is_relative = !text.starts_with(['/', '*']) && !may_be_slash;
        let expect = if is_relative { format!("/w/{text}") } else { text.clone() };
        prop_assert_eq!(PathGlob::read(&text, "/w").unwrap().glob(), expect);
    }
}

#[test]
fn a_rule_denies_and_allows_however_it_is_spelt() {
    let (inside, outside) = ("/w/src/main.rs", "/w/docs/a.md");
    for glob in [
        "src/*",
        "./src/*",
        ".//src/*",
        "src//*",
        "src/./*",
        "src/../src/*",
        "docs/../src/**",
        "../w/src/*",
        "/w/./src/*",
        "/v/../w/src/*",
        "./src/main.rs",
        "src/main.rs/",
    ] {
        let of = |path| -> Vec<_> { said(glob, path).into_iter().map(|said| said.0).collect() };
        assert_eq!(
            of(inside),
            ["deny", "allow", "deny", "allow", "allow"],
            "{glob}"
        );
        assert_eq!(of(outside), ["ask"; 5], "{glob}");
    }
}

#[test]
fn a_closing_slash_means_the_directory() {
    for (pattern, path, expect) in [
        ("list_directory:.", "/w", "allow"),
        ("list_directory:./", "/w", "allow"),
        ("list_directory:/w/", "/w", "allow"),
        ("list_directory:./src", "/w/src", "allow"),
        ("list_directory:src/", "/w/src", "allow"),
        ("list_directory:src/", "/w/src/a", "ask"),
        ("list_directory:..", "/w", "ask"),
        ("list_directory:..", "/", "allow"),
        ("list_directory:**/src/", "/w/a/src", "allow"),
    ] {
        let policy = Policy {
            allow: vec![AllowRule::parse(pattern, "/w").unwrap()],
            ..Policy::default()
        };
        let call = call("list_directory", json!({"path": path}), &[path]);
        assert_eq!(decide(&policy, call), expect, "{pattern} {path}");
    }
}

#[test]
fn the_file_of_a_redirection_is_known_however_it_is_spelt() {
    for pattern in [
        "allow ls > notes",
        "allow ls > ./notes",
        "allow ls > src/../notes",
    ] {
        let policy = Policy {
            permissions: permissions("bash", &[pattern]),
            directory: "/w".into(),
            ..Policy::default()
        };
        let call = redirected("ls", &["> notes"]);
        assert_eq!(decide(&policy, call), "allow", "{pattern}");
    }
}

#[test]
fn a_name_is_not_taken_away_from_behind_a_wildcard() {
    for glob in ["*/../a", "src/*/../a", "src/{a,b}/../c", "**/..", "[s]/.."] {
        assert!(
            PolicyRule::new(&over(Effect::Deny, glob), "/w").is_err(),
            "{glob}"
        );
        assert!(
            PermissionRule::new("read", glob, Action::Deny, "/w").is_err(),
            "{glob}"
        );
        assert!(
            AllowRule::parse(&format!("read:{glob}"), "/w").is_err(),
            "{glob}"
        );
        // A pattern for commands is never read as a path.
        assert!(
            PermissionRule::new("shell", glob, Action::Deny, "/w").is_ok(),
            "{glob}"
        );
        assert!(
            AllowRule::parse(&format!("bash:{glob}"), "/w").is_ok(),
            "{glob}"
        );
    }
}

#[test]
fn a_rule_spells_only_what_is_left_of_it() {
    let of = |text: &str| Pattern::path(text, "/w").unwrap().text;
    for (text, plain) in [
        ("src/*", "src/*"),
        ("./src/*", "src/*"),
        (".git/../*", "*"),
        ("../w/src", "/w/src"),
        ("../v/src", "/v/src"),
        (".", "."),
        ("*", "*"),
        ("", ""),
    ] {
        assert_eq!(of(text), plain, "{text}");
    }
}

#[test]
fn a_pattern_that_begins_with_a_brace_or_a_class_starts_in_the_directory() {
    for (glob, path, fits) in [
        ("{src,lib}/**", "/w/src/f", true),
        ("{src,lib}/**", "/v/src/f", false),
        ("{./doc,lib}/**", "/w/doc/a", true),
        ("{./doc,lib}/**", "/w/lib/a", true),
        ("{/v/x,lib}/*", "/v/x/a", true),
        ("{/v/x,lib}/*", "/w/lib/a", true),
        ("{**/.env,lib/*}", "/v/.env", true),
        ("{**/.env,lib/*}", "/w/lib/a", true),
        ("{../v/a,b}c", "/v/ac", true),
        ("{{./a,b},c}/d", "/w/b/d", true),
        ("{/,lib}/a", "/a", true),
        ("{/,lib}/a", "/w/lib/a", true),
        ("[st]est/*", "/w/test/a", true),
        ("[st]est/*", "/v/test/a", false),
    ] {
        let pattern = Pattern::path(glob, "/w").unwrap();
        assert_eq!(pattern.fits(path), fits, "{glob} {path}");
    }
}
