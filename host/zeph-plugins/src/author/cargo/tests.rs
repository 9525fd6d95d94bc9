//! Where cargo puts a component, however it was told to.

use std::fs;
use std::path::Path;

use super::{Artifact, expected, made, package_of};

fn project(folder: &Path, name: &str) {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
}

/// Whether a variable says where everything is built, whatever the files of a test say; a test of those files then does nothing, and says so.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo, which the tests start, reads it too"
)]
pub(crate) fn has_target_dir_variable() -> bool {
    let is_set = std::env::var_os("CARGO_TARGET_DIR").is_some();
    if is_set {
        eprintln!("skipped: CARGO_TARGET_DIR says where projects are built");
    }
    is_set
}

#[test]
fn cargo_is_asked_where_a_component_will_be() {
    if has_target_dir_variable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let folder = root.join("members/my-plugin");
    project(&folder, "my-plugin");
    let artifact = |target: &str| Artifact {
        file: root
            .join(target)
            .join("wasm32-wasip2/release/my_plugin.wasm"),
        package: "my-plugin".to_owned(),
    };
    // A file of settings above the project says where.
    fs::create_dir(root.join(".cargo")).unwrap();
    let settings = "[build]\ntarget-dir = \"elsewhere\"\n";
    fs::write(root.join(".cargo/config.toml"), settings).unwrap();
    assert_eq!(expected(&folder).unwrap(), [artifact("elsewhere")]);

    // A workspace has one place, and its own root no package.
    fs::remove_file(root.join(".cargo/config.toml")).unwrap();
    project(&root.join("members/other"), "other");
    let workspace = "[workspace]\nmembers = [\"members/*\"]\nresolver = \"3\"\n";
    fs::write(root.join("Cargo.toml"), workspace).unwrap();
    assert_eq!(expected(&folder).unwrap(), [artifact("target")]);
    assert_eq!(expected(&root).unwrap().len(), 2);

    fs::write(folder.join("Cargo.toml"), "[package").unwrap();
    assert_eq!(expected(&folder), None);
}

#[test]
fn cargo_says_what_it_made() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().canonicalize().unwrap();
    project(&folder, "my-plugin");
    let line = |manifest: &Path, id: &str, kind: &str, file: &str| {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": manifest,
            "target": { "name": "my_plugin", "kind": [kind], "crate_types": [kind] },
            "filenames": ["/t/x.rlib", file],
        })
        .to_string()
    };
    let other = Path::new("/registry/other/Cargo.toml");
    let messages = [
        r#"{"reason":"build-script-executed","package_id":"x"}"#.to_owned(),
        "not JSON".to_owned(),
        line(other, "registry+x#other@1.0.0", "cdylib", "/t/other.wasm"),
        line(other, "registry+x#serde@1.0.0", "lib", "/t/serde.rlib"),
        line(
            &folder.join("Cargo.toml"),
            "path+file:///w/my-plugin#0.1.0",
            "cdylib",
            "/t/my_plugin.wasm",
        ),
    ];
    let artifact = Artifact {
        file: "/t/my_plugin.wasm".into(),
        package: "my-plugin".to_owned(),
    };
    assert_eq!(made(&folder, &messages.join("\n")), [artifact]);
    assert_eq!(
        package_of("path+file:///w/src#my-plugin@0.1.0"),
        "my-plugin"
    );
}
