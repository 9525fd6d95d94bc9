//! The preset "developer": what a newcomer gets with one line, asked about the lines that agents write.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde_json::{Map, json};
use zeph_config::{Config, Flags, Surroundings};
use zeph_core::argument::Arguments;
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::policy::{Decision, Policy, SessionFacts, authorise};
use zeph_shell::analysis::analyse;

use super::{Here, places};
use crate::shell::Native;

const EVERYDAY: &str = include_str!("preset.txt");

/// Lines that belong together, each block behind what becomes of it.
const BLOCKS: &str = include_str!("preset_blocks.txt");

/// A home with a repository in it, and the rules of an operator.
struct Lab {
    _folder: tempfile::TempDir,
    home: PathBuf,
    policy: Policy,
}

impl Lab {
    fn new(user_file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        fs::create_dir_all(home.join("repo/.git")).unwrap();
        fs::create_dir_all(home.join("repo/src")).unwrap();
        fs::write(home.join("config.toml"), user_file).unwrap();
        let surroundings = Surroundings {
            env: BTreeMap::new(),
            working_directory: home.join("repo"),
            typed_directory: None,
            config_home: None,
            data_home: None,
            state_home: None,
            cache_home: None,
            cores: NonZeroUsize::MIN,
            home: Some(home.clone()),
        };
        let flags = Flags {
            config: Some(home.join("config.toml")),
            set: [
                "store.path=:memory:",
                "tools.audit.file=none",
                "engine.cache_dir=none",
            ]
            .map(str::to_owned)
            .to_vec(),
            ..Flags::default()
        };
        let config = Config::load(&surroundings, &flags).unwrap().config;
        let policy = config.rules.policy;
        Self {
            _folder: folder,
            home,
            policy,
        }
    }

    /// What the rules say of a line, and by which of them.
    fn decide(&self, text: &str) -> (&'static str, String) {
        let mut line = analyse(text);
        line.places = places(
            &line,
            Here {
                directory: &self.home.join("repo"),
                home: Some(&self.home),
                has_private_tmp: true,
                kept: &[],
                looks_at_words: false,
            },
        );
        let mut tools = Native::tools().into_iter();
        let values = Map::from_iter([("command".to_owned(), json!(text))]);
        let call = ResolvedCall {
            frame: CallFrame::alone(),
            tool: tools
                .find(|tool| tool.name.as_str() == "bash")
                .unwrap()
                .into(),
            arguments: Arguments {
                values,
                notes: Vec::new(),
            },
            paths: Vec::new(),
            command: Some(line),
            can_change: true,
            files: FileFacts::default(),
        };
        let decision = authorise(&self.policy, &SessionFacts::default(), call);
        let word = match &decision {
            Decision::Allow(_) => "allow",
            Decision::Ask(_) => "ask",
            Decision::Deny(_) => "deny",
        };
        (word, decision.rule().to_owned())
    }
}

#[test]
fn everyday_commands_of_agents_under_the_preset() {
    let lab = Lab::new("tools.permissions_preset = \"developer\"");
    let lines = EVERYDAY
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut n_cases = 0;
    let mut wrong = Vec::new();
    for line in lines {
        let (expect, text) = line.split_once(' ').unwrap();
        let (found, rule) = lab.decide(text.trim());
        n_cases += 1;
        if found != expect {
            wrong.push(format!("{line}: {found} by {rule}"));
        }
    }
    assert!(n_cases >= 100, "{n_cases} cases");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn several_lines_at_once_under_the_preset() {
    let lab = Lab::new("tools.permissions_preset = \"developer\"");
    let blocks: Vec<_> = BLOCKS.split("\n%%\n").collect();
    assert!(blocks.len() >= 60, "{} blocks", blocks.len());
    let mut wrong = Vec::new();
    for block in blocks {
        let (expect, text) = block.split_once('\n').unwrap();
        let (found, rule) = lab.decide(text.trim_end());
        if found != expect {
            wrong.push(format!("{block}\n=> {found} by {rule}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn rules_of_the_operator_come_before_a_preset() {
    let lab = Lab::new(
        "[tools]\npermissions_preset = \"developer\"\n\
         [[tools.permissions.bash]]\npattern = \"cargo test *\"\naction = \"deny\"\n\
         [[tools.permissions.shell]]\npattern = \"rm -rf target\"\naction = \"allow\"\n",
    );
    let table = [
        ("cargo test", "deny"),
        ("cargo build", "allow"),
        ("rm -rf target", "allow"),
    ];
    for (text, expect) in table {
        assert_eq!(lab.decide(text).0, expect, "{text}");
    }
    let (_, rule) = lab.decide("cargo build");
    assert!(
        rule.contains("permissions_preset \"developer\" `cargo build *`"),
        "{rule}"
    );
}

#[test]
fn no_preset_is_used_unless_it_is_named() {
    assert_eq!(Lab::new("").decide("cargo build").0, "ask");
}
