use std::path::Path;

use zeph_core::command::CommandLine;

use super::{CaseInputs, CaseOutcome};
use crate::command::tests::line;
use crate::{BUILTIN, Filters, NoForeign};

fn analyse(command: &str) -> CommandLine {
    line(command, &[])
}

/// Reads what stands beside the built-in rules.
fn recorded(path: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filters/rules");
    std::fs::read(folder.join(path)).ok()
}

const INPUTS: CaseInputs<'static> = CaseInputs {
    analyse: &analyse,
    read: &recorded,
    foreign: &NoForeign,
};

fn verify(text: &str) -> Vec<CaseOutcome> {
    let (filters, _) = Filters::load(&[], Some(("mine.toml", text)));
    filters.verify(("mine.toml", text), INPUTS).0
}

#[test]
fn every_builtin_rule_holds_on_its_recorded_outputs() {
    let (filters, warnings) = Filters::load(BUILTIN, None);
    assert_eq!(warnings, []);
    let mut problems = Vec::new();
    for file in BUILTIN {
        let rule = file
            .0
            .trim_start_matches("filters/rules/")
            .trim_end_matches(".toml");
        let (outcomes, warnings) = filters.verify(*file, INPUTS);
        assert_eq!(warnings, []);
        if !outcomes
            .iter()
            .any(|outcome| outcome.rules.iter().any(|name| name == rule))
        {
            problems.push(format!("no case of `{rule}` makes it act"));
        }
        for outcome in outcomes {
            println!(
                "{rule:16} {:60} {:5.1}% {:?}",
                outcome.name,
                outcome.saved * 100.0,
                outcome.rules
            );
            problems.extend(
                outcome
                    .problems
                    .iter()
                    .map(|problem| format!("{rule}: {}: {problem}", outcome.name)),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

const RULE: &str = "[[rules]]\nname = 'a'\nmatch = { prefix = 'tool' }\nstrategy = { type = 'keep_matching', patterns = ['keep'] }\n";

fn check(case: &str, problem: Option<&str>) {
    let input = format!("keep\n{}", "noise noise noise noise\n".repeat(40));
    let text =
        format!("{RULE}[[tests]]\nname = 'x'\ncommand = 'tool'\ninput = '''\n{input}'''\n{case}\n");
    let outcomes = verify(&text);
    let problems: Vec<_> = outcomes[0].problems.iter().map(String::as_str).collect();
    assert_eq!(problems, problem.into_iter().collect::<Vec<_>>(), "{case}");
}

#[test]
fn a_case_says_what_does_not_hold() {
    check("contains = ['keep']", None);
    check("contains = ['lost']", Some("`lost` is missing"));
    check("lacks = ['keep']", Some("`keep` is still there"));
    check("saved_min = 0.9", None);
    check("saved_min = 0.999", Some("97.0% is saved, 99.9% is wanted"));
    check("expect = 'keep'", Some("the text is not as expected"));
    check("expect = \"keep\\n[zeph] 40 lines omitted\"", None);
}

#[test]
fn a_case_that_is_too_short_to_be_filtered_says_so() {
    let case = "[[tests]]\nname = 'x'\ncommand = 'tool'\ninput = 'noise'\n";
    let short = |says: &str| verify(&format!("{RULE}{case}{says}\n"));
    assert_eq!(short("contains = ['noise']")[0].problems, [""; 0]);
    let told = [
        "`noise` is still there",
        "the output has 5 bytes; below 400 nothing is filtered",
    ];
    assert_eq!(short("lacks = ['noise']")[0].problems, told);
}

#[test]
fn a_case_has_one_output() {
    for (inputs, problem) in [
        ("", "it needs an `input`, or an `input_file`"),
        (
            "input = 'a'\ninput_file = 'make.toml'",
            "it has both `input` and `input_file`: leave one of them out",
        ),
        (
            "input_file = 'no_such.txt'",
            "its `input_file` `no_such.txt` cannot be read",
        ),
    ] {
        let text = format!("{RULE}[[tests]]\nname = 'x'\ncommand = 'tool'\n{inputs}\n");
        assert_eq!(verify(&text)[0].problems, [problem]);
    }
}

#[test]
fn a_strategy_that_does_not_work_fails_the_test_whatever_the_text() {
    let input = "noise noise noise noise\n".repeat(40);
    let text = format!(
        "[[rules]]\nname = 'a'\nmatch = {{ prefix = 'tool' }}\nstrategy = {{ type = 'wasm:mine' }}\n\
         [[tests]]\nname = 'x'\ncommand = 'tool'\ninput = '''\n{input}'''\ncontains = ['noise']\n"
    );
    let problems = &verify(&text)[0].problems;
    assert_eq!(
        problems,
        &["rule `a`: no plugin offers a strategy `mine`".to_owned()]
    );
}

/// Whether a test needs the rule or not.
#[test]
fn a_rule_whose_strategy_cannot_be_made_is_a_problem_of_the_file() {
    let text = "[[rules]]\nname = 'a'\nmatch = { prefix = 'tool' }\nstrategy = { type = 'wasm:mine/own' }\n";
    let (filters, _) = Filters::load(&[], Some(("mine.toml", text)));
    let (outcomes, warnings) = filters.verify(("mine.toml", text), INPUTS);
    assert_eq!(outcomes, []);
    let told = "mine.toml: rule `a` is not used: no plugin offers a strategy `mine/own`";
    assert_eq!(warnings[0].to_string(), told);
}
