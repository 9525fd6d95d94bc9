//! Rules: read, put over each other, compiled, and then asked about calls.

use std::path::PathBuf;

use serde_json::json;
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::command::{CommandLine, LinePlaces, SimpleCommand, WordPlace, WordPlaces, Wraps};
use zeph_core::id::ToolName;
use zeph_core::policy::{Decision, PermissionSource, SessionFacts, authorise};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::World;

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
        },
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
    let world = World::new()
        .directory("home/data")
        .symlink("home/link", "home/data")
        .user("[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\nrules = [{ effect = \"deny\", tool = \"*\", paths = [\"~/link/**\"] }]\n");
    check(
        &world,
        &[
            ("read: HOME/data/x", "deny"),
            ("read: HOME/link/x", "deny"),
            ("read: HOME/x", "allow"),
        ],
    );
}

#[test]
fn rules_can_stand_in_a_file_of_their_own() {
    let world = World::new().user(
        "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\npolicy_file = \"rules.toml\"\n",
    );
    // A relative path is one from the file that names it, whatever lies in the working directory.
    std::fs::write(world.repo().join("rules.toml"), "[[rule]]\n").unwrap();
    let file = world.user_file().with_file_name("rules.toml");
    let named = "/home/.config/zeph-host/rules.toml";
    let errors = world.errors().replace(named, "FILE");
    assert!(
        errors.starts_with("USER:4: `tools.policy.policy_file`: ")
            && errors.contains("FILE cannot be read"),
        "a file that is missing is named: {errors}"
    );
    for (text, expected) in [
        ("", "FILE: has no `[[rules]]`"),
        (
            "[[rules]]\neffect = \"deny\"\ntool = \"read\"\nargs_match = \"(\"\n",
            "FILE:4: `args_match`: `(` does not compile",
        ),
        (
            "[[rule]]\neffect = \"deny\"\n",
            "FILE:1: unknown key `rule`; did you mean `rules`?",
        ),
        (
            "[[rules]]\ntool = 3\n",
            "FILE:1: `rules[0]`: `effect` is missing",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let errors = world.errors().replace(named, "FILE");
        assert!(errors.starts_with(expected), "{text}: {errors}");
    }
    std::fs::write(&file, "#".repeat(256 * 1024 + 1)).unwrap();
    assert!(world.errors().contains("longer than 262144 bytes"));
    std::fs::write(&file, "[[rules]]\neffect = \"deny\"\ntool = \"read\"\n").unwrap();
    check(&world, &[("read: REPO/x", "deny")]);
    let config = world.config();
    assert!(
        config.sandbox.protect.contains(&file),
        "no command changes it"
    );
    let shown = file.display().to_string();
    let hides = |glob: &String| glob.starts_with(&shown);
    assert!(
        config.file.deny_read.iter().any(hides),
        "no tool reaches it"
    );
    // One from the command line is relative to the working directory.
    let typed = world.set("tools.policy.policy_file=rules.toml");
    let errors = typed.errors().replace("/home/repo/rules.toml", "REPO");
    assert!(errors.starts_with("REPO:"), "{errors}");
    let elsewhere = World::new().set("tools.policy.policy_file=/dev/null");
    assert!(
        elsewhere
            .errors()
            .contains("neither in the working directory nor beside")
    );
}

#[test]
fn what_a_project_says_only_denies() {
    let project = r#"
[[tools.permissions.bash]]
pattern = "cargo publish*"
action = "deny"
[[tools.policy.rules]]
effect = "deny"
tool = "write"
paths = ["vendor/**"]
[[tools.permissions.read]]
pattern = "secret/*"
action = "deny"
"#;
    let table = [
        ("bash: cargo publish", "deny"),
        ("bash: CARGO publish --dry-run", "deny"),
        ("write: REPO/vendor/a/b", "deny"),
        ("write: REPO/src/a", "ask"),
        ("read: REPO/secret/x", "deny"),
        ("read: REPO/x", "allow"),
    ];
    // Whatever the operator says, and although the project's presence must not switch the lists off.
    let alone = World::new().project(project);
    check(&alone, &table);
    check(
        &alone,
        &[("bash: sudo ls", "deny"), ("bash: cargo build", "ask")],
    );
    let permissions = alone.config().rules.policy.permissions;
    assert!(matches!(permissions, PermissionSource::Lists(_)));
    let both = World::new().user(PERMISSIONS).project(project);
    check(&both, &table);
    check(
        &both,
        &[("bash: cargo build", "allow"), ("bash: sudo ls", "deny")],
    );
    let all = "[[tools.permissions.bash]]\npattern = \"*\"\naction = \"deny\"\n";
    let none = World::new().user(PERMISSIONS).project(all);
    check(&none, &[("bash: cargo build", "deny")]);
    assert_eq!(
        none.said("tools.permissions.bash")
            .matches("pattern")
            .count(),
        3,
        "the project's rule and both of the user"
    );
}

#[test]
fn rules_of_flags_and_variables_are_toml() {
    let world = World::new()
        .set(r#"tools.permissions.bash=[{ pattern = "make*", action = "allow" }]"#)
        .env(
            "ZEPH_TOOLS_AUTHORIZATION_RULES",
            r#"[{ effect = "deny", tool = "read" }]"#,
        )
        .env("ZEPH_TOOLS_AUTHORIZATION_ENABLED", "true")
        .env("ZEPH_TOOLS_POLICY_DEFAULT_EFFECT", "allow");
    check(
        &world,
        &[("bash: make all", "allow"), ("read: REPO/x", "deny")],
    );
    for (flag, expected) in [
        (
            "tools.permissions.bash=make",
            "found the string \"make\", wanted a list of tables",
        ),
        (
            "tools.permissions.bash=[{ pattern = \"x\" }]",
            "`[0]`: `action` is missing",
        ),
        (
            "tools.permissions=x",
            "`tools.permissions` is a table; its keys are names of tools, such as `tools.permissions.bash`",
        ),
        (
            "tools.policy.default_effect=ask",
            "found the string \"ask\", wanted \"allow\", \"deny\"",
        ),
        ("tools.permissions.b!=[]", "\"b!\" is not a valid tool name"),
        (
            "tools.policy.rules=[{ effect = \"deny\", tool = \"{\" }]",
            "`[0].tool`: `{` does not compile",
        ),
    ] {
        let errors = World::new().set(flag).errors();
        assert!(errors.contains(expected), "{flag}: {errors}");
    }
}

#[test]
fn a_shown_line_can_be_copied_into_a_file() {
    let world = World::new().user(PERMISSIONS);
    let loaded = world.load().unwrap();
    let lines: Vec<String> = loaded
        .origins
        .iter()
        .map(|setting| format!("{} = {}", setting.key, setting.value))
        .collect();
    assert!(lines.iter().all(|line| !line.contains('\n')));
    let copied = World::new().user(lines.join("\n"));
    check(
        &copied,
        &[
            ("bash: cargo build", "allow"),
            ("bash: sudo ls", "deny"),
            ("bash: make", "ask"),
        ],
    );
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
