use std::fs;

use zeph_core::id::PluginId;

use super::{COMPONENT_PREAMBLE, ComponentSource, component, name};
use crate::author::cargo::Artifact;

const MODULE: &[u8] = b"\0asm\x01\0\0\0";

fn check(files: &[(&str, &[u8])], expect: Result<&str, &str>) {
    let dir = tempfile::tempdir().unwrap();
    for (file, bytes) in files {
        let file = dir.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    match (component(dir.path()), expect) {
        (Ok(found), Ok(expect)) => {
            assert_eq!(
                found.file.canonicalize().unwrap(),
                dir.path().canonicalize().unwrap().join(expect)
            );
        }
        (Err(error), Err(expect)) => {
            let text = format!("{error} {:?}", error.hints());
            assert!(text.contains(expect), "{text}");
        }
        (found, expect) => panic!("{found:?}, expected {expect:?}"),
    }
}

#[test]
fn a_project_has_one_component_where_it_is_built() {
    let component = COMPONENT_PREAMBLE.as_slice();
    check(&[], Err("build it first"));
    check(&[("a.wasm", component)], Ok("a.wasm"));
    check(&[("build/a.wasm", component)], Ok("build/a.wasm"));
    check(
        &[
            ("dist/module.wasm", MODULE),
            ("dist/a.wasm", component),
            ("dist/a.cwasm", component),
        ],
        Ok("dist/a.wasm"),
    );
    check(
        &[
            ("target/wasm32-wasip2/release/a.wasm", component),
            ("target/wasm32-wasip2/release/deps/a-1234.wasm", component),
            ("target/wasm32-wasip2/debug/a.wasm", component),
        ],
        Ok("target/wasm32-wasip2/release/a.wasm"),
    );
    check(
        &[("dist/a.wasm", component), ("b.wasm", component)],
        Err("dist/a.wasm"),
    );
    check(&[("a.wasm", MODULE)], Err("holds no component"));
    check(&[("a.wasm", b"\0asm")], Err("holds no component"));
}

#[test]
fn names() {
    let host = [PluginId("file".to_owned())];
    let longest = "x".repeat(48);
    for (given, file, expect) in [
        (None, "/p/Weather Report.wasm", Some("weather_report")),
        (None, "/p/my_plugin-2.wasm", Some("my_plugin-2")),
        (None, "/p/--x.wasm", Some("x")),
        (None, "/p/äö.wasm", None),
        (None, "/p/a__b.wasm", Some("a_b")),
        (Some("a__b"), "/p/x.wasm", None),
        (Some("a_"), "/p/x.wasm", None),
        (None, "/p/file.wasm", None),
        (None, "/p/---.wasm", None),
        (Some("a"), "/p/file.wasm", Some("a")),
        (Some("A"), "/p/x.wasm", None),
        (Some(""), "/p/x.wasm", None),
        (Some("../x"), "/p/x.wasm", None),
        (Some("file"), "/p/x.wasm", None),
        (Some(longest.as_str()), "/p/x.wasm", Some(longest.as_str())),
    ] {
        let named = name(given, &ComponentSource::of(file.into()), &host).ok();
        assert_eq!(
            named.map(|name| name.0).as_deref(),
            expect,
            "{given:?} {file}"
        );
    }
}

/// Rust writes `my_plugin.wasm` for the package `my-plugin`; it is one plugin, whichever directory it is built in.
#[test]
fn a_package_keeps_the_dashes_of_its_name() {
    if crate::author::cargo::tests::has_target_dir_variable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let manifest = "[package]\nname = \"my-plugin\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n";
    let settings = "[build]\ntarget-dir = \"../elsewhere\"\n";
    for (file, bytes) in [
        ("project/Cargo.toml", manifest.as_bytes()),
        ("project/src/lib.rs", b""),
        ("project/.cargo/config.toml", settings.as_bytes()),
        (
            "elsewhere/wasm32-wasip2/release/my_plugin.wasm",
            &COMPONENT_PREAMBLE,
        ),
        // Of another project that is built there, and of an earlier build.
        (
            "elsewhere/wasm32-wasip2/release/other.wasm",
            &COMPONENT_PREAMBLE,
        ),
        (
            "project/target/wasm32-wasip2/release/my_plugin.wasm",
            &COMPONENT_PREAMBLE,
        ),
    ] {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    let source = component(&root.join("project")).unwrap();
    let expect = root.join("elsewhere/wasm32-wasip2/release/my_plugin.wasm");
    assert_eq!(source.file.canonicalize().unwrap(), expect);
    assert_eq!(name(None, &source, &[]).unwrap().0, "my-plugin");
    let made = Artifact {
        file: expect,
        package: "my-plugin".to_owned(),
    };
    assert_eq!(name(None, &made.into(), &[]).unwrap().0, "my-plugin");
}
