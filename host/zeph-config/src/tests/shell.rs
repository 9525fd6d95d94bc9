//! Commands and their jail: durations, directories, the paths a jail is built from.

use std::path::PathBuf;
use std::time::Duration;

use zeph_core::network::Passage;
use zeph_core::policy::{CommandPattern, PermissionSource, ShellLists};

use super::World;

fn shell(lines: &str) -> World {
    World::new().user(format!("[tools.shell]\n{lines}\n"))
}

fn sandbox(lines: &str) -> World {
    World::new()
        .directory("home/data/a")
        .directory("home/data/b")
        .directory("home/data/.c")
        .user(format!("[tools.sandbox]\n{lines}\n"))
}

fn lists(world: &World) -> ShellLists {
    match world.config().rules.policy.permissions {
        PermissionSource::Lists(lists) => lists,
        PermissionSource::Rules(_) => panic!("the lists count"),
    }
}

fn texts(patterns: &[CommandPattern]) -> Vec<String> {
    let texts = patterns.iter().map(CommandPattern::text);
    texts.map(str::to_owned).collect()
}

fn blocked_of(lines: &str) -> Vec<String> {
    texts(&lists(&shell(lines)).blocked)
}

#[test]
fn by_default_commands_hold_the_working_directory_and_no_network() {
    let world = World::new();
    let config = world.config();
    assert_eq!(config.shell.timeout, Duration::from_secs(30));
    assert_eq!(config.shell.timeout_max, Duration::from_secs(600));
    assert_eq!(config.shell.allowed_paths, [world.repo()]);
    assert_eq!(config.shell.background_runs_max, 8);
    assert_eq!(config.shell.background_timeout, Duration::from_secs(1800));
    assert!(config.shell.execution_context);
    assert!(!config.shell.transaction.enabled);
    assert_eq!(config.shell.transaction.snapshot_bytes_max, u64::MAX);
    assert!(config.shell.env_blocklist.contains(&"AWS_".to_owned()));
    assert!(!config.sandbox.disabled);
    assert!(!config.sandbox.network);
    assert_eq!(config.sandbox.read, [world.repo()]);
    assert_eq!(config.sandbox.write, [world.repo()]);
    assert_eq!(config.sandbox.limits.processes, 512);
    assert_eq!(config.sandbox.limits.memory_bytes, 4 << 30);
}

#[test]
fn a_jail_without_paths_of_its_own_follows_the_shell() {
    let world = World::new()
        .directory("home/data")
        .user("[tools.shell]\nallowed_paths = [\"~/data\", \".\", \"~/data/\"]\n[tools.sandbox]\nallow_write = [\"src\"]\n");
    let config = world.config();
    let both = [world.home().join("data"), world.repo()];
    assert_eq!(config.shell.allowed_paths, both);
    assert_eq!(config.sandbox.read, both);
    assert_eq!(config.sandbox.write, [world.repo().join("src")]);
}

#[test]
fn paths_of_a_jail_may_be_files_and_end_in_wildcards() {
    for (text, expected) in [
        ("src", vec!["/home/repo/src"]),
        ("src/", vec!["/home/repo/src"]),
        ("./src/../src", vec!["/home/repo/src"]),
        ("~/data/*", vec!["/home/data/a", "/home/data/b"]),
        ("~/data/.*", vec!["/home/data/.c"]),
        ("~/data/[ab]", vec!["/home/data/a", "/home/data/b"]),
        ("~/data/**", vec!["/home/data"]),
        ("~/file", vec!["/home/file"]),
    ] {
        let world = sandbox(&format!("allow_read = [{text:?}, {text:?}]"));
        std::fs::write(world.home().join("file"), "").unwrap();
        let found: Vec<String> = world
            .config()
            .sandbox
            .read
            .iter()
            .map(|path| world.portable(&path.display().to_string()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn what_does_not_exist_is_left_out_with_a_warning() {
    let world = sandbox(r#"allow_write = ["~/gone", "~/data/x*", "/nowhere/*"]"#);
    let loaded = world.load().unwrap();
    assert_eq!(loaded.config.sandbox.write, Vec::<PathBuf>::new());
    assert_eq!(
        loaded.warnings,
        [
            "`tools.sandbox.allow_write`: `~/gone` does not exist and is skipped",
            "`tools.sandbox.allow_write`: `~/data/x*` does not exist and is skipped",
            "`tools.sandbox.allow_write`: `/nowhere/*` does not exist and is skipped",
        ]
    );
}

#[test]
fn paths_no_jail_can_be_built_from_are_errors() {
    let world = sandbox(
        r#"allow_read = ["", "~/*/x", "a/**/b", "~nobody", "~/[", "x\u0000"]
hide = ["**/.env"]"#,
    );
    let expected = "\
USER:2: `tools.sandbox.allow_read`: an empty path; write `.` for the working directory
USER:2: `tools.sandbox.allow_read`: `~/*/x`: a wildcard can only be in the last part of the path, since a jail is built from paths
USER:2: `tools.sandbox.allow_read`: `a/**/b`: a wildcard can only be in the last part of the path, since a jail is built from paths
USER:2: `tools.sandbox.allow_read`: `~nobody` begins with `~`; only `~` and `~/…` are understood (write `./~…` for a name that begins with it)
USER:2: `tools.sandbox.allow_read`: `~/[` is not a pattern: unclosed character class; missing ']'
USER:2: `tools.sandbox.allow_read`: a path cannot contain a NUL character
USER:3: `tools.sandbox.hide`: `**/.env` has a wildcard; name the path itself, since a jail is built from paths";
    assert_eq!(world.errors(), expected);
}

#[test]
fn the_hosts_own_files_are_hidden_and_project_folders_protected() {
    let world = sandbox("hide = [\"~/data/b\"]\nprotect = [\"Makefile\"]")
        .set("store.path=state.db")
        .symlink("home/repo/Makefile", "home/data/a");
    let sandbox = world.config().sandbox;
    for hidden in [
        "home/data/b",
        "home/.config/zeph-host",
        "home/.local/share/zeph-host",
        "home/repo/state.db",
        "home/repo/state.db-wal",
    ] {
        assert!(
            sandbox.hide.contains(&world.root().join(hidden)),
            "{hidden}"
        );
    }
    for protected in ["home/repo/.zeph", "home/repo/Makefile", "home/data/a"] {
        assert!(
            sandbox.protect.contains(&world.root().join(protected)),
            "{protected}"
        );
    }
}

#[test]
fn impossible_settings_are_errors() {
    for (lines, expected) in [
        (
            "timeout = 601",
            "USER:2: `tools.shell.timeout`: found 601, wanted at most `tools.shell.timeout_max`, which is 600 (built-in)",
        ),
        (
            "timeout_max = 20",
            "USER:2: `tools.shell.timeout_max`: found 20, wanted at least `tools.shell.timeout`, which is 30 (built-in)",
        ),
        (
            "auto_rollback_exit_codes = [1, 256]",
            "USER:2: `tools.shell.auto_rollback_exit_codes`: found 256, wanted a whole number from 1 to 255",
        ),
        (
            "auto_rollback_exit_codes = [\"1\"]",
            "USER:2: `tools.shell.auto_rollback_exit_codes`: found the string \"1\", wanted a whole number from 1 to 255",
        ),
        (
            "auto_rollback_exit_codes = 1",
            "USER:2: `tools.shell.auto_rollback_exit_codes`: found 1, wanted a list of whole numbers from 1 to 255",
        ),
        (
            "transaction_scope = [\"/etc/*\"]",
            "USER:2: `tools.shell.transaction_scope`: `/etc/*` is not relative; patterns are matched against paths below the working directory",
        ),
        (
            "env_allow = [\"A=B\", \"\"]",
            "USER:2: `tools.shell.env_allow`: `A=B` is not a valid variable name\nUSER:2: `tools.shell.env_allow`: `` is not a valid variable name",
        ),
        (
            "blocked_commands = [\" \"]",
            "USER:2: `tools.shell.blocked_commands`: `` does not compile: an empty pattern would match every command",
        ),
    ] {
        assert_eq!(shell(lines).errors(), expected, "{lines}");
    }
}

#[test]
fn numbers_in_variables_need_no_brackets() {
    for (text, expected) in [("3,4", vec![3, 4]), ("[5]", vec![5]), ("", vec![])] {
        let world = World::new().env("ZEPH_TOOLS_SHELL_AUTO_ROLLBACK_EXIT_CODES", text);
        let codes = world.config().shell.transaction.rollback_exit_codes;
        assert_eq!(codes, expected, "{text}");
    }
}

#[test]
fn blocking_one_more_command_unblocks_none() {
    let blocked = blocked_of("blocked_commands = [\"docker\"]");
    assert!(blocked.contains(&"sudo".to_owned()) && blocked.contains(&"docker".to_owned()));
    let blocked = blocked_of("allowed_commands = [\"SUDO\"]");
    assert!(!blocked.contains(&"sudo".to_owned()) && blocked.contains(&"su".to_owned()));
    let both = "blocked_commands = [\"sudo\"]\nallowed_commands = [\"sudo\"]";
    let stays = blocked_of(both).contains(&"sudo".to_owned());
    assert!(stays, "what the operator blocks stays");
    assert!(lists(&shell("confirm_patterns = []")).confirm.is_empty());
    let warnings = shell("allowed_commands = [\"cargo\"]")
        .load()
        .unwrap()
        .warnings;
    assert_eq!(
        warnings,
        [
            "`tools.shell.allowed_commands`: \"cargo\" is not built into `tools.shell.blocked_commands`, so this has no effect"
        ]
    );
}

#[test]
fn a_project_only_narrows_the_jail() {
    let world = |text: &str| {
        World::new()
            .directory("home/data")
            .symlink("home/repo/out", "home/data")
            .project(text)
    };
    let narrowed = world(
        "[tools.sandbox]\nallow_write = [\"src\", \"target\"]\nallow_read = [\".\"]\nhide = [\".env\"]\n\
         [tools.shell]\ntimeout = 10\nblocked_commands = [\"npm\"]\nconfirm_patterns = [\"make\"]\n",
    );
    let config = narrowed.config();
    assert_eq!(config.sandbox.write, [narrowed.repo().join("src")]);
    assert_eq!(config.sandbox.read, [narrowed.repo()]);
    assert!(config.sandbox.hide.contains(&narrowed.repo().join(".env")));
    let lists = lists(&narrowed);
    for pattern in ["npm", "sudo"] {
        assert!(
            texts(&lists.blocked).contains(&pattern.to_owned()),
            "{pattern}"
        );
    }
    for pattern in ["make", "rm"] {
        assert!(
            texts(&lists.confirm).contains(&pattern.to_owned()),
            "{pattern}"
        );
    }
    for line in [
        "tools.sandbox.disabled = true",
        "tools.sandbox.disabled = false",
        "tools.sandbox.allow_network = true",
        "tools.sandbox.allow_hosts = [\"example.net\"]",
        "tools.sandbox.hosts = []",
        "tools.sandbox.allow_write = [\"..\"]",
        "tools.sandbox.allow_write = [\"src\", \"out\"]",
        "tools.sandbox.allow_read = [\"out/x\"]",
        "tools.sandbox.allow_read = [\"~\"]",
        "tools.sandbox.allow_read = [\"../*\"]",
        "tools.sandbox.max_memory_bytes = 9000000000",
        "tools.shell.timeout = 60",
        "tools.shell.allowed_paths = [\"..\"]",
        "tools.shell.allowed_commands = [\"sudo\"]",
        "tools.shell.env_allow = [\"TOKEN\"]",
        "tools.shell.transactional = true",
    ] {
        let errors = world(line).errors();
        assert!(
            errors.contains("a project file may") || errors.contains("wildcard"),
            "{line}: {errors}"
        );
    }
}

#[test]
fn hosts_of_commands_are_what_is_allowed_and_what_is_said_of_them() {
    let hosts = |world: &World| world.config().sandbox.hosts;
    assert_eq!(hosts(&World::new()), []);
    let user = "tools.sandbox.allow_hosts = [\"*.example.org\", \"example.net:22\"]
        [[tools.sandbox.hosts]]
        host = \"example.net:22\"
        raw = true
        [[tools.sandbox.hosts]]
        host = \"a.example.org\"
        tls = \"inspect\"
        [[tools.sandbox.hosts]]
        host = \"example.com\"
        raw = true";
    let world = World::new().user(user);
    let shown = |world: &World| {
        let hosts = hosts(world).into_iter();
        let shown = hosts.map(|host| format!("{} {:?}", host.pattern, host.passage));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(
        shown(&world),
        [
            "example.net:22 Raw",
            "a.example.org Inspected(Inspection { methods: None, paths: None, secrets: [], placeholders: [] })",
            "*.example.org Tls",
            "example.net:22 Tls",
        ]
    );
    let warnings = world.load().unwrap().warnings;
    assert!(warnings[0].contains("`example.com`"), "{warnings:?}");

    let narrowed = world.project("tools.sandbox.allow_hosts = [\"*.example.org\"]");
    let expect = [
        "a.example.org Inspected(Inspection { methods: None, paths: None, secrets: [], placeholders: [] })",
        "*.example.org Tls",
    ];
    assert_eq!(shown(&narrowed), expect);
}

#[test]
fn a_rule_holds_whichever_entry_lists_its_host() {
    let rule =
        |host: &str, how: &str| format!("[[tools.sandbox.hosts]]\nhost = \"{host}\"\n{how}\n");
    let inspect = |host: &str| rule(host, "tls = \"inspect\"\nmethods = [\"GET\"]");
    let both = "tools.sandbox.allow_hosts = [\"*.example.org\", \"api.example.org\"]\n";
    let shown = |world: &World| {
        let hosts = world.config().sandbox.hosts.into_iter();
        let shown = hosts.map(|host| match host.passage {
            Passage::Inspected(_) => format!("{} inspected", host.pattern),
            other => format!("{} {other:?}", host.pattern),
        });
        shown.collect::<Vec<_>>()
    };
    for (rules, project, expect) in [
        (
            inspect("*.example.org"),
            "",
            &[
                "*.example.org inspected",
                "api.example.org inspected",
                "*.example.org Tls",
                "api.example.org Tls",
            ][..],
        ),
        // The narrower rule comes first, wherever it stands.
        (
            inspect("*.example.org") + &rule("api.example.org", "raw = true"),
            "",
            &[
                "api.example.org Raw",
                "*.example.org inspected",
                "*.example.org Tls",
                "api.example.org Tls",
            ],
        ),
        // A project leaves out the entry that covers the rule.
        (
            inspect("*.example.org"),
            "tools.sandbox.allow_hosts = [\"api.example.org\"]",
            &["api.example.org inspected", "api.example.org Tls"],
        ),
        (
            inspect("api.example.org"),
            "tools.sandbox.allow_hosts = [\"*.example.org\"]",
            &["api.example.org inspected", "*.example.org Tls"],
        ),
    ] {
        let mut world = World::new().user(format!("{both}{rules}"));
        if !project.is_empty() {
            world = world.project(project);
        }
        assert_eq!(shown(&world), expect, "{rules}{project}");
        assert!(world.load().unwrap().warnings.is_empty());
    }
}

#[test]
fn an_empty_list_of_a_project_is_no_way_out_of_a_narrow_one() {
    let world = World::new()
        .user("tools.sandbox.allow_write = [\"src\"]")
        .project("tools.sandbox.allow_write = []");
    assert!(
        world
            .errors()
            .contains("may only name paths within the granted ones")
    );
    let world = World::new().project("tools.sandbox.allow_write = []");
    assert_eq!(world.config().sandbox.write, [world.repo()]);
    // Where the shell is granted less than the working directory, so is the jail.
    let world = World::new()
        .directory("home/data")
        .user("tools.shell.allowed_paths = [\"~/data\"]")
        .project("tools.sandbox.allow_write = [\".\"]");
    assert!(
        world
            .errors()
            .contains("may only name paths within the granted ones")
    );
}

/// A command can make a symbolic link where it works; a later session must not follow it.
#[test]
fn what_leads_out_of_the_working_directory_is_not_given() {
    let world = World::new()
        .directory("home/data")
        .symlink("home/repo/out", "home/data")
        .symlink("home/repo/in", "home/repo/src")
        .user("[tools.sandbox]\nallow_write = [\"out\", \"in\", \"./o*\", \"~/data\"]\n");
    let loaded = world.load().unwrap();
    let expected = [world.repo().join("src"), world.home().join("data")];
    assert_eq!(loaded.config.sandbox.write, expected);
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
    assert!(
        loaded.warnings[0].contains("name the real path"),
        "{:?}",
        loaded.warnings
    );
    let world = World::new()
        .directory("home/data")
        .symlink("home/repo/out", "home/data")
        .user("[tools.shell]\nallowed_paths = [\".\", \"out\"]\n");
    assert!(world.errors().contains("leads through a symbolic link"));
}

/// What one session can replace by a link, the next one must not follow: each list is held against all that tools may change.
#[test]
fn a_link_within_what_tools_change_leads_nowhere() {
    const LEADS_OUT: &str = "leads through a symbolic link to";
    let said = |key: &str, text: &str| {
        let world = World::new()
            .directory("outside")
            .directory("home/work/a")
            .symlink("home/repo/docs", "outside")
            .symlink("home/repo/inner", "home/repo/src")
            .symlink("home/work/b", "outside");
        let world = world.user(format!("[tools]\n{key} = {text}\n"));
        match world.load() {
            Ok(loaded) => loaded.warnings.join("\n"),
            Err(errors) => errors.to_string(),
        }
    };
    let wrong = [
        ("file.allowed_paths", "[\"./docs\"]"),
        ("shell.allowed_paths", "[\"./docs\"]"),
        ("shell.allowed_paths", "[\"~/repo/docs\"]"),
        ("shell.allowed_paths", "[\".\", \"./docs\"]"),
        ("sandbox.allow_write", "[\"./docs\"]"),
        ("sandbox.allow_write", "[\"~/work\", \"~/work/b\"]"),
        ("sandbox.allow_read", "[\"./doc*\"]"),
    ];
    for (key, text) in wrong {
        let said = said(key, text);
        assert!(said.contains(LEADS_OUT), "{key} = {text}: {said}");
    }
    let right = [
        ("file.allowed_paths", "[\"./inner\"]"),
        ("file.allowed_paths", "[\".\", \"~/work/b\"]"),
        ("shell.allowed_paths", "[\"./inner\", \"~/work/a\"]"),
        ("sandbox.allow_write", "[\"~/work/b\"]"),
    ];
    for (key, text) in right {
        let said = said(key, text);
        assert!(!said.contains(LEADS_OUT), "{key} = {text}: {said}");
    }
}

#[test]
fn directories_keep_the_names_they_were_reached_by() {
    let mut world = World::new()
        .symlink("home/link", "home/repo")
        .user("[tools.shell]\nallowed_paths = [\"~/link\"]\n");
    let named = world.home().join("link");
    assert_eq!(
        world.config().shell.spellings,
        [(named.clone(), world.repo())]
    );
    // `--root ~/link` names a directory for file tools; a model uses that name in commands, too.
    let of_files = World::new()
        .symlink("home/link", "home/repo")
        .user("[tools.file]\nallowed_paths = [\"~/link\"]\n");
    let expected = [(of_files.home().join("link"), of_files.repo())];
    assert_eq!(of_files.config().shell.spellings, expected);
    let mut of_both = World::new().symlink("home/link", "home/repo");
    let link = of_both.home().join("link");
    of_both.flags.roots = vec![link.clone()];
    assert_eq!(of_both.config().shell.spellings, [(link, of_both.repo())]);
    let typed = world.home().join("typed");
    world.surroundings.typed_directory = Some(typed.clone());
    assert_eq!(world.config().shell.spellings[0], (typed, world.repo()));
}
