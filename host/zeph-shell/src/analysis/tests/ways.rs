//! Classes of ways to have something run unseen, each with every member that is known.

use super::{analyse, corpus, is_seen};

fn check(class: &str) {
    let classes = include_str!("ways.txt").split("# ").skip(1);
    let lines = classes.filter_map(|text| text.split_once('\n'));
    let lines = lines
        .filter(|(name, _)| *name == class)
        .map(|(_, lines)| lines);
    let cases: Vec<_> = lines.flat_map(corpus::bypasses).collect();
    assert!(cases.len() >= 7, "{} cases", cases.len());
    let seen = |(text, expected): &(String, String)| is_seen(&analyse(text), expected);
    let missed: Vec<_> = cases.iter().filter(|case| !seen(case)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_variable_that_decides_what_runs_is_seen_however_it_is_set() {
    check("variables");
}

#[test]
fn a_subscript_is_seen_wherever_it_is_run() {
    check("subscripts");
}

#[test]
fn a_language_of_a_program_is_read_in_brackets_and_on_standard_input() {
    check("languages");
}

#[test]
fn an_option_that_leads_to_a_program_is_seen() {
    check("options");
}

#[test]
fn a_command_is_seen_under_its_usual_name_too() {
    check("names");
}

#[test]
fn statements_without_commands_are_known() {
    for text in [
        "sqlite3 app.db 'select 1'",
        "sqlite3 app.db .tables",
        "sqlite3 app.db <<< 'select count(*) from users'",
        "sqlite3 app.db < schema.sql",
        "cat schema.sql | sqlite3 app.db",
        "echo '.tables' | sqlite3 app.db",
        "sqlite3 app.db <<'E'\n.mode column\nselect 1;\nE",
        "psql -d app -c 'select 1'",
        "psql -d app < schema.sql",
        "mysql app <<< 'select 1'",
        "ex -s f <<< '%s/a/b/g'",
        "sed 's/[^/]*$//' f",
        "sed -n '/[[:space:]]/p' f",
        "wait $pid; wait -n",
        "read -ra words < f",
        "printf '%s\\n' \"$x\"",
        "printf \"$x\\n\"",
        "exec {log}>/dev/null",
        "declare -n r=values; r=1",
        "[ \"$x\" -eq 1 ]",
        "set -- \"$@\"",
        "shopt -s nullglob globstar",
        "env -S 'A=1 tool'",
    ] {
        let line = analyse(text);
        assert!(line.unknown.is_empty(), "{text}: {:?}", line.unknown);
    }
}
