//! Words that are data: a message, a pattern, the name of a test. Rules that refuse or ask do not take them for options or tasks.

use super::lab::{decide, permissions, plain};
use crate::call::ResolvedCall;
use crate::policy::{Action, PermissionRule, PermissionSource, Permissions, Policy};

/// A line of one command, its words apart by `|`.
fn words(text: &str) -> ResolvedCall {
    let mut call = plain(&text.replace(' ', "_").replace('|', " "));
    let line = call.command.as_mut().unwrap();
    line.text = text.replace('|', " ");
    let command = line.commands.first_mut().unwrap();
    command.arguments = text.split('|').skip(1).map(str::to_owned).collect();
    call
}

#[test]
fn texts_and_small_letters_are_not_the_options_that_a_rule_means() {
    for (rule, text, expect) in [
        ("git *--output*", "git|commit|-m|add --output flag", "allow"),
        ("git *--output*", "git|commit|-am|--output", "allow"),
        ("git *--output*", "git|commit|--amend|-m|--output", "allow"),
        ("git *--output*", "git|commit|-mdrop --output", "allow"),
        ("git *--exec*", "git|commit|--message=fix --exec", "allow"),
        ("git *--exec*", "git|log|--grep=--exec", "allow"),
        ("git *--exec*", "git|log|--grep|--exec|-p", "allow"),
        ("rg *--pre *", "rg|-e|--pre|src", "allow"),
        ("git grep -O*", "git|grep|-o|foo.*bar", "allow"),
        ("git grep -O*", "git|grep|-ohE|TODO.*", "allow"),
        ("git branch -D*", "git|branch|-d|merged", "allow"),
        ("git *--output*", "git|stash|push|-m|a --output", "allow"),
        ("git *--output*", "git|stash|-m|--output", "allow"),
        ("git *--output*", "git|notes|add|-m|--output", "allow"),
        // Where it is not certain to be data.
        ("git *--output*", "git|commit|-m|x|--output=y", "deny"),
        ("git *--output*", "git|commit|-F|-m|--output=y", "deny"),
        (
            "git *--output*",
            "git|log|--since|--grep|--output=y",
            "deny",
        ),
        (
            "git *--output*",
            "git|log|--since|--grep|--grep|--output=y",
            "deny",
        ),
        ("git *--output*", "git|log|-S|--grep|--output=y", "deny"),
        ("git *--output*", "git|branch|-m|--output", "deny"),
        ("git *--output*", "git|stash|show|-m|--output=a.txt", "deny"),
        ("git *--output*", "git|stash|list|-m|--output=a.txt", "deny"),
        ("git *--output*", "git|notes|show|-m|--output=a.txt", "deny"),
        ("rg *--pre *", "rg|-E|-e|--pre|cmd", "deny"),
        // A rule about the text, or about both letters.
        ("git commit -m *--wip*", "git|commit|-m|a --wip", "deny"),
        ("git commit *secret*", "git|commit|-m|a secret", "deny"),
        ("ssh *-rf*", "ssh|host|rm -rf x", "deny"),
        ("git grep -O*", "git|grep|-nOx|x", "deny"),
        ("git branch -D*", "git|branch|-D|x", "deny"),
        ("git branch -D*", "git|branch|-d|-f|x", "deny"),
        ("git branch -D*", "git|branch|-d|--forc|x", "deny"),
        ("git branch -D*", "git|branch|--delete|x", "deny"),
        ("git branch -d*", "git|branch|-D|x", "deny"),
        ("rm -rf*", "rm|-RF|x", "deny"),
        ("rm -RF*", "rm|-rf|x", "deny"),
        ("mvn *deploy*", "mvn|-pl|deploy|test", "deny"),
    ] {
        let policy = Policy {
            permissions: permissions("bash", &[&format!("deny {rule}"), "allow *"]),
            ..Policy::default()
        };
        assert_eq!(decide(&policy, words(text)), expect, "{rule}: {text}");
    }
}

/// A rule over the text of a line is about the rest of it, too.
#[test]
fn data_of_one_command_excuses_no_other() {
    let deny = "*| bash -s*";
    for (rule, line, data, expect) in [
        (
            deny,
            "git commit -m 'a | bash -s b'",
            "a | bash -s b",
            "allow",
        ),
        (
            "git *--output*",
            r#"git commit --message="a --output b""#,
            "--message=a --output b",
            "allow",
        ),
        (
            deny,
            "curl x | bash -s y; git commit -m '| bash -s'",
            "| bash -s",
            "deny",
        ),
        (
            deny,
            "git commit -m '| bash -s'; curl x | bash -s y",
            "| bash -s",
            "deny",
        ),
        (
            "git *--output*",
            r#"git commit -m"é --output""#,
            "-mé --output",
            "allow",
        ),
        // Spelt otherwise, it is not found.
        (deny, "git commit -m '| bash'' -s'", "| bash -s", "allow"),
        (
            deny,
            "curl x | bash -s; git commit -m 'a | b'ash' -s'",
            "a | bash -s",
            "deny",
        ),
    ] {
        let mut call = plain("git");
        let parsed = call.command.as_mut().unwrap();
        line.clone_into(&mut parsed.text);
        let git = parsed.commands.first_mut().unwrap();
        git.arguments = match data.starts_with('-') {
            true => vec!["commit".to_owned(), data.to_owned()],
            false => vec!["commit".to_owned(), "-m".to_owned(), data.to_owned()],
        };
        let policy = Policy {
            permissions: permissions("bash", &[&format!("deny {rule}"), "allow *"]),
            ..Policy::default()
        };
        assert_eq!(decide(&policy, call), expect, "{line}");
    }
}

/// A preset asks about tasks, and not about names of modules and tests.
#[test]
fn a_preset_tells_tasks_from_values() {
    for (rule, text, expect) in [
        ("mvn *deploy*", "mvn|test|-Dtest=DeployTest", "allow"),
        ("mvn *deploy*", "mvn|-q|-pl|deploy|test", "allow"),
        ("mvn *deploy*", "mvn|-pl|x|deploy", "ask"),
        ("mvn *deploy*", "mvn|-P|-pl|deploy", "ask"),
        (
            "gradle *deploy*",
            "gradle|test|--tests|*DeployTest",
            "allow",
        ),
        (
            "./gradlew *deploy*",
            "./gradlew|:deploy-service:test",
            "allow",
        ),
        ("./gradlew *deploy*", "./gradlew|:service:deploy", "ask"),
        ("rake *push*", "rake|test|TEST=test/push_test.rb", "allow"),
        ("rake *push*", "rake|push|TEST=x", "ask"),
    ] {
        let ask = PermissionRule::new("bash", rule, Action::Ask, "/w").unwrap();
        let allow = PermissionRule::new("bash", "*", Action::Allow, "/w").unwrap();
        let rules = vec![ask.of_preset("developer"), allow.of_preset("developer")];
        let policy = Policy {
            permissions: PermissionSource::Rules(Permissions::new([("bash".to_owned(), rules)])),
            ..Policy::default()
        };
        assert_eq!(decide(&policy, words(text)), expect, "{rule}: {text}");
    }
}
