//! The guide for authors says what is true: its code is that of the templates, which are built and called elsewhere.

use zeph_core::capability::LimitName;
use zeph_core::manifest::Manifest;

use super::Language;

const GUIDE: &str = include_str!("../../../../plugins/README.md");

/// The blocks of code with this mark.
fn blocks(mark: &str) -> Vec<&'static str> {
    let begin = format!("```{mark}\n");
    let blocks = GUIDE.split(&begin).skip(1);
    blocks
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

#[test]
fn code_is_that_of_the_templates() {
    for (mark, language) in [
        ("rust", Language::Rust),
        ("js", Language::JavaScript),
        ("python", Language::Python),
        ("c", Language::C),
    ] {
        let files = language.files("count");
        let blocks = blocks(mark);
        assert!(!blocks.is_empty(), "{language}");
        for block in blocks {
            let is_there = files.iter().any(|(_, text)| text.contains(block));
            assert!(is_there, "no file of the template holds:\n{block}");
        }
    }
}

#[test]
fn commands_are_those_of_the_templates() {
    let shell = blocks("sh").join("\n");
    for language in Language::ALL {
        let commands = language.commands("count");
        let (add, others) = commands.split_last().unwrap();
        assert!(add.starts_with("zeph-host plugin add "), "{add}");
        for command in others {
            let is_there = shell.lines().any(|line| line.starts_with(command.as_str()));
            assert!(is_there, "{language}: {command}");
        }
    }
}

#[test]
fn the_manifest_can_be_read_and_begins_as_a_new_one_does() {
    let mut manifests = blocks("toml");
    // The others are of the configuration of an operator.
    manifests.retain(|block| !block.contains("[plugins.") && !block.contains("[[plugins."));
    let [manifest] = manifests[..] else {
        panic!("one manifest is shown")
    };
    let wants = Manifest::parse(manifest).unwrap().wants;
    let kinds: Vec<_> = wants
        .iter()
        .map(|want| want.capability.to_string())
        .collect();
    let kinds: Vec<_> = kinds
        .iter()
        .filter_map(|text| text.split(' ').next())
        .collect();
    assert_eq!(
        kinds,
        [
            "directory",
            "host",
            "program",
            "variable",
            "limit",
            "secret",
            "embedder",
            "tool"
        ]
    );

    let files = Language::C.files("count");
    let new = files.iter().find(|(path, _)| *path == "plugin.toml");
    let (_, first) = new.unwrap().1.split_once("\n\n").unwrap();
    assert!(manifest.starts_with(first.trim_end()), "{first}");
}

#[test]
fn every_limit_is_there_with_its_default() {
    let defaults: toml::Table = include_str!("../../../../config/default.toml")
        .parse()
        .unwrap();
    for limit in LimitName::ALL {
        let default = &defaults["limits"][limit.as_str()];
        let row = format!("| `{limit}` | {default} |");
        assert!(GUIDE.contains(&row), "{row}");
    }
}

#[test]
fn the_page_of_each_project_has_its_commands() {
    for language in Language::ALL {
        let files = language.files("count");
        let readme = &files
            .iter()
            .find(|(path, _)| *path == "README.md")
            .unwrap()
            .1;
        for command in language.commands("count") {
            assert!(readme.contains(&command), "{language}: {command}");
        }
    }
}
