//! Rules: read, put over each other, compiled, and then asked about calls.

mod sources;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::command::{CommandLine, LinePlaces, SimpleCommand, WordPlace, WordPlaces, Wraps};
use zeph_core::id::ToolName;
use zeph_core::policy::{Decision, SessionFacts, authorise};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::World;
use crate::compile::idle::INNER;
use crate::known;

/// What the rules say of a command (`bash: cargo build`) or of a tool at a path (`read: /etc/passwd`).
fn decide(world: &World, call: &str) -> &'static str {
    let (tool, what) = call.split_once(": ").unwrap();
    let policy = world.config().rules.policy;
    match authorise(&policy, &SessionFacts::default(), resolved(tool, what)) {
        Decision::Allow(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    }
}

#[track_caller]
fn check(world: &World, table: &[(&str, &str)]) {
    for (call, expect) in table {
        let call = call.replace("REPO", &world.repo().display().to_string());
        let call = call.replace("HOME", &world.home().display().to_string());
        assert_eq!(decide(world, &call), *expect, "{call}");
    }
}

pub(super) fn resolved(tool: &str, what: &str) -> ResolvedCall {
    let is_shell = tool == "bash";
    let arguments = match is_shell {
        true => json!({ "command": what }),
        false => json!({ "path": what }),
    };
    let mut words = what.split(' ').map(str::to_owned);
    let command = is_shell.then(|| CommandLine {
        text: what.to_owned(),
        commands: vec![SimpleCommand {
            name: words.next().unwrap(),
            arguments: words.collect(),
            is_literal: true,
            holes: Vec::new(),
            wraps: Wraps::Nothing,
        }],
        places: LinePlaces {
            directories: Some(vec!["/elsewhere".into()]),
            words: what
                .split(' ')
                .filter(|word| word.starts_with('/'))
                .map(|word| WordPlaces {
                    word: word.to_owned(),
                    place: WordPlace::Known(vec![PathBuf::from(word)]),
                })
                .collect(),
            ..LinePlaces::default()
        },
        ..CommandLine::default()
    });
    ResolvedCall {
        frame: CallFrame::alone(),
        tool: Tool {
            name: ToolName::new(tool).unwrap(),
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({"type": "object"})).unwrap(),
            output: None,
            kind: ToolKind::Other,
            annotations: Annotations {
                read_only: tool == "read",
                ..Annotations::default()
            },
            backend: Backend::Builtin,
        }
        .into(),
        arguments: Arguments {
            values: arguments.as_object().unwrap().clone(),
            notes: Vec::new(),
        },
        paths: match is_shell {
            true => Vec::new(),
            false => vec![PathBuf::from(what)],
        },
        command,
        can_change: true,
        files: FileFacts::default(),
    }
}

/// Headers in single brackets before double ones, as guides show them.
const PERMISSIONS: &str = r#"[tools.permissions.bash]
[[tools.permissions.bash]]
pattern = "*sudo*"
action = "deny"
[[tools.permissions.bash]]
pattern = "cargo *"
action = "allow"
"#;

#[test]
fn without_rules_the_lists_count() {
    check(
        &World::new(),
        &[
            ("bash: cargo build", "ask"),
            ("bash: sudo ls", "deny"),
            ("bash: rm x", "ask"),
            ("bash: curl https://example.org", "deny"),
            ("read: REPO/x", "allow"),
            ("write: REPO/x", "ask"),
        ],
    );
    let world = World::new().user("tools.sandbox.allow_network = true");
    check(&world, &[("bash: curl https://example.org", "ask")]);
}

#[test]
fn permissions_take_the_place_of_the_lists() {
    let world = World::new().user(PERMISSIONS);
    check(
        &world,
        &[
            ("bash: cargo build", "allow"),
            ("bash: sudo ls", "deny"),
            ("bash: make", "ask"),
        ],
    );
    assert!(world.load().unwrap().warnings.is_empty());
    let world = World::new().user(format!(
        "{PERMISSIONS}[tools.shell]\nblocked_commands = [\"make\"]\n"
    ));
    let warnings = world.portable(&world.load().unwrap().warnings.join("\n"));
    assert_eq!(
        warnings,
        "`tools.shell.blocked_commands` (built-in, USER:9) has no effect, because `tools.permissions` or `tools.permissions_preset` is set"
    );
}

#[test]
fn keys_of_a_section_that_is_off_are_named() {
    let warnings = |world: World| world.portable(&world.load().unwrap().warnings.join("\n"));
    let table = [
        ("tools.scoped", "denied_tools = [\"bash\"]", "denied_tools"),
        (
            "tools.scoped",
            "allowed_tools = [\"bash\"]",
            "allowed_tools",
        ),
        (
            "tools.scoped",
            "constraints = [{ tool = \"bash\" }]",
            "constraints",
        ),
        (
            "tools.policy",
            "rules = [{ effect = \"deny\", tool = \"bash\" }]",
            "rules",
        ),
        (
            "tools.authorization",
            "rules = [{ effect = \"deny\", tool = \"bash\" }]",
            "rules",
        ),
        (
            "tools.scope",
            "require_capability = true",
            "require_capability",
        ),
        (
            "tools.dependencies",
            "rules.edit.requires = [\"read\"]",
            "rules",
        ),
        (
            "tools.policy",
            "default_effect = \"allow\"",
            "default_effect",
        ),
        (
            "tools.scheduler",
            "time_zone = \"Europe/Berlin\"",
            "time_zone",
        ),
        ("tools.schema_filter", "top_k = 3", "top_k"),
    ];
    for (section, line, key) in table {
        let said = |more: &str| World::new().user(format!("[{section}]\n{line}\n{more}"));
        assert_eq!(
            warnings(said("")),
            format!(
                "`{section}.{key}` (USER:2) has no effect, because `{section}.enabled` is false"
            )
        );
        for more in ["enabled = true", "enabled = false"] {
            assert_eq!(warnings(said(more)), "", "{section} {more}");
        }
    }
    let shell = World::new().user("tools.shell.auto_rollback = true\ntools.policy.rules = []");
    assert_eq!(
        warnings(shell),
        "`tools.shell.auto_rollback` (USER:1) has no effect, because `tools.shell.transactional` is false"
    );
    let codes = "[tools.shell]\ntransactional = true\nauto_rollback_exit_codes = [1]\n";
    assert_eq!(
        warnings(World::new().user(codes)),
        "`tools.shell.auto_rollback_exit_codes` (USER:3) has no effect, because `tools.shell.auto_rollback` is false"
    );
    let none = World::new().user("tools.overflow.threshold = 9000\n");
    assert_eq!(
        warnings(none.project("tools.enabled = false\n")),
        "`tools.enabled`: the configuration of the project turns all tools off"
    );
    let of_project = "[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"bash\"\n";
    assert_eq!(warnings(World::new().project(of_project)), "");
}

/// A new key that is off by default and that others need is found here, unless it is called `enabled`.
#[test]
fn every_switch_inside_a_section_names_the_keys_that_need_it() {
    const ALONE: [&str; 8] = [
        "tools.compression.goal_aware",
        "tools.governance.block_risky_patterns",
        "tools.adversarial_policy.fail_open",
        "tools.sandbox.allow_network",
        "tools.sandbox.disabled",
        "tools.scope.require_capability",
        "tools.shell.snapshot_required",
        "tools.summarize_output",
    ];
    let off = known::DEFAULTS
        .iter()
        .filter(|default| default.value.to_value() == toml::Value::Boolean(false))
        .map(|default| default.key)
        .filter(|key| !key.ends_with(".enabled"));
    let off: BTreeSet<&str> = off.collect();
    let switches = INNER.iter().map(|(switch, _)| *switch);
    let known: BTreeSet<&str> = switches.chain(ALONE).collect();
    assert_eq!(off, known, "INNER, or ALONE where no key needs it");
    for key in INNER.iter().flat_map(|(_, keys)| *keys) {
        assert!(
            known::DEFAULTS.iter().any(|known| known.key == *key),
            "{key}"
        );
    }
}

#[test]
fn a_word_of_a_sequence_that_looks_like_a_pattern_is_named() {
    let warnings = |words: &str| {
        let text = format!("[tools.governance]\nblocked_sequences = [{words}]\n");
        World::new().user(text).load().unwrap().warnings.join("\n")
    };
    assert_eq!(
        warnings("[\"read\", \"*.env\", \"curl\"]"),
        "`tools.governance.blocked_sequences[0]`: `*.env` is compared as it is written; words of a sequence are not patterns"
    );
    assert_eq!(warnings("[\"bash\", \"rm\", \"-rf\", \"/*\"]"), "");
}

#[test]
fn a_list_of_reads_that_narrows_nothing_is_named() {
    let warnings = |text: &str| {
        let world = World::new().user(text);
        std::fs::create_dir_all(world.repo().join("docs")).unwrap();
        world.portable(&world.load().unwrap().warnings.join("\n"))
    };
    let reads = "[tools.sandbox]\nallow_read = [\"docs\"]\n";
    assert_eq!(
        warnings(reads),
        "`tools.sandbox.allow_read` (USER:2) has no effect, because commands may change, and so read, all that it lies in: set `tools.sandbox.allow_write`, too"
    );
    assert_eq!(warnings(&format!("{reads}allow_write = [\"docs\"]\n")), "");
    let also = "[tools.sandbox]\nallow_read = [\".\"]\n";
    assert_eq!(warnings(also), "");
}

#[test]
fn paths_of_rules_begin_at_home_or_in_the_working_directory() {
    let world = World::new().user(
        r#"
[[tools.permissions.write]]
pattern = "~/notes/*"
action = "allow"
[[tools.permissions.write]]
pattern = "src/*"
action = "allow"
"#,
    );
    check(
        &world,
        &[
            ("write: HOME/notes/x", "allow"),
            ("write: REPO/src/x", "allow"),
            ("write: REPO/x", "ask"),
        ],
    );
}

#[test]
fn a_path_is_denied_however_its_rule_is_spelt() {
    let deny = |pattern: &str| {
        let all = "[[tools.permissions.read]]\npattern = \"*\"\naction = \"allow\"\n";
        let rule =
            format!("[[tools.permissions.read]]\npattern = \"{pattern}\"\naction = \"deny\"\n");
        [rule.clone() + all, rule]
    };
    let paths = |pattern: &str| {
        let rule = format!("tool = \"*\"\neffect = \"deny\"\npaths = [\"{pattern}\"]\n");
        let sections = [
            ("policy", "enabled = true\ndefault_effect = \"allow\"\n"),
            ("authorization", "enabled = true\n"),
            ("policy", ""),
        ];
        sections.map(|(section, settings)| {
            format!("[tools.{section}]\n{settings}[[tools.{section}.rules]]\n{rule}")
        })
    };
    for pattern in [
        "src/*",
        "./src/*",
        "src//*",
        "src/../src/*",
        "../repo/src/*",
        "./src/**",
        "src/x/",
        "{~/repo/src,doc}/*",
        "{doc,{~/repo,/v}/src}/**",
    ] {
        let [user, project] = deny(pattern);
        let [policy, authorization, of_project] = paths(pattern);
        for world in [
            World::new().user(user),
            World::new().project(project),
            World::new().user(policy),
            World::new().project(of_project),
            World::new().user(authorization),
        ] {
            check(
                &world,
                &[("read: REPO/src/x", "deny"), ("read: REPO/x", "allow")],
            );
        }
    }
    for pattern in ["~/../home/repo/src/*", "~/./repo/src//*"] {
        let [user, _] = deny(pattern);
        check(&World::new().user(user), &[("read: REPO/src/x", "deny")]);
    }
    for text in deny("src/*/../x").into_iter().chain(paths("src/*/../x")) {
        let errors = World::new().user(text).errors();
        let told = "`src/*/../x` does not compile: it has `..` behind a wildcard";
        assert!(errors.contains(told), "{errors}");
    }
}

#[test]
fn policy_comes_before_authorization_and_then_the_default() {
    let world = |default: &str| {
        World::new().user(format!(
            r#"
[tools.policy]
enabled = true
default_effect = "{default}"
[[tools.policy.rules]]
effect = "allow"
tool = "write"
paths = ["src/**"]
[tools.authorization]
enabled = true
[[tools.authorization.rules]]
effect = "deny"
tool = "write"
"#
        ))
    };
    let table = [("write: REPO/src/a/b", "allow"), ("write: REPO/x", "deny")];
    check(&world("deny"), &table);
    check(&world("allow"), &table);
    check(&world("deny"), &[("read: REPO/x", "deny")]);
    check(&world("allow"), &[("read: REPO/x", "allow")]);
    let off = world("deny").set("tools.policy.enabled=false");
    check(&off, &[("write: REPO/src/a", "deny")]);
    let off = off.set("tools.authorization.enabled=false");
    check(
        &off,
        &[("write: REPO/src/a", "ask"), ("read: REPO/x", "allow")],
    );
}

#[test]
fn a_denied_path_is_denied_under_its_other_name() {
    for pattern in ["~/link/**", "{doc,~/link}/**"] {
        let world = World::new()
            .directory("home/data")
            .symlink("home/link", "home/data")
            .user(format!("[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\nrules = [{{ effect = \"deny\", tool = \"*\", paths = [\"{pattern}\"] }}]\n"));
        check(
            &world,
            &[
                ("read: HOME/data/x", "deny"),
                ("read: HOME/link/x", "deny"),
                ("read: HOME/x", "allow"),
            ],
        );
    }
}

#[test]
fn a_flood_of_rules_is_refused_and_a_flood_of_mistakes_is_cut() {
    let flood = "[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"x\"\n".repeat(257);
    assert_eq!(
        World::new().user(flood).errors(),
        "USER:1: `tools.policy.rules`: found 257 items, wanted at most 256"
    );
    let flood = "[[tools.policy.rules]]\neffect = \"x\"\ny = 1\n".repeat(200);
    assert_eq!(World::new().user(flood).errors().lines().count(), 20);
}

#[test]
fn a_rule_that_is_never_asked_is_named() {
    let world = World::new().user(
        "[tools.permissions]\nbash = [{ pattern = \"*\", action = \"ask\" }, { pattern = \"sudo *\", action = \"deny\" }]\n",
    );
    assert_eq!(
        world.load().unwrap().warnings,
        ["`tools.permissions.bash[1]` never matches: the rule for \"*\" before it matches first"]
    );
}

#[test]
fn authorization_alone_decides_only_what_it_matches() {
    let rules = "[tools.authorization]\nenabled = true\n\
                 [[tools.authorization.rules]]\neffect = \"deny\"\ntool = \"write\"\n";
    check(
        &World::new().user(rules),
        &[
            ("write: REPO/x", "deny"),
            ("read: REPO/x", "allow"),
            ("bash: ls", "ask"),
        ],
    );
    let both = World::new().user(format!("[tools.policy]\nenabled = true\n{rules}"));
    check(
        &both,
        &[("write: REPO/x", "deny"), ("read: REPO/x", "deny")],
    );
}

#[test]
fn denied_paths_are_hidden_from_commands_or_the_rule_says_so() {
    let policy = |paths: &str| {
        format!(
            "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n\
             [[tools.policy.rules]]\neffect = \"deny\"\ntool = \"*\"\npaths = [{paths}]\n"
        )
    };
    let world = World::new().user(policy("\"~/keys/**\", \"notes\", \"**/.env\""));
    let loaded = world.load().unwrap();
    let hide = &loaded.config.sandbox.hide;
    assert!(hide.contains(&world.home().join("keys")), "{hide:?}");
    assert!(hide.contains(&world.repo().join("notes")), "{hide:?}");
    let warning =
        "tools.policy rule 1: its paths cannot all be hidden from `bash`, because a pattern";
    let warned: Vec<_> = loaded
        .warnings
        .iter()
        .filter(|text| text.starts_with(warning))
        .collect();
    assert_eq!(warned.len(), 1, "{:?}", loaded.warnings);
    check(
        &world,
        &[
            ("bash: cat HOME/keys/a", "deny"),
            ("bash: cat HOME/keys", "deny"),
            ("bash: cat REPO/a", "ask"),
        ],
    );
    let system = World::new().user(policy("\"/etc/**\", \"/usr\""));
    let hide = system.load().unwrap().config.sandbox.hide;
    assert!(!hide.contains(&PathBuf::from("/etc")) && !hide.contains(&PathBuf::from("/usr")));
    // Where commands run is not hidden: no command runs there at all.
    let all = World::new().user(policy("\"/**\""));
    assert!(
        !all.load()
            .unwrap()
            .config
            .sandbox
            .hide
            .contains(&PathBuf::from("/"))
    );
}

#[test]
fn what_file_tools_may_not_read_is_kept_from_commands_and_servers() {
    let world = World::new().directory("data");
    let data = world.root().join("data");
    let text = format!(
        "[tools.file]\ndeny_read = [\"~/keys/**\", \"{data}/secret\", \"**/.env\", \"/etc/**\"]\n\
         [mcp.servers.s]\ncommand = \"s\"\nallow_read = [\"{data}\"]\n",
        data = data.display()
    );
    let world = world.user(text);
    let loaded = world.load().unwrap();
    let hide = &loaded.config.sandbox.hide;
    assert!(hide.contains(&world.home().join("keys")), "{hide:?}");
    assert!(hide.contains(&data.join("secret")), "{hide:?}");
    assert!(!hide.contains(&PathBuf::from("/etc")), "{hide:?}");
    let warning = "tools.file.deny_read: its paths cannot all be hidden from `bash` and MCP servers, because a pattern";
    let warned = |text: &&String| text.starts_with(warning);
    assert_eq!(loaded.warnings.iter().filter(warned).count(), 1);
    check(
        &world,
        &[
            ("bash: cat HOME/keys/a", "deny"),
            ("bash: cat HOME/keys", "deny"),
            ("bash: cat REPO/sub/.env", "deny"),
            ("bash: cat REPO/.env/below", "deny"),
            ("bash: cat REPO/a", "ask"),
            ("read: REPO/a", "allow"),
        ],
    );
}

#[test]
fn an_exception_for_file_tools_is_one_for_commands() {
    let world = World::new().user(
        "[tools.file]\ndeny_read = [\"~/keys/**\", \"~/notes\"]\nallow_read = [\"~/keys/pub/*.pem\"]\n",
    );
    let loaded = world.load().unwrap();
    let hide = &loaded.config.sandbox.hide;
    assert!(hide.contains(&world.home().join("notes")), "{hide:?}");
    assert!(!hide.contains(&world.home().join("keys")), "{hide:?}");
    let because = "because `tools.file.allow_read` makes exceptions";
    let warned = |text: &&String| text.contains(because);
    assert_eq!(loaded.warnings.iter().filter(warned).count(), 1);
    check(
        &world,
        &[
            ("bash: cat HOME/keys/pub/a.pem", "ask"),
            ("bash: cat HOME/keys/pub/deep/a.pem", "deny"),
            ("bash: cat HOME/keys/a", "deny"),
            ("bash: cat HOME/keys/pub", "deny"),
        ],
    );
}

#[test]
fn a_pattern_that_can_match_nothing_prevents_the_start() {
    let permission = |pattern: &str| {
        format!("[[tools.permissions.read]]\npattern = \"{pattern}\"\naction = \"deny\"\n")
    };
    let rule = |tool: &str, glob: &str| {
        format!(
            "[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"{tool}\"\npaths = [\"{glob}\"]\n"
        )
    };
    let scope = |text: &str| format!("[tools.shell]\ntransaction_scope = [\"{text}\"]\n");
    for (text, expect) in [
        (permission(""), "an empty pattern matches nothing"),
        (permission("   "), "an empty pattern matches nothing"),
        (rule("read", ""), "an empty pattern matches nothing"),
        (rule("*", " "), "an empty pattern matches nothing"),
        (rule("", "a"), "an empty pattern matches nothing"),
        (scope("../tx/keep"), "contains `.` or `..`"),
        (scope("a/../b"), "contains `.` or `..`"),
        (
            "[[hooks.file_changed]]\ncommand = \"make\"\npaths = [\"\"]\n".to_owned(),
            "an empty pattern matches nothing",
        ),
    ] {
        let errors = World::new().user(&text).errors();
        assert!(errors.contains(expect), "{text}: {errors}");
    }
    let project = World::new().project(permission("")).errors();
    assert!(
        project.contains("an empty pattern matches nothing"),
        "{project}"
    );
    for right in ["./src", "src/", ".", "*.rs"] {
        World::new().user(scope(right)).config();
    }
}

#[test]
fn what_is_reserved_is_warned_of() {
    let world = World::new().user(
        "[tools.policy]\nenabled = true\n[[tools.policy.rules]]\neffect = \"allow\"\ntool = \"read\"\ncapabilities = [\"x\"]\n",
    );
    let warnings = world.load().unwrap().warnings;
    assert!(
        warnings[0].starts_with("`tools.policy.rules[0].capabilities` is reserved"),
        "{warnings:?}"
    );
}

#[test]
fn ten_thousand_rules_load_in_linear_time() {
    let load = |n_rules: usize| {
        let rules: String = (0..n_rules)
            .map(|idx| {
                format!(
                    "[[tools.permissions.bash]]\npattern = \"tool{idx} *\"\naction = \"allow\"\n"
                )
            })
            .collect();
        let world = World::new().user(rules);
        let started = std::time::Instant::now();
        world.load().unwrap();
        started.elapsed()
    };
    let fastest = |n_rules| (0..3).map(|_| load(n_rules)).min().unwrap();
    let (few, many) = (fastest(1_000), fastest(10_000));
    assert!(many < few * 40, "1,000 rules took {few:?}, 10,000 {many:?}");
}

#[test]
fn scope_and_quota_reach_the_policy() {
    let world = World::new().user(
        "[tools]\nmax_tool_calls_per_session = 5\n[tools.audit]\nenabled = false\n\
         [tools.scope]\nenabled = true\nrun_as_user = \"zeph\"\n\
         [tools.scoped]\nenabled = true\ndenied_tools = [\"write\"]\n",
    );
    let config = world.config();
    assert_eq!(config.rules.policy.calls_max, Some(5));
    assert!(config.audit.enabled, "the scope wants every call recorded");
    let scope = config.rules.policy.scope.as_ref().unwrap();
    assert_eq!(scope.run_as_user.as_deref(), Some("zeph"));
    assert!(config.rules.policy.hides(&resolved("write", "x").tool));
    let config = World::new().config();
    assert_eq!(config.rules.policy.calls_max, None);
    assert!(config.rules.policy.scope.is_none() && config.rules.policy.scoped.is_none());
}

#[test]
fn hooks_have_absolute_globs_and_a_time() {
    let world = World::new().user(
        "[[hooks.file_changed]]\ncommand = \"make\"\npaths = [\"src/*\", \"**/*.rs\"]\n\
         [[hooks.cwd_changed]]\ncommand = \"true\"\ntimeout_secs = 5\nfail_closed = true\n",
    );
    let hooks = world.config().hooks;
    let source = format!("{}/src/*", world.repo().display());
    assert_eq!(hooks.file_changed[0].paths, [source.as_str(), "**/*.rs"]);
    assert_eq!(hooks.file_changed[0].timeout.as_secs(), 30);
    assert!(!hooks.file_changed[0].fail_closed);
    assert_eq!(hooks.cwd_changed[0].timeout.as_secs(), 5);
    assert!(hooks.cwd_changed[0].fail_closed);
}
