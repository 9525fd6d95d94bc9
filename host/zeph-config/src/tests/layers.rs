//! Which layer wins, and that each value remembers where it was said.

use std::fs;
use std::path::{Component, PathBuf};

use crate::{Config, SandboxSettings, ValueOrigin};

use super::World;

const KEY: &str = "limits.cpu_secs";

fn lines(seconds: u32) -> String {
    format!("# a comment\n\n[limits]\ncpu_secs = {seconds}\n")
}

#[test]
fn each_layer_wins_over_the_one_below() {
    let world = World::new();
    assert_eq!(world.said(KEY), "20 (built-in)");
    let world = world.user(lines(15));
    assert_eq!(world.said(KEY), "15 (USER:4)");
    let world = world.project(lines(12));
    assert_eq!(world.said(KEY), "12 (PROJECT:4)");
    let world = world.env("ZEPH_LIMITS_CPU_SECS", "40");
    assert_eq!(world.said(KEY), "40 (ZEPH_LIMITS_CPU_SECS)");
    let world = world.set("limits.cpu_secs=50").set("limits.cpu_secs=60");
    assert_eq!(world.said(KEY), "60 (--set limits.cpu_secs=60)");
    assert_eq!(world.config().limits.cpu.as_secs(), 60);
}

#[test]
fn origins_list_every_key_sorted_and_print_as_json() {
    let loaded = World::new().user(lines(15)).load().unwrap();
    let keys: Vec<&str> = loaded
        .origins
        .iter()
        .map(|setting| setting.key.as_str())
        .collect();
    assert!(keys.is_sorted());
    let cpu = loaded
        .origins
        .iter()
        .find(|setting| setting.key == KEY)
        .unwrap();
    assert!(matches!(
        cpu.origins[..],
        [ValueOrigin::User { line: 4, .. }]
    ));
    let json = serde_json::to_value(cpu).unwrap();
    assert_eq!(json["value"], 15);
    assert_eq!(json["origins"][0]["layer"], "user");
    assert_eq!(json["origins"][0]["line"], 4);
}

#[test]
fn dotted_and_inline_spellings_say_the_same() {
    for text in [
        "limits.cpu_secs = 9",
        "limits = { cpu_secs = 9 }",
        "[limits]\n\"cpu_secs\" = 9",
        "[limits]\ncpu_secs = 0x9",
    ] {
        let config = World::new().user(text).config();
        assert_eq!(config.limits.cpu.as_secs(), 9, "{text}");
    }
}

#[test]
fn a_named_file_takes_the_place_of_the_users() {
    let world = World::new().user(lines(15));
    fs::write(world.repo().join("mine.toml"), lines(17)).unwrap();
    fs::write(world.repo().join("other.toml"), lines(18)).unwrap();
    let mut world = world.env("ZEPH_HOST_CONFIG", "mine.toml");
    assert_eq!(world.said(KEY), "17 (/home/repo/mine.toml:4)");
    world.flags.config = Some("other.toml".into());
    assert_eq!(world.said(KEY), "18 (/home/repo/other.toml:4)");
}

#[test]
fn a_named_file_has_to_exist() {
    let world = World::new().env("ZEPH_HOST_CONFIG", "/no/such.toml");
    let errors = world.errors();
    assert!(
        errors.starts_with("/no/such.toml: cannot be opened: No such file"),
        "{errors}"
    );
    let world = World::new().env("ZEPH_HOST_CONFIG", "");
    assert_eq!(
        world.said(KEY),
        "20 (built-in)",
        "an empty variable is not set"
    );
}

#[test]
fn the_problems_of_all_layers_come_together() {
    let errors = World::new()
        .user("[limits]\ncpu_secs = 0\nhandels = 3\n")
        .project("[store]\npath = \"x\"\n")
        .env("ZEPH_TOOLS_ENABLED", "perhaps")
        .set("limits.memory_bytes=lots")
        .set("nonsense")
        .errors();
    let expected = "\
USER:2: `limits.cpu_secs`: found 0, wanted a whole number from 1 to 86400
USER:3: unknown key `limits.handels`; did you mean `limits.handles`?
PROJECT:2: `store.path`: a project file may not set this: the audit log must not depend on the \
project; the operator can set it in USER
ZEPH_TOOLS_ENABLED: `tools.enabled`: found the string \"perhaps\", wanted true or false
--set limits.memory_bytes=lots: `limits.memory_bytes`: found the string \"lots\", wanted a whole number from 65536 to 4294967296
--set nonsense: wanted KEY=VALUE, such as `limits.cpu_secs=60`";
    assert_eq!(errors, expected);
}

#[test]
fn tables_of_other_agents_say_what_there_is_instead() {
    for (text, key, instead) in [
        ("[index]\nenabled = true\n", "index", "`zeph-host index`"),
        (
            "[memory]\nvector_backend = \"qdrant\"\n",
            "memory",
            "`store`",
        ),
        (
            "vector_backend = \"qdrant\"\n",
            "vector_backend",
            "`agent.embedding`",
        ),
    ] {
        let errors = World::new().user(text).errors();
        assert!(
            errors.contains(&format!("unknown key `{key}`: ")),
            "{errors}"
        );
        assert!(errors.contains(instead), "{errors}");
    }
}

#[test]
fn project_files_are_found_up_to_the_top_of_the_repository_and_all_count() {
    let world = World::new()
        .directory("home/repo/a/.zeph")
        .directory("home/repo/a/b")
        .directory("home/.zeph")
        .working_in("home/repo/a/b")
        .project("[limits]\ncpu_secs = 7\nhandles = 50\n");
    fs::write(
        world.home().join(".zeph/config.toml"),
        "[limits]\ncpu_secs = 1\n",
    )
    .unwrap();
    assert_eq!(world.said(KEY), "7 (PROJECT:2)");
    fs::write(
        world.repo().join("a/.zeph/config.toml"),
        "[limits]\ncpu_secs = 6\n",
    )
    .unwrap();
    assert_eq!(world.said(KEY), "6 (/home/repo/a/.zeph/config.toml:2)");
    assert_eq!(world.said("limits.handles"), "50 (PROJECT:3)");
}

#[test]
fn an_inner_project_file_cannot_switch_off_an_outer_one() {
    let world = World::new()
        .directory("home/repo/a/.zeph")
        .working_in("home/repo/a")
        .project("[limits]\ncpu_secs = 7\n");
    fs::write(
        world.repo().join("a/.zeph/config.toml"),
        "[limits]\ncpu_secs = 20\n",
    )
    .unwrap();
    let errors = world.errors();
    assert!(
        errors.contains("found 20, the bound is 7 (PROJECT:2)"),
        "{errors}"
    );
}

#[test]
fn outside_of_a_repository_and_of_home_only_the_working_directory_counts() {
    let world = World::new()
        .directory("shared/.zeph")
        .directory("shared/mine")
        .working_in("shared/mine");
    fs::write(world.root().join("shared/.zeph/config.toml"), lines(1)).unwrap();
    assert_eq!(world.said(KEY), "20 (built-in)");
    let world = world.working_in("shared");
    assert_eq!(world.said(KEY), "1 (/shared/.zeph/config.toml:4)");
}

#[test]
fn the_project_can_be_left_aside() {
    let mut world = World::new().project("this is not TOML");
    assert!(world.load().is_err());
    world.flags.no_project = true;
    assert_eq!(world.said(KEY), "20 (built-in)");
}

#[test]
fn a_project_file_named_by_the_operator_is_the_operators() {
    let mut world = World::new().project("[run]\njobs = 9\n");
    world.flags.config = Some(".zeph/config.toml".into());
    assert_eq!(world.config().run.jobs.get(), 9);
}

/// The jail compares paths by their names, so no `..` may remain in them.
#[test]
fn what_the_operator_names_with_dots_is_what_it_leads_to() {
    let mut world = World::new()
        .directory("home/cfg/sub")
        .directory("home/team")
        .directory("home/repo/deep/er")
        .symlink("home/repo/deep/link", "home/cfg/sub");
    let file = world.home().join("cfg/e.toml");
    fs::write(&file, "[run]\njobs = 3\n").unwrap();
    let has_dots = |path: &PathBuf| path.components().any(|part| part == Component::ParentDir);
    let check = |world: &World| {
        let config = world.config();
        assert_eq!(config.run.jobs.get(), 3);
        assert_eq!(config.mcp_lock, Some(world.home().join("cfg/zeph.lock")));
        assert_eq!(
            config.plugins.folders.last(),
            Some(&world.home().join("team"))
        );
        let SandboxSettings { hide, protect, .. } = config.sandbox;
        let folders = config.plugins.folders.into_iter();
        let all: Vec<PathBuf> = folders.chain(hide).chain(protect).collect();
        assert!(!all.iter().any(has_dots), "{all:?}");
    };
    world.flags.plugins = vec!["../team".into()];
    for path in [
        "../cfg/e.toml",
        "deep/../../cfg/e.toml",
        "nothing/../../cfg/e.toml",
        // Where a link leads, as the system has it.
        "deep/link/../e.toml",
        "../cfg/sub/../e.toml",
    ] {
        world.flags.config = Some(path.into());
        check(&world);
    }
    world.flags.config = None;
    check(&world.env("ZEPH_HOST_CONFIG", "../cfg/e.toml"));
}

#[test]
fn one_file_is_checked_by_itself() {
    let world = World::new().user("broken").project("[run]\njobs = 1\n");
    let check = |file| Config::check_file(&world.surroundings, file);
    fs::write(world.repo().join("new.toml"), "[run]\njobs = 3\n").unwrap();
    let loaded = check("new.toml".as_ref()).unwrap();
    assert_eq!(loaded.config.run.jobs.get(), 3);
    fs::write(world.user_file(), "").unwrap();
    let errors = check(".zeph/config.toml".as_ref()).unwrap_err().to_string();
    assert!(
        errors.contains("a project file may not set this"),
        "{errors}"
    );
}
