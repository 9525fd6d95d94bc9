//! Variables and flags: which text becomes which value.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::World;

/// Loads with one variable and shows the value of the key, or the message.
fn variable(name: &str, key: &str, text: impl Into<OsString>) -> String {
    let world = World::new().env(name, text);
    match world.load() {
        Ok(loaded) => {
            let setting = loaded
                .origins
                .into_iter()
                .find(|setting| setting.key == key);
            setting.unwrap().value.to_string()
        }
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn a_list_is_toml_or_split_at_commas() {
    let rights = |text| variable("ZEPH_TOOLS_FILE_RIGHTS", "tools.file.rights", text);
    assert_eq!(rights("[\"read\", \"write\"]"), "[\"read\", \"write\"]");
    assert_eq!(rights("read, write"), "[\"read\", \"write\"]");
    assert_eq!(rights("read"), "[\"read\"]");
    assert_eq!(rights(""), "[]");
    assert_eq!(
        rights("read,exec"),
        "ZEPH_TOOLS_FILE_RIGHTS: `tools.file.rights`: found the string \"exec\", \
         wanted \"read\", \"write\", \"create\", \"delete\""
    );
}

#[test]
fn a_string_needs_no_quotes() {
    let store = |text| variable("ZEPH_STORE_PATH", "store.path", text);
    assert_eq!(store(":memory:"), "\":memory:\"");
    assert_eq!(store("\":memory:\""), "\":memory:\"");
    assert_eq!(store("123"), "\"123\"");
    assert_eq!(store("true"), "\"true\"");
}

#[test]
fn numbers_and_switches_are_toml() {
    let cpu = |text| variable("ZEPH_LIMITS_CPU_SECS", "limits.cpu_secs", text);
    assert_eq!(cpu("33"), "33");
    assert_eq!(cpu(" 1_000 "), "1000");
    let wrong = |found: &str| {
        format!(
            "ZEPH_LIMITS_CPU_SECS: `limits.cpu_secs`: found {found}, wanted a whole number from 1 to 86400"
        )
    };
    assert_eq!(cpu("-1"), wrong("-1"));
    assert_eq!(
        cpu("99999999999999999999999"),
        wrong("99999999999999999999999")
    );
    assert_eq!(cpu("1.5"), wrong("1.5"));
    assert_eq!(cpu("30s"), wrong("the string \"30s\""));
    assert_eq!(
        cpu("30\n[tools]\nenabled = false"),
        wrong("the string \"30 [tools] enabled = false\"")
    );
    let enabled = |text| variable("ZEPH_TOOLS_ENABLED", "tools.enabled", text);
    assert_eq!(enabled("false"), "false");
    assert!(enabled("no").contains("found the string \"no\", wanted true or false"));
}

#[test]
fn a_variable_that_looks_like_a_key_is_a_warning() {
    let world = World::new()
        .env("ZEPH_TOOLS_OVERFLOW_TRESHOLD", "1")
        .env("ZEPH_TURN_ID", "1")
        .env("ZEPH_AGENT_MAX_TOOL_ITERATIONS", "1");
    let warnings = world.load().unwrap().warnings;
    assert_eq!(
        warnings,
        [
            "the variable `ZEPH_TOOLS_OVERFLOW_TRESHOLD` is not a configuration key; did you mean `ZEPH_TOOLS_OVERFLOW_THRESHOLD`?"
        ]
    );
}

#[test]
fn a_variable_cannot_name_what_has_names_of_its_own() {
    for (name, map) in [
        ("ZEPH_TOOLS_PERMISSIONS_BASH", "tools.permissions"),
        ("ZEPH_MCP_SERVERS", "mcp.servers"),
        ("ZEPH_MCP_SERVERS_FILES_COMMAND", "mcp.servers"),
        ("ZEPH_PLUGINS_SETTINGS_WEATHER_UNITS", "plugins.settings"),
        (
            "ZEPH_TOOLS_DEPENDENCIES_RULES_EDIT_REQUIRES",
            "tools.dependencies.rules",
        ),
    ] {
        let warnings = World::new().env(name, "x").load().unwrap().warnings;
        let expected = format!(
            "the variable `{name}` sets nothing: what is in `{map}` is set in a file or with `--set {map}.…`"
        );
        assert_eq!(warnings, [expected]);
    }
    let named = World::new().env("ZEPH_TOOLS_PERMISSIONS_PRESET", "developer");
    assert_eq!(named.load().unwrap().warnings, [""; 0]);
}

#[test]
fn a_variable_that_is_not_utf_8_is_an_error_and_a_replacement_character_is_none() {
    let variable = |text| variable("ZEPH_TOOLS_FILE_DENY_READ", "tools.file.deny_read", text);
    assert_eq!(
        variable(OsStr::from_bytes(b"~/k\xffys")),
        "ZEPH_TOOLS_FILE_DENY_READ: `tools.file.deny_read`: the value is not UTF-8"
    );
    assert_eq!(variable(OsStr::new("~/k\u{fffd}ys")), "[\"~/k\u{fffd}ys\"]");
}

#[test]
fn set_names_a_key_and_nothing_else() {
    let set = |text: &str| World::new().set(text).errors();
    assert_eq!(
        set("limits=3"),
        "--set limits=3: `limits` is a table; its keys are: \
         cpu_secs, handles, host_calls, log_bytes, memory_bytes, output_bytes, table_elements, wall_clock_secs"
    );
    assert_eq!(
        set("limits.cpu=3"),
        "--set limits.cpu=3: unknown key `limits.cpu`; did you mean `limits.cpu_secs`?"
    );
    assert_eq!(
        set("threshold=3"),
        "--set threshold=3: unknown key `threshold`; did you mean `tools.overflow.threshold`?"
    );
    assert!(set("a.b.c=3").contains(
        "unknown key `a.b.c`; the tables are: agent, engine, hooks, limits, llm, mcp, plugins, run, store, tools"
    ));
    assert!(set("=").contains("wanted KEY=VALUE"));
}

#[test]
fn root_is_for_commands_as_for_file_tools() {
    let commands = |world: &World| world.config().shell.allowed_paths;
    let mut world = World::new()
        .directory("one")
        .directory("two")
        .user("[tools.shell]\nallowed_paths = [\"/no/such\"]\n");
    let (one, two) = (world.root().join("one"), world.root().join("two"));
    world.flags.roots = vec![two.clone(), one.clone()];
    assert_eq!(commands(&world), [two.clone(), one.clone()]);
    assert_eq!(world.config().sandbox.write, [two, one.clone()]);
    // Commands can have other directories than file tools, when both are named.
    let text = format!("tools.shell.allowed_paths={}", one.display());
    assert_eq!(commands(&world.set(&text)), [one]);
}

#[test]
fn a_wrong_root_is_reported_once() {
    let mut world = World::new();
    world.flags.roots = vec!["no-such".into()];
    let errors = world.errors();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("--root no-such"), "{errors}");
}

#[test]
fn root_takes_the_place_of_every_other_root() {
    let mut world = World::new()
        .directory("one")
        .directory("two")
        .user("[tools.file]\nallowed_paths = [\"/no/such\"]\n")
        .set("tools.file.allowed_paths=/no/such/either");
    world.flags.roots = vec![
        world.root().join("two"),
        world.root().join("one"),
        "src".into(),
    ];
    let roots: Vec<_> = world
        .config()
        .file
        .roots
        .into_iter()
        .map(|root| root.path)
        .collect();
    assert_eq!(
        roots,
        [
            world.root().join("two"),
            world.root().join("one"),
            world.repo().join("src")
        ]
    );
    assert_eq!(
        world.said("tools.file.allowed_paths").split(" (").nth(1),
        Some("--root src)")
    );
}
