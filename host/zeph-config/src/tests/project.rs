//! A project file is written by strangers: whatever it tries, it can only narrow.

use super::World;
use crate::ListedTool;

/// A user who granted two trees, hides some of them and lowered a limit.
const USER: &str = r#"
[tools.file]
allowed_paths = ["~/repo", "~/lib"]
rights = ["read", "write", "create"]
deny_read = ["/etc/**", "**/.env"]
allow_read = ["/etc/hostname"]
[tools.overflow]
max_overflow_bytes = 0
[limits]
memory_bytes = 100000000
"#;

fn world() -> World {
    World::new()
        .directory("home/lib/inner")
        .directory("home/other")
        .user(USER)
}

#[test]
fn what_narrows_is_taken() {
    for (text, key, expected) in [
        (
            "tools.enabled = false",
            "tools.enabled",
            "false (PROJECT:1)",
        ),
        (
            "limits.memory_bytes = 99999999",
            "limits.memory_bytes",
            "99999999 (PROJECT:1)",
        ),
        (
            "limits.memory_bytes = 100000000",
            "limits.memory_bytes",
            "100000000 (PROJECT:1)",
        ),
        (
            "tools.overflow.threshold = 100",
            "tools.overflow.threshold",
            "100 (PROJECT:1)",
        ),
        (
            "tools.overflow.max_overflow_bytes = 5",
            "tools.overflow.max_overflow_bytes",
            "5 (PROJECT:1)",
        ),
        (
            "tools.overflow.max_overflow_bytes = 0",
            "tools.overflow.max_overflow_bytes",
            "0 (PROJECT:1)",
        ),
        (
            "tools.file.rights = [\"read\"]",
            "tools.file.rights",
            "[\"read\"] (PROJECT:1)",
        ),
        (
            "tools.file.rights = []",
            "tools.file.rights",
            "[] (PROJECT:1)",
        ),
        (
            "tools.file.allow_read = []",
            "tools.file.allow_read",
            "[] (PROJECT:1)",
        ),
    ] {
        assert_eq!(world().project(text).said(key), expected, "{text}");
    }
}

#[test]
fn roots_within_the_granted_ones_are_taken() {
    for (text, expected) in [
        (r#"["src"]"#, vec!["/home/repo/src"]),
        (r#"["."]"#, vec!["/home/repo"]),
        (
            r#"["src/../src", "../lib/inner"]"#,
            vec!["/home/repo/src", "/home/lib/inner"],
        ),
        (r#"["~/lib"]"#, vec!["/home/lib"]),
        ("[]", vec!["/home/repo"]),
    ] {
        let world = world().project(format!("tools.file.allowed_paths = {text}"));
        let roots = world.config().file.roots;
        let paths: Vec<_> = roots
            .iter()
            .map(|root| world.portable(&root.path.display().to_string()))
            .collect();
        assert_eq!(paths, expected, "{text}");
        assert!(
            roots.iter().all(|root| !root.rights.delete),
            "the user's rights stay"
        );
    }
}

#[test]
fn roots_outside_of_the_granted_ones_are_refused() {
    let world = || {
        world()
            .symlink("home/repo/out", "home/other")
            .symlink("home/repo/up", "")
            .directory("home/repo-two")
    };
    for path in [
        "..",
        "/",
        "~",
        "~/other",
        "../other",
        "../repo-two",
        "out",
        "out/.",
        "up",
        "up/home/other",
        "src/../..",
        "src/../../other",
        "./././../other",
        "../lib/..",
        "../lib/../other",
    ] {
        let errors = world()
            .project(format!("tools.file.allowed_paths = [\"src\", {path:?}]"))
            .errors();
        assert!(
            errors.starts_with("PROJECT:1: `tools.file.allowed_paths`: a project file may only name directories within"),
            "{path}: {errors}"
        );
    }
    for path in ["../REPO", "gone", "\\u0000", "", "~root"] {
        let errors = world()
            .project(format!("tools.file.allowed_paths = [\"{path}\"]"))
            .errors();
        assert!(
            errors.starts_with("PROJECT:1: `tools.file.allowed_paths`"),
            "{path}: {errors}"
        );
    }
}

#[test]
fn the_message_names_the_bound_and_where_it_can_be_moved() {
    let errors = world()
        .project("tools.file.allowed_paths = [\"../other\"]")
        .errors();
    assert_eq!(
        errors,
        "PROJECT:1: `tools.file.allowed_paths`: a project file may only name directories within the granted ones: \
         `../other` is /home/other, outside /home/repo, /home/lib (USER:3); the operator can set it in USER"
    );
}

/// An empty list means the working directory, which the user may not have granted.
#[test]
fn an_empty_list_of_roots_does_not_widen() {
    let errors = World::new()
        .directory("home/lib")
        .user("[tools.file]\nallowed_paths = [\"~/lib\"]\n")
        .project("tools.file.allowed_paths = []")
        .errors();
    assert!(
        errors.contains("`.` is /home/repo, outside /home/lib (USER:2)"),
        "{errors}"
    );
}

#[test]
fn what_widens_is_refused() {
    for (text, message) in [
        (
            "limits.memory_bytes = 100000001",
            "may only lower this: found 100000001, the bound is 100000000 (USER:10)",
        ),
        (
            "limits.wall_clock_secs = 31",
            "may only lower this: found 31, the bound is 30 (built-in)",
        ),
        ("limits.host_calls = 1000000000000", "may only lower this"),
        (
            "tools.overflow.threshold = 50001",
            "may only lower this: found 50001, the bound is 50000 (built-in)",
        ),
        (
            "tools.file.rights = [\"read\", \"delete\"]",
            "may only leave items out: \"delete\" is not among [read, write, create] (USER:4)",
        ),
        (
            "tools.file.allow_read = [\"/etc/shadow\"]",
            "may only leave items out: \"/etc/shadow\" is not among [/etc/hostname] (USER:6)",
        ),
        (
            "tools.file.allow_read = [\"/etc/hostname\", \"**/*\"]",
            "may only leave items out: \"**/*\"",
        ),
        (
            "tools.audit.enabled = false",
            "may not set this: the audit log",
        ),
        (
            "tools.audit.file = \"none\"",
            "may not set this: the audit log",
        ),
        (
            "tools.audit.file = \"/home/u/.bashrc\"",
            "may not set this: the audit log",
        ),
        (
            "tools.audit.file_max_bytes = 1",
            "may not set this: the audit log",
        ),
        (
            "tools.audit.retention_days = 1",
            "may not set this: the audit log",
        ),
        (
            "tools.audit.max_rows = 1",
            "may not set this: the audit log",
        ),
        (
            "agent.retention_days = 1",
            "may not set this: the audit log",
        ),
        (
            "tools.overflow.retention_days = 1",
            "may not set this: the audit log",
        ),
        (
            "store.path = \":memory:\"",
            "may not set this: the audit log",
        ),
        (
            "engine.cache_dir = \".\"",
            "may not set this: it is a setting of the machine",
        ),
        (
            "engine.guest_threads = 1",
            "may not set this: it is a setting of the machine",
        ),
        (
            "run.jobs = 1",
            "may not set this: it is a setting of the machine",
        ),
        (
            "run.request_bytes = 1024",
            "may not set this: it is a setting of the machine",
        ),
        (
            "mcp.serve.expose = \"all\"",
            "may not set this: the operator decides what clients are served",
        ),
        (
            "mcp.serve.max_concurrent_calls = 1",
            "may not set this: the operator decides what clients are served",
        ),
        (
            "mcp.serve.oauth.issuer = \"https://attacker.example\"",
            "may not set this: the operator decides what clients are served",
        ),
    ] {
        let errors = world().project(text).errors();
        assert!(errors.starts_with("PROJECT:1: `"), "{text}: {errors}");
        assert!(
            errors.contains(&format!(": a project file {message}")),
            "{text}: {errors}"
        );
        assert!(
            errors.ends_with("; the operator can set it in USER"),
            "{text}: {errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{text}: {errors}");
    }
}

#[test]
fn unlimited_is_more_than_any_number() {
    let errors = World::new()
        .project("tools.overflow.max_overflow_bytes = 0")
        .errors();
    assert!(
        errors.contains("found 0, the bound is 10485760 (built-in)"),
        "{errors}"
    );
}

#[test]
fn what_is_off_stays_off() {
    let errors = World::new()
        .user("tools.enabled = false")
        .project("tools.enabled = true")
        .errors();
    assert!(
        errors.contains("may only turn this off, and it is off already (USER:1)"),
        "{errors}"
    );
}

#[test]
fn hidden_patterns_are_added_and_never_removed() {
    for text in [
        "tools.file.deny_read = []",
        "tools.file.deny_read = [\"./private/**\", \"**/*.pem\"]",
    ] {
        let grant = world().project(text).config().file;
        assert!(grant.deny_read.contains(&"/etc/**".to_owned()), "{text}");
        assert!(grant.deny_read.contains(&"**/.env".to_owned()), "{text}");
        assert_eq!(
            grant.deny_read.contains(&"**/*.pem".to_owned()),
            text.contains("pem")
        );
    }
    let world = world().project("tools.file.deny_read = [\"./private\"]");
    let private = world.repo().join("private").display().to_string();
    assert!(world.config().file.deny_read.contains(&private));
    assert!(
        world
            .said("tools.file.deny_read")
            .ends_with("(USER:5, PROJECT:1)")
    );
}

#[test]
fn a_project_that_turns_tools_off_is_told() {
    let warned = |world: World| {
        let warnings = world.load().unwrap().warnings;
        warnings
            .iter()
            .any(|text| text.contains("turns all tools off"))
    };
    assert!(warned(World::new().project("tools.enabled = false")));
    assert!(!warned(World::new().user("tools.enabled = false")));
}

#[test]
fn the_operator_has_the_last_word() {
    let world = world()
        .project("limits.memory_bytes = 70000")
        .env("ZEPH_LIMITS_MEMORY_BYTES", "90000");
    assert_eq!(world.config().limits.memory_bytes, 90_000);
}

/// When the user's file is broken its bounds are unknown: one error to mend, not a wrong verdict beside it.
#[test]
fn no_verdict_on_an_unknown_bound() {
    let errors = World::new()
        .user("limits = [")
        .project("limits.memory_bytes = 300000000\nstore.path = \"x\"\nrun.jbs = 3")
        .errors();
    assert!(!errors.contains("memory_bytes"), "{errors}");
    assert!(
        errors.contains("PROJECT:2: `store.path`: a project file may not set this"),
        "{errors}"
    );
    assert!(
        errors.contains("PROJECT:3: unknown key `run.jbs`; did you mean `run.jobs`?"),
        "{errors}"
    );
}

#[test]
fn a_project_file_that_leads_out_is_not_read() {
    let world = World::new().directory("home/repo/.zeph");
    std::fs::write(world.home().join("private"), "password = 1").unwrap();
    let errors = world
        .symlink("home/repo/.zeph/config.toml", "home/private")
        .errors();
    assert_eq!(
        errors,
        "PROJECT: leads out of the project through a symlink"
    );
    let world = World::new()
        .directory("home/repo/.zeph")
        .symlink("home/repo/.zeph/config.toml", "nowhere");
    assert!(world.errors().starts_with("PROJECT: cannot be opened"));
}

const SERVER: &str = "[mcp.servers.files]\ncommand = \"npx\"\nargs = [\"files\"]\nallow_read = [\"~/lib\"]\ndenied_tools = [\"move\"]\n";

#[test]
fn a_project_turns_off_servers_and_tools_of_the_operator() {
    let world = |project: &str| {
        let world = World::new().directory("home/lib").user(SERVER);
        world.project(format!("[mcp.servers.files]\n{project}\n"))
    };
    let server = |project: &str| {
        let servers = world(project).config().mcp_servers;
        servers.into_values().next().unwrap()
    };
    assert!(server("disabled = true").disabled);
    let narrowed = server("denied_tools = [\"write\"]");
    let denied: Vec<&str> = narrowed.denied_tools.iter().map(ListedTool::text).collect();
    assert_eq!(denied, ["move", "write"]);
    assert!(!narrowed.offers("write") && !narrowed.offers("move") && narrowed.offers("read"));
    assert!(!narrowed.disabled);
    for widens in [
        "disabled = false",
        "command = \"other\"",
        "args = []",
        "env = { TOKEN = { secret = \"OTHER\" } }",
        "allow_read = []",
        "hosts = [\"example.org\"]",
        "allowed_tools = []",
        "trust_level = \"trusted\"",
        "tools = { move = { enabled = true } }",
        "url = \"https://example.org\"",
    ] {
        let errors = world(widens).errors();
        let expect = "PROJECT:1: `mcp.servers.files`: a project file may only set `disabled = true` and add to `denied_tools` here";
        assert!(errors.starts_with(expect), "{widens}: {errors}");
    }
}

#[test]
fn a_project_adds_no_server() {
    for user in ["", SERVER] {
        let world = World::new().directory("home/lib").user(user);
        let errors = world
            .project("[mcp.servers.own]\ncommand = \"npx\"\nargs = [\"-y\", \"own\"]\n")
            .errors();
        assert!(
            errors.starts_with(
                "PROJECT:1: `mcp.servers.own`: a project file may not add an MCP server"
            ),
            "{errors}"
        );
    }
}
