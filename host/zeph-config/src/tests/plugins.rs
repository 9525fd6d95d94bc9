//! `[plugins]`: folders that are named, what is kept from tools of them, and what plugins are told.

use std::path::PathBuf;

use super::World;
use crate::IndexLocation;

fn folders(lines: &str) -> String {
    format!("[plugins]\nfolders = {lines}\n")
}

fn usual(world: &World) -> [PathBuf; 2] {
    [".config", ".local/share"].map(|base| world.home().join(base).join("zeph-host/plugins"))
}

#[test]
fn indexes_are_urls_and_files_each_once() {
    let text = r#"["https://example.org/index.json", "~/index.json", "https://example.org/index.json", "/srv/i.json"]"#;
    let world = World::new().user(format!("[plugins]\nindex = {text}\n"));
    let file = |path: PathBuf| IndexLocation::File(path);
    let expect = [
        IndexLocation::Url("https://example.org/index.json".to_owned()),
        file(world.home().join("index.json")),
        file("/srv/i.json".into()),
    ];
    assert_eq!(world.config().plugins.indexes, expect);
    assert!(World::new().config().plugins.indexes.is_empty());
}

#[test]
fn folders_that_are_named_come_first_and_each_once() {
    let world = World::new();
    let [beside, data] = usual(&world);
    assert_eq!(
        world.config().plugins.folders,
        [beside.clone(), data.clone()]
    );
    assert_eq!(world.config().plugins.add_to, Some(data.clone()));

    let text = folders(r#"["~/team", "~/.local/share/zeph-host/plugins", "~/team/."]"#);
    let world = world.directory("home/team").user(text);
    let team = world.home().join("team");
    let config = world.config();
    assert_eq!(config.plugins.folders, [team, data.clone(), beside]);
    assert_eq!(config.plugins.add_to, Some(data));
}

#[test]
fn a_folder_that_is_typed_stands_before_the_others_and_takes_new_plugins() {
    let mut world = World::new()
        .directory("home/repo/plugins")
        .user(folders(r#"["~/team"]"#));
    world.flags.plugins = vec!["plugins".into(), "/srv/more".into()];
    let plugins = world.config().plugins;
    let typed = [world.repo().join("plugins"), "/srv/more".into()];
    // Their names come after those of the operator's folders; a command that names a plugin means one of them first.
    let [beside, data] = usual(&world);
    let own = [world.home().join("team"), beside, data];
    let all = [&own[..], &typed].concat();
    assert_eq!((plugins.folders.clone(), plugins.n_typed), (all, 2));
    assert_eq!(plugins.typed_first(), [&typed[..], &own].concat());
    assert_eq!(plugins.add_to.as_ref(), typed.first());
    assert_eq!(
        world.said("plugins.folders"),
        r#"["plugins", "/srv/more", "~/team"] (--plugins plugins, --plugins /srv/more, USER:2)"#
    );
    // One that is the operator's own stays so.
    let [_, _, data] = own;
    world.flags.plugins = vec![data.clone()];
    let plugins = world.config().plugins;
    assert_eq!((plugins.folders.len(), plugins.n_typed), (3, 0));
    assert_eq!(plugins.add_to, Some(data));
}

/// Each is judged by where it was said: only a person who sees where they are may type a path that begins there.
#[test]
fn a_folder_beside_a_typed_one_is_still_named_in_full() {
    let mut world = World::new()
        .directory("home/repo/plugins")
        .user(folders(r#"["team"]"#));
    world.flags.plugins = vec!["plugins".into()];
    let errors = world.errors();
    assert!(
        errors.starts_with("USER:2: `plugins.folders`: "),
        "{errors}"
    );
    assert!(!errors.contains('\n'), "{errors}");

    world.flags.plugins = vec!["src".into()];
    world.flags.roots = vec!["src".into()];
    let world = world.user(folders(r#"["~/team"]"#));
    let errors = world.errors();
    assert!(
        errors.starts_with("--plugins src: `plugins.folders`: "),
        "{errors}"
    );

    let mut world = World::new().set("plugins.folders=team");
    let typed = |world: &World| {
        let plugins = world.config().plugins;
        plugins.typed_first()[..plugins.n_typed].to_vec()
    };
    assert_eq!(typed(&world), [world.repo().join("team")]);
    world.flags.plugins = vec!["mine".into()];
    assert_eq!(
        typed(&world),
        ["mine", "team"].map(|name| world.repo().join(name))
    );
}

/// Such a path is another folder in every repository, and no repository is trusted by itself.
#[test]
fn a_folder_of_whatever_directory_this_is_cannot_be_named_for_good() {
    for text in ["plugins", "./plugins", "../plugins", "", "."] {
        let errors = World::new()
            .user(folders(&format!("[\"{text}\"]")))
            .errors();
        assert!(
            errors.starts_with("USER:2: `plugins.folders`: "),
            "{errors}"
        );
        let errors = World::new().env("ZEPH_PLUGINS_FOLDERS", format!("[\"{text}\"]"));
        assert!(errors.errors().contains("`plugins.folders`: "), "{text}");
    }
    let project = World::new().project(folders(r#"["/srv/plugins"]"#));
    let errors = project.errors();
    assert!(
        errors.contains("a project file may not set this"),
        "{errors}"
    );
}

#[test]
fn tools_can_add_nothing_to_a_folder_that_is_named() {
    let mut world = World::new().directory("home/repo/plugins");
    world.flags.plugins = vec!["plugins".into()];
    let config = world.config();
    let repo = world.repo();
    assert!(config.sandbox.protect.contains(&repo.join("plugins")));
    assert!(config.sandbox.hide.contains(&repo.join("zeph.lock")));
    let hidden = |pattern: &str| {
        let pattern = repo.join(pattern).display().to_string();
        config.file.deny_read.contains(&pattern)
    };
    assert!(hidden("plugins/*.wasm"));
    assert!(hidden("zeph.lock*"));
    assert!(!hidden("plugins"), "sources beside them can be read");

    world.flags.plugins = vec![".".into()];
    let errors = world.errors();
    assert!(errors.contains("name one of its own"), "{errors}");
    // What lies above the directories of tools is out of their reach, and those directories stay theirs.
    world.flags.plugins = vec!["..".into()];
    let config = world.config();
    assert!(!config.sandbox.protect.contains(&world.home()));
    world.flags.plugins = vec!["gone".into()];
    let warnings = world.load().unwrap().warnings;
    let told = "`--plugins gone`: there is no directory";
    assert!(warnings[0].starts_with(told), "{warnings:?}");
    // Nothing would be found in it, and nothing can be added to it.
    std::fs::write(world.repo().join("weather.wasm"), "").unwrap();
    world.flags.plugins = vec!["weather.wasm".into()];
    let errors = world.errors();
    assert!(
        errors.contains("`weather.wasm` is no directory"),
        "{errors}"
    );
}

#[test]
fn a_plugin_is_told_whatever_stands_in_its_table() {
    let text = r#"
[plugins.settings.weather]
units = "metric"
days = 5
ratio = 0.5
exact = true
since = 2026-11-20
places = ["here", { name = "there" }]

[plugins.settings.my-plugin]
"#;
    let world = World::new().user(text);
    let settings = world.config().plugins.settings;
    assert_eq!(
        &*settings["weather"],
        r#"{"days":5,"exact":true,"places":["here",{"name":"there"}],"ratio":0.5,"since":"2026-11-20","units":"metric"}"#
    );
    assert_eq!(&*settings["my-plugin"], "{}");
    let typed = World::new().set("plugins.settings.weather={ days = 1 }");
    assert_eq!(
        &*typed.config().plugins.settings["weather"],
        r#"{"days":1}"#
    );
    assert_eq!(
        typed.said("plugins.settings.weather"),
        "{ days = 1 } (--set plugins.settings.weather={ days = 1 })"
    );
}

#[test]
fn settings_that_cannot_be_told() {
    for (text, words) in [
        ("[plugins.settings]\nweather = 1", "found 1, wanted a table"),
        ("[plugins.settings.Weather]", "not a valid plugin name"),
        ("[plugins.settings.\"a b\"]", "not a valid plugin name"),
        ("[plugins.settings.w]\nx = nan", "wanted a finite number"),
        (
            "[plugins.settings.w]\nx = [1, inf]",
            "wanted a finite number",
        ),
    ] {
        let errors = World::new().user(text).errors();
        assert!(errors.contains(words), "{text}: {errors}");
    }
    let long = format!("[plugins.settings.w]\nx = \"{}\"\n", "x".repeat(70_000));
    let errors = World::new().user(long).errors();
    assert!(errors.contains("wanted at most 65536"), "{errors}");
    let project = World::new().project("[plugins.settings.weather]\nunits = \"metric\"\n");
    let errors = project.errors();
    assert!(
        errors
            .starts_with("PROJECT:1: `plugins.settings.weather`: a project file may not set this"),
        "{errors}"
    );
}

fn unsigned(rule: &str) -> String {
    format!("[plugins.trust]\nunsigned = \"{rule}\"\n")
}

#[test]
fn a_project_may_ask_for_more_signatures_and_not_for_fewer() {
    for (user, project) in [
        ("allow", "refuse"),
        ("allow", "ask"),
        ("ask", "ask"),
        ("ask", "refuse"),
    ] {
        let world = World::new().user(unsigned(user)).project(unsigned(project));
        let rule = world.config().plugins.signatures.unsigned;
        assert_eq!(format!("{rule:?}").to_lowercase(), project);
    }
    for (user, project) in [("ask", "allow"), ("refuse", "ask"), ("refuse", "allow")] {
        let world = World::new().user(unsigned(user)).project(unsigned(project));
        let errors = world.errors();
        assert!(errors.contains("only choose what is stricter"), "{errors}");
    }
}

#[test]
fn a_signer_expires_at_the_end_of_a_day_or_at_a_moment() {
    let signer = |expires: &str| {
        let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let text = format!(
            "[[plugins.trust.signers]]\nname = \"a\"\nkey = \"{key}\"\noffers = [\"*\"]\nexpires = \"{expires}\"\n"
        );
        let config = World::new().user(text).config();
        config.plugins.signatures.signers[0].expires_at_ms
    };
    assert_eq!(signer(""), None);
    assert_eq!(signer("2026-12-31"), Some(1_798_761_600_000));
    assert_eq!(signer("2027-01-01T00:00:00Z"), Some(1_798_761_600_000));
    assert_eq!(signer("2027-01-01T01:00:00+01:00"), Some(1_798_761_600_000));
}

#[test]
fn what_the_host_keeps_beside_its_store_is_hidden_from_commands() {
    let world = World::new()
        .user("[store]\npath = \"./state/zeph.db\"\n")
        .directory("home/repo/state/zeph.db.corrupt-1")
        .directory("home/repo/state/other.db");
    let hide = world.config().sandbox.hide;
    let state = world.repo().join("state");
    for name in ["", ".lock", ".plugin-folders", ".corrupt-1"] {
        let path = state.join(format!("zeph.db{name}"));
        assert!(hide.contains(&path), "{name}: {hide:?}");
    }
    assert!(!hide.contains(&state.join("other.db")), "{hide:?}");
}
