//! New projects are whole or not there, under names that can be plugins. What they build is tested on the real toolchains, in
//! `tests/it/toolchains.rs`.

use std::fs;
use std::path::Path;

use zeph_core::manifest::Manifest;

use super::{Language, NewError, Template, new_project, next_steps};

/// Everything below `dir`, relative to it, files only.
fn tree(dir: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => files.push(path.strip_prefix(dir).unwrap().display().to_string()),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_project_has_what_it_says_and_its_name_in_it() {
    for language in Language::ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut said: Vec<_> = new_project(language, "my-count", dir.path())
            .unwrap()
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        said.sort();
        let folder = dir.path().join("my-count");
        assert_eq!(tree(&folder), said, "{language}");
        assert_eq!(
            tree(dir.path()).len(),
            said.len(),
            "{language}: a draft is left"
        );
        let mut all = String::new();
        for path in said.iter().filter(|path| !path.ends_with(".wasm")) {
            let text = fs::read_to_string(folder.join(path)).unwrap();
            for stand_in in ["PLUGIN_NAME", "RUST_NAME", "SDK_VERSION", "TOOL_PREFIX"] {
                assert!(!text.contains(stand_in), "{language}: {path}: {stand_in}");
            }
            all += &text;
        }
        assert!(all.contains("my-count"), "{language}");
        for wanted in ["README.md", ".gitignore", "plugin.toml"] {
            assert!(
                said.iter().any(|path| path == wanted),
                "{language}: {wanted}"
            );
        }
        let steps = next_steps(language, "my-count", dir.path());
        assert!(
            steps.starts_with(&format!("cd {}\n", folder.display())),
            "{steps}"
        );
        assert!(
            steps
                .lines()
                .last()
                .unwrap()
                .starts_with("zeph-host plugin add ")
        );
    }
}

#[test]
fn the_manifest_can_be_read_and_wants_little() {
    for language in Language::ALL {
        let files = language.files("count");
        let (_, text) = files
            .iter()
            .find(|(path, _)| *path == "plugin.toml")
            .unwrap();
        let manifest = Manifest::parse(text).unwrap();
        let wants: Vec<_> = manifest
            .wants
            .iter()
            .map(|want| want.capability.to_string())
            .collect();
        let expect = ["directory .:read", "variable WORDS_SKIP"];
        assert_eq!(wants, expect, "{language}");
    }
}

#[test]
fn tools_are_named_after_their_plugin() {
    let longest = "x-".repeat(24);
    for (name, prefix) in [
        ("weather", "weather"),
        ("my-plugin", "my_plugin"),
        (longest.as_str(), &"x_".repeat(24)[..39]),
    ] {
        for language in Language::ALL {
            let files = language.files(name);
            for tool in ["words", "file", "tree"] {
                let quoted = format!("\"{prefix}_{tool}\"");
                let has = |(_, text): &&(&str, String)| text.contains(&quoted);
                assert!(files.iter().any(|file| has(&file)), "{language}: {quoted}");
                assert!(zeph_core::id::ToolName::new(format!("{prefix}_{tool}")).is_ok());
            }
        }
    }
}

/// A file that is added to the SDK has to come with the projects.
#[test]
fn the_sdk_comes_whole_and_without_its_tests() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/zeph-plugin");
    let mut expected: Vec<_> = tree(&source.join("src"))
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs"))
        .map(|path| format!("zeph-plugin/src/{path}"))
        .collect();
    expected.push("zeph-plugin/Cargo.toml".to_owned());
    let files = Language::Rust.files("count");
    let mut vendored: Vec<_> = files
        .iter()
        .filter(|(path, _)| path.starts_with("zeph-plugin/"))
        .collect();
    for (path, text) in &vendored {
        assert!(!text.contains("mod tests;"), "{path}");
    }
    let bindings = vendored
        .iter()
        .find(|(path, _)| path.ends_with("bindings.rs"))
        .unwrap();
    assert!(bindings.1.contains(r#"path: "../wit""#), "{}", bindings.1);
    vendored.sort();
    expected.sort();
    let vendored: Vec<_> = vendored.iter().map(|(path, _)| *path).collect();
    assert_eq!(vendored, expected);
}

/// A project gets the SDK with the crates it is tested with.
#[test]
fn the_sdk_wants_what_the_workspace_has() {
    let workspace: toml::Table = include_str!("../../../../Cargo.toml").parse().unwrap();
    let files = Language::Rust.files("count");
    let manifest = "zeph-plugin/Cargo.toml";
    let (_, text) = files.iter().find(|(path, _)| *path == manifest).unwrap();
    let sdk: toml::Table = text.parse().unwrap();
    let version = &workspace["workspace"]["package"]["version"];
    assert_eq!(&sdk["package"]["version"], version);
    let own: toml::Table = include_str!("../../../../plugins/zeph-plugin/Cargo.toml")
        .parse()
        .unwrap();
    let names = |table: &toml::Table| -> Vec<String> {
        table["dependencies"]
            .as_table()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(names(&sdk), names(&own));
    for name in names(&sdk) {
        let wanted = &sdk["dependencies"][&name];
        assert_eq!(
            wanted, &workspace["workspace"]["dependencies"][&name],
            "{name}"
        );
    }
}

#[test]
fn names() {
    let longest = "a".repeat(48);
    for (language, name, good) in [
        (Language::C, "a", true),
        (Language::C, "word-count_2", true),
        (Language::C, longest.as_str(), true),
        (Language::C, "fn", true),
        (Language::C, &format!("{longest}a"), false),
        (Language::C, "", false),
        (Language::C, "2words", false),
        (Language::C, "-words", false),
        (Language::C, "Words", false),
        (Language::C, "wörter", false),
        (Language::C, "../words", false),
        (Language::C, "a/b", false),
        (Language::C, "a.b", false),
        (Language::C, "a b", false),
        (Language::C, "word__count", false),
        (Language::C, "words_", false),
        (Language::C, "file", false),
        (Language::Rust, "fn", false),
        (Language::Rust, "proc-macro", false),
        (Language::Rust, "serde", false),
        (Language::Rust, "words", true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let made = new_project(language, name, dir.path());
        assert_eq!(made.is_ok(), good, "{name:?}: {made:?}");
        assert_eq!(tree(dir.path()).is_empty(), !good, "{name:?}");
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_half_done() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("count");
    fs::create_dir(&folder).unwrap();
    new_project(Language::C, "count", dir.path()).unwrap();

    let before = tree(dir.path());
    let again = new_project(Language::Python, "count", dir.path());
    assert!(matches!(again, Err(NewError::NotEmpty(path)) if path == folder));
    assert_eq!(tree(dir.path()), before);

    fs::write(dir.path().join("taken"), "a file").unwrap();
    let on_a_file = new_project(Language::C, "taken", dir.path());
    assert!(
        matches!(on_a_file, Err(NewError::NotEmpty(_))),
        "{on_a_file:?}"
    );

    let nowhere = dir.path().join("nowhere");
    let error = new_project(Language::C, "count", &nowhere).unwrap_err();
    let told = format!("there is no directory `{}`", nowhere.display());
    assert_eq!(error.to_string(), told);
    assert!(!nowhere.exists());
}

#[test]
fn a_project_of_strategies_has_its_name_in_it_and_needs_no_manifest() {
    for language in [Language::Rust, Language::JavaScript, Language::Python] {
        let dir = tempfile::tempdir().unwrap();
        let template = Template::Filter(language);
        let mut said: Vec<_> = new_project(template, "my-filter", dir.path())
            .unwrap()
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        said.sort();
        let folder = dir.path().join("my-filter");
        assert_eq!(tree(&folder), said, "{language}");
        let mut all = String::new();
        for path in &said {
            all += &fs::read_to_string(folder.join(path)).unwrap();
        }
        for stand_in in ["PLUGIN_NAME", "RUST_NAME", "SDK_VERSION"] {
            assert!(!all.contains(stand_in), "{language}: {stand_in}");
        }
        assert!(all.contains("my-filter"), "{language}");
        assert!(said.iter().any(|path| path == "wit/filter.wit"));
    }
    let dir = tempfile::tempdir().unwrap();
    let refused = new_project(Template::Filter(Language::C), "my-filter", dir.path());
    assert!(
        matches!(refused, Err(NewError::NoTemplate(Language::C))),
        "{refused:?}"
    );
    assert!(tree(dir.path()).is_empty());
}

/// `plugin list`, and what a signature is compared with, have them from the component.
#[test]
fn every_build_writes_version_description_and_license() {
    let tools = Language::ALL.map(Template::Tools);
    let filters = [Language::Rust, Language::JavaScript, Language::Python].map(Template::Filter);
    for template in tools.into_iter().chain(filters) {
        let files = template.files("count").unwrap();
        for section in ["version", "description", "licenses"] {
            let quoted = format!("\"{section}\",");
            let has = |(_, text): &(&str, String)| text.contains(&quoted);
            assert!(files.iter().any(has), "{template:?}: {section}");
        }
    }
}

/// What stands beside the component in a build cannot have its name.
#[test]
fn no_name_is_that_of_a_part_of_the_build() {
    let files = Language::C.files("embedded");
    let (_, makefile) = files.iter().find(|(path, _)| *path == "Makefile").unwrap();
    let made: Vec<_> = makefile.match_indices("dist/").collect();
    for (at, _) in made {
        let rest = &makefile[at + "dist/".len()..];
        let is_apart = ["$(NAME).wasm", "parts", "test"]
            .iter()
            .any(|part| rest.starts_with(part));
        assert!(is_apart, "{}", rest.lines().next().unwrap());
    }
    let files = Template::Filter(Language::Rust).files("leave-out").unwrap();
    let (_, test) = files
        .iter()
        .find(|(path, _)| path.starts_with("tests/"))
        .unwrap();
    assert!(test.contains("use ::leave_out::{"), "{test}");
}
