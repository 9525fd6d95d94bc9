//! What tools may touch: roots, patterns, and the host's own files.

use crate::StoreLocation;
use std::path::PathBuf;

use super::World;

fn file(lines: &str) -> String {
    format!("[tools.file]\n{lines}\n")
}

fn roots(world: &World) -> Vec<PathBuf> {
    world
        .config()
        .file
        .roots
        .into_iter()
        .map(|root| root.path)
        .collect()
}

#[test]
fn roots_are_canonical_and_named_once() {
    let world = World::new()
        .symlink("home/link", "home/repo/src")
        .user(file(
            r#"allowed_paths = ["src", "~/link", "~/repo/../repo", ".", "~"]"#,
        ));
    assert_eq!(
        roots(&world),
        [world.repo().join("src"), world.repo(), world.home()]
    );
}

#[test]
fn a_root_that_cannot_be_used_is_an_error() {
    let world = World::new().user(file(
        r#"allowed_paths = ["gone", "/dev/null", "", "~nobody/x"]"#,
    ));
    let expected = "\
USER:2: `tools.file.allowed_paths`: `gone` cannot be used: No such file or directory (os error 2)
USER:2: `tools.file.allowed_paths`: `/dev/null` is not a directory
USER:2: `tools.file.allowed_paths`: an empty path; write `.` for the working directory
USER:2: `tools.file.allowed_paths`: `~nobody/x` begins with `~`; only `~` and `~/…` are understood \
(write `./~…` for a name that begins with it)";
    assert_eq!(world.errors(), expected);
}

#[test]
fn the_whole_disk_can_be_granted_on_purpose() {
    let world = World::new().user(file(r#"allowed_paths = ["/"]"#));
    assert_eq!(roots(&world), [PathBuf::from("/")]);
}

#[test]
fn rights_are_those_listed() {
    let rights = World::new()
        .user(file(r#"rights = ["read", "create"]"#))
        .config()
        .file
        .roots[0]
        .rights;
    assert!(rights.read && rights.create && !rights.write && !rights.delete);
}

#[test]
fn patterns_become_absolute() {
    let world = World::new().user(file(
        r#"deny_read = ["/etc/shadow", "/root/*", "~/.ssh/", "./secret", "**/.env"]
           allow_read = ["/etc/hostname"]"#,
    ));
    let grant = world.config().file;
    assert_eq!(grant.allow_read, ["/etc/hostname"]);
    for pattern in [
        "/etc/shadow".to_owned(),
        "/root/*".to_owned(),
        world.home().join(".ssh").display().to_string(),
        world.repo().join("secret").display().to_string(),
        "**/.env".to_owned(),
    ] {
        assert!(
            grant.deny_read.contains(&pattern),
            "{pattern} in {:?}",
            grant.deny_read
        );
    }
}

#[test]
fn a_denied_path_through_a_symlink_is_denied_where_it_leads() {
    let world = World::new()
        .directory("real/vault")
        .symlink("home/link", "real")
        .user(file(r#"deny_read = ["~/link/vault/*.key"]"#));
    let resolved = format!("{}/real/vault/*.key", world.root().display());
    assert!(world.config().file.deny_read.contains(&resolved));
}

#[test]
fn an_exception_does_not_follow_symlinks() {
    let world = World::new()
        .symlink("home/repo/open", "home/.ssh")
        .user(file(r#"allow_read = ["./open"]"#));
    let written = world.repo().join("open").display().to_string();
    assert_eq!(world.config().file.allow_read, [written]);
}

#[test]
fn a_pattern_that_could_never_match_is_an_error() {
    let world = World::new().user(file(
        "deny_read = [\".env\", \"/a/../b\", \"/\", \"/x/[\"]\nallow_read = [\"hosts\"]",
    ));
    let expected = "\
USER:2: `tools.file.deny_read`: `.env` begins with neither `/`, `~/`, `./` nor `**/`; write `**/.env` for that name \
in any folder
USER:2: `tools.file.deny_read`: `/a/../b` contains `.` or `..`; write the path without them
USER:2: `tools.file.deny_read`: `/` names everything; use `allowed_paths` to say what may be touched
USER:2: `tools.file.deny_read`: `/x/[` is not a pattern: unclosed character class; missing ']'
USER:3: `tools.file.allow_read`: `hosts` begins with neither `/`, `~/`, `./` nor `**/`; write `**/hosts` for that \
name in any folder";
    assert_eq!(world.errors(), expected);
}

#[test]
fn the_hosts_own_files_are_hidden() {
    let world = World::new()
        .user("[store]\npath = \"./here.db\"\n[tools.audit]\nfile = \"~/log.jsonl\"\n[engine]\ncache_dir = \"/c\"\n");
    let hidden = world.config().file.deny_read;
    let home = world.home().display().to_string();
    for pattern in [
        format!("{home}/repo/here.db*"),
        format!("{home}/log.jsonl*"),
        "/c".to_owned(),
        format!("{home}/.config/zeph-host"),
        format!("{home}/.config/zeph-host/config.toml*"),
        format!("{home}/.local/share/zeph-host"),
        format!("{home}/.local/state/zeph-host"),
        format!("{home}/repo/.zeph"),
    ] {
        assert!(hidden.contains(&pattern), "{pattern} in {hidden:#?}");
    }
}

#[test]
fn hidden_patterns_are_in_the_form_of_real_names() {
    let world = World::new().user(
        "store.path = \"../gone/../new/./a.db\"\ntools.audit.file = \"../../log/\"\nengine.cache_dir = \".\"\n",
    );
    let hidden = world.config().file.deny_read;
    for pattern in &hidden {
        let dead = |part: &str| matches!(part, "" | "." | "..");
        assert!(
            pattern.starts_with('/') && !pattern[1..].split('/').any(dead),
            "{pattern}"
        );
    }
    let home = world.home().display().to_string();
    assert!(hidden.contains(&format!("{home}/new/a.db*")), "{hidden:#?}");
    assert!(
        hidden.contains(&format!("{}/log*", world.root().display())),
        "{hidden:#?}"
    );
}

#[test]
fn special_characters_of_a_path_are_taken_literally() {
    let mut world = World::new().directory("home/[x]*").working_in("home/[x]*");
    world.flags.roots = vec![".".into()];
    let hidden = world.config().file.deny_read;
    let pattern = format!("{}/[[]x[]][*]/.zeph", world.home().display());
    assert!(hidden.contains(&pattern), "{hidden:#?}");
}

#[test]
fn showing_the_hosts_own_files_is_a_warning() {
    let world = World::new().user(file(r#"allow_read = ["~/.local/**"]"#));
    let warnings = world.load().unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("also shows tools the host's own"),
        "{warnings:?}"
    );
    let world = World::new()
        .directory("home/.cache/zeph-host/x")
        .working_in("home/.cache/zeph-host/x");
    let warnings = world.load().unwrap().warnings;
    assert!(warnings[0].contains("is hidden from tools"), "{warnings:?}");
}

#[test]
fn places_can_be_named_or_done_without() {
    let config = World::new()
        .user("[store]\npath = \":memory:\"\n[tools.audit]\nfile = \"none\"\n[engine]\ncache_dir = \"none\"\n")
        .config();
    assert_eq!(config.store, StoreLocation::Memory);
    assert_eq!(config.audit.file, None);
    assert_eq!(config.engine.cache_dir, None);
}

#[test]
fn without_a_home_the_store_has_to_be_named() {
    let mut world = World::new();
    let surroundings = &mut world.surroundings;
    surroundings.home = None;
    surroundings.config_home = None;
    surroundings.data_home = None;
    surroundings.state_home = None;
    surroundings.cache_home = None;
    assert_eq!(
        world.errors(),
        "built-in: `store.path`: there is no place for the database, because neither `HOME` nor `XDG_DATA_HOME` is an absolute path: name one, or `:memory:`"
    );
    let config = world.set("store.path=:memory:").config();
    assert_eq!(config.audit.file, None);
    assert_eq!(config.engine.cache_dir, None);
}
