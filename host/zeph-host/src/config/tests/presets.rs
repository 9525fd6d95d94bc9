//! The preset "developer": what a newcomer gets with one line.

use zeph_core::policy::{Decision, Policy, SessionFacts, authorise};
use zeph_shell::analysis::analyse;

use super::World;
use super::rules::resolved;
use crate::path::line::{Here, places};

const EVERYDAY: &str = include_str!("preset.txt");

fn decide(world: &World, policy: &Policy, text: &str) -> (&'static str, String) {
    let mut line = analyse(text);
    let repo = world.repo();
    line.places = places(
        &line,
        Here {
            directory: &repo,
            home: Some(&world.home()),
            has_private_tmp: true,
            looks_at_words: false,
        },
    );
    let mut call = resolved("bash", text);
    call.command = Some(line);
    let decision = authorise(policy, &SessionFacts::default(), call);
    let word = match &decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    };
    (word, decision.rule().to_owned())
}

#[test]
fn everyday_commands_of_agents_under_the_preset() {
    let world = World::new().user("tools.permissions_preset = \"developer\"");
    let policy = world.config().rules.policy;
    let lines = EVERYDAY
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut n_cases = 0;
    let mut wrong = Vec::new();
    for line in lines {
        let (expect, text) = line.split_once(' ').unwrap();
        let (found, rule) = decide(&world, &policy, text.trim());
        n_cases += 1;
        if found != expect {
            wrong.push(format!("{line}: {found} by {rule}"));
        }
    }
    assert!(n_cases >= 100, "{n_cases} cases");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_of_the_operator_come_before_a_preset() {
    let world = World::new().user(
        "[tools]\npermissions_preset = \"developer\"\n\
         [[tools.permissions.bash]]\npattern = \"cargo test *\"\naction = \"deny\"\n\
         [[tools.permissions.shell]]\npattern = \"rm -rf target\"\naction = \"allow\"\n",
    );
    let policy = world.config().rules.policy;
    let table = [
        ("cargo test", "deny"),
        ("cargo build", "allow"),
        ("rm -rf target", "allow"),
    ];
    for (text, expect) in table {
        assert_eq!(decide(&world, &policy, text).0, expect, "{text}");
    }
    let (_, rule) = decide(&world, &policy, "cargo build");
    assert!(
        rule.contains("permissions_preset \"developer\" `cargo build *`"),
        "{rule}"
    );
}

#[test]
fn no_preset_is_used_unless_it_is_named() {
    let policy = World::new().config().rules.policy;
    assert_eq!(decide(&World::new(), &policy, "cargo build").0, "ask");
    let errors = World::new()
        .user("tools.permissions_preset = \"develop\"")
        .errors();
    assert!(errors.contains("developer"), "{errors}");
    let project = World::new()
        .project("tools.permissions_preset = \"developer\"")
        .errors();
    assert!(
        project.contains("a project file may not set this"),
        "{project}"
    );
}
