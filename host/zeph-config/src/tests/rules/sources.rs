//! Where rules come from: a file of their own, a project, flags and variables, a line that was shown.

use zeph_core::policy::PermissionSource;

use super::super::World;
use super::{PERMISSIONS, check};

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
