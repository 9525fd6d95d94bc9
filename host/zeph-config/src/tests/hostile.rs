//! Any bytes in a file, a variable or a flag end as a configuration or as messages, never as a panic or a wait.

use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::World;

#[test]
fn what_is_no_text_file_is_refused() {
    let world = World::new().directory("home/.config/zeph-host/config.toml");
    assert_eq!(world.errors(), "USER: is not a regular file");
    let world = World::new().user(b"[limits]\ncpu_secs = \xff\n");
    assert_eq!(
        world.errors(),
        "USER: is not UTF-8 text: byte 20, on line 2, belongs to no character"
    );
    let world = World::new().project("");
    fs::remove_file(world.project_file()).unwrap();
    let name = std::ffi::CString::new(world.project_file().to_str().unwrap()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        name.as_c_str(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert_eq!(
        world.errors(),
        "PROJECT: is not a regular file",
        "a pipe is not waited on"
    );
}

#[test]
fn a_file_over_the_limit_is_refused() {
    let world = World::new().project(vec![b'#'; 3 * 1024 * 1024]);
    assert_eq!(
        world.errors(),
        "PROJECT: is longer than 1048576 bytes (3145728 bytes), the limit of such a file"
    );
}

#[test]
fn a_flood_of_unknown_keys_is_counted() {
    let flood: String = (0..100_000).map(|n| format!("k{n}=1\n")).collect();
    let started = Instant::now();
    let errors = World::new().project(flood).errors();
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "took {:?}",
        started.elapsed()
    );
    assert_eq!(errors.lines().count(), 21, "{errors}");
    assert!(errors.ends_with("more unknown keys"), "{errors}");
}

#[test]
fn messages_stay_on_their_line() {
    let text = "\"a\\n\\u001b[31mERROR\" = 1\ntools.enabled = \"x\\r\\ny\"\n";
    let errors = World::new().project(text).errors();
    assert_eq!(errors.lines().count(), 2, "{errors}");
    assert!(
        !errors.contains('\u{1b}') && !errors.contains('\r'),
        "{errors:?}"
    );
}

#[test]
fn deep_nesting_is_an_error() {
    for text in [
        "a=".to_owned() + &"[".repeat(100_000),
        "[".to_owned() + &"a.".repeat(100_000) + "a]",
    ] {
        let errors = World::new().project(text).errors();
        assert!(errors.starts_with("PROJECT:1"), "{errors}");
    }
}

fn tomlish() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("[tools.file]\n"),
        Just("[limits]\n"),
        Just("[[tools]]\n"),
        Just("[tools.permissions.bash]\n"),
        Just("[[tools.permissions.bash]]\n"),
        Just("[[tools.policy.rules]]\n"),
        Just("[tools.sandbox]\n"),
        Just("pattern"),
        Just("action"),
        Just("allow_read"),
        Just("\"deny\""),
        Just("allowed_paths"),
        Just("cpu_secs"),
        Just("deny_read"),
        Just(" = "),
        Just("."),
        Just("\""),
        Just("'"),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just(","),
        Just("\n"),
        Just("~"),
        Just("/"),
        Just("**/"),
        Just("../"),
        Just("1"),
        Just("-9223372036854775809"),
        Just("true"),
        Just("1979-05-27"),
        Just("\u{0}"),
        Just("ü"),
        Just("\"\"\""),
        Just("\\"),
        Just("#"),
        Just("nan"),
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(user in tomlish(), project in tomlish(), variable in tomlish()) {
        let world = World::new()
            .user(user)
            .project(project)
            .env("ZEPH_TOOLS_FILE_DENY_READ", &variable)
            .env("ZEPH_TOOLS_FILE_ALLOWED_PATHS", &variable)
            .set(&variable);
        match world.load() {
            Ok(loaded) => prop_assert!(!loaded.origins.is_empty()),
            Err(errors) => prop_assert_eq!(errors.to_string().lines().count(), errors.problems.len()),
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let world = World::new().user(&bytes).project(&bytes);
        let shown = world.load().map(|_| ()).map_err(|errors| errors.problems.len());
        prop_assert_ne!(shown, Err(0));
    }

    /// Whatever a project says about its jail, it stays within the directory that is granted.
    #[test]
    fn no_path_of_a_jail_escapes(parts in prop::collection::vec(
        prop_oneof![
            Just(".."), Just("."), Just("src"), Just("out"), Just("/"), Just("~"), Just("repo"), Just("other"), Just("*"), Just("**"),
        ], 1..6,
    )) {
        let path = parts.join("/");
        let world = World::new()
            .directory("home/other")
            .symlink("home/repo/out", "home/other")
            .project(format!("[tools.sandbox]\nallow_read = [{path:?}]\nallow_write = [{path:?}]\n"));
        if let Ok(loaded) = world.load() {
            let repo = world.repo();
            let sandbox = loaded.config.sandbox;
            prop_assert!(sandbox.read.iter().chain(&sandbox.write).all(|path| path.starts_with(&repo)));
        }
    }

    /// Whatever a project says about roots, what is granted lies in what the user granted.
    #[test]
    fn no_project_root_escapes(parts in prop::collection::vec(
        prop_oneof![Just(".."), Just("."), Just("src"), Just("out"), Just("/"), Just("~"), Just("repo"), Just("other")], 1..6,
    )) {
        let path = parts.join("/");
        let world = World::new()
            .directory("home/other")
            .symlink("home/repo/out", "home/other")
            .project(format!("tools.file.allowed_paths = [{path:?}]"));
        if let Ok(loaded) = world.load() {
            let repo = world.repo();
            prop_assert!(loaded.config.file.roots.iter().all(|root| root.path.starts_with(&repo)));
        }
    }
}
