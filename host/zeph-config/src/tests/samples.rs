//! The samples in `config/samples`: each valid one loads, each invalid one gives exactly the text beside it.

use std::fs;
use std::path::{Path, PathBuf};

use super::World;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");

fn samples(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(SAMPLES).join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.sort();
    assert!(!paths.is_empty(), "no samples in {folder}");
    paths
}

/// A sample whose name begins with `project-` is the project's file, any other the user's.
fn world(sample: &Path) -> World {
    let text = fs::read(sample).unwrap();
    let world = World::new().directory("home/src").directory("home/notes");
    let name = sample.file_name().unwrap().to_str().unwrap();
    if name.starts_with("project-") {
        world.project(text)
    } else {
        world.user(text)
    }
}

/// A sample that names places of another machine has its warnings beside it.
#[test]
fn every_valid_sample_loads_with_no_other_warning_than_those_beside_it() {
    for sample in samples("valid") {
        let world = world(&sample);
        let loaded = world
            .load()
            .unwrap_or_else(|errors| panic!("{}: {errors}", sample.display()));
        let beside = std::fs::read_to_string(sample.with_extension("txt")).unwrap_or_default();
        let warnings: String = loaded
            .warnings
            .iter()
            .map(|line| line.clone() + "\n")
            .collect();
        assert_eq!(warnings, beside, "{}", sample.display());
    }
}

#[test]
fn every_invalid_sample_gives_the_message_beside_it() {
    for sample in samples("invalid") {
        let errors = world(&sample).errors() + "\n";
        let beside = sample.with_extension("txt");
        #[expect(
            clippy::disallowed_methods,
            reason = "asks the person who runs the tests"
        )]
        if std::env::var_os("ZEPH_BLESS").is_some() {
            fs::write(&beside, &errors).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        assert_eq!(
            errors,
            expected,
            "{}; ZEPH_BLESS=1 writes the text anew",
            sample.display()
        );
    }
}

#[test]
fn no_expected_text_is_left_without_its_sample() {
    for entry in fs::read_dir(Path::new(SAMPLES).join("invalid")).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.with_extension("toml").exists(), "{}", path.display());
    }
}
