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
fn a_command_behind_the_options_of_its_runner_is_seen() {
    check("runners");
}

/// Where the options are known, nothing else is taken for a command; what is a guess is never unknown.
#[test]
fn the_words_of_what_a_runner_runs_are_no_commands() {
    for (text, n_commands) in [
        ("npx prettier --write src", 2),
        ("npx --yes prettier --write .", 2),
        ("npx -p typescript tsc -p rm", 2),
        ("uv run pytest -k rm tests", 2),
        ("uv run --with x --extra dev pytest -k at", 2),
        ("uv run -m pytest -k rm", 2),
        ("poetry run python manage.py rm", 2),
        ("conda run -n base --no-capture-output python x.py at", 2),
        ("env-cmd -f .env node x.js at", 3),
        ("cargo run -- at x", 1),
        ("npm run test -- at", 1),
        ("git log run -- rm", 1),
        ("rg exec -- rm", 1),
        ("npx --unheard-of jest -t at", 3),
        ("npm exec jest -- at", 3),
        ("uv --directory run run pytest -k at", 3),
        ("bun run watch --unheard-of x", 2),
        ("bun run test --watch -- --at", 2),
        ("pnpm add at", 1),
        ("pnpm lint -- at", 2),
        ("kubectl exec pod -- at", 2),
    ] {
        let line = analyse(text);
        assert!(line.unknown.is_empty(), "{text}: {:?}", line.unknown);
        assert_eq!(line.commands.len(), n_commands, "{text}: {line:#?}");
    }
}

#[test]
fn a_variable_that_is_a_number_reads_its_value_as_one() {
    check("integers");
}

#[test]
fn a_variable_that_the_line_may_not_have_set_is_one_from_outside() {
    check("unset");
}

#[test]
fn elements_that_are_read_once_more_are_seen() {
    check("elements");
}

#[test]
fn what_a_program_reads_is_seen_wherever_it_is_redirected() {
    check("input");
}

#[test]
fn a_shell_is_told_what_to_run_in_every_way_it_knows() {
    check("shells");
}

#[test]
fn a_word_of_make_that_runs_more_than_the_makefile_is_seen() {
    check("make");
}

#[test]
fn a_variable_of_a_program_that_leads_it_elsewhere_is_seen() {
    check("environment");
}

#[test]
fn ordinary_settings_and_options_are_free() {
    for text in [
        "make -j8 CFLAGS=\"-O2 -g\" LDFLAGS=\"-L/x -ly\"",
        "make CC=clang CXX=\"ccache g++\"",
        "make test ARGS=\"-k foo\" V=1",
        "make VERSION=\"$(git describe --tags)\"",
        "cmake -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld .",
        "cmake -DCMAKE_CXX_FLAGS=\"-O2 -fsanitize=address\" .",
        "cmake -DENABLE_CPPCHECK=ON -DCMAKE_ARCHIVE_OUTPUT_DIRECTORY=lib .",
        "cmake -DCOMPILER_RT_BUILD=ON .",
        "cmake --build b -- -j4",
        "go build -ldflags '-s -w -X main.v=1 -extldflags \"-static\"' .",
        "git config --global alias.st status",
        "git -c protocol.file.allow=always submodule update --init",
        "git init --bare x.git",
        "gh repo clone x -- --depth 1",
        "sqlite3 -header -column app.db 'select * from t limit 5'",
        "sqlite3 app.db '.mode csv' '.headers on' 'select credit(1)'",
        "sqlite3 .app.db .schema",
        "vim -es -c 'set ts=4 sw=4 et' -c 'retab' -c 'wq' f",
        "vim -e -s f < /dev/null",
        "psql -c '\\copy t from x.csv csv'",
        "psql -c '\\dt'",
        "less +G f",
        "less +/error f",
        "sed ':a;N;$!ba;s/\\n/ /g' f",
        "sed '$a\\\nthe end' f",
        "tree -L 2 -I node_modules",
        "kubectl --kubeconfig ~/.kube/dev get pods",
        "convert a.png -resize 50% b.png",
        "ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 ./t",
        "TSAN_OPTIONS=halt_on_error=1 ctest",
        "GIT_TRACE=1 GIT_TRACE_CURL=1 git fetch",
        "PYTHONWARNINGS=ignore::DeprecationWarning pytest",
        "CHROME_BIN=/usr/bin/chromium ng test",
        "CC_x86_64_unknown_linux_gnu=clang cargo build",
        "ZIP=release.zip; zip -r \"$ZIP\" .",
        "OPTIND=1; RANDOM=42; SECONDS=0",
        "f() { local OPTIND; while getopts ab o; do :; done; }; f",
        "export MSG=\"(draft) $title\"",
        "x=(1 2); echo \"${!x[@]}\" ${!y*}",
        "declare -a x=($y)",
        "export x=\"$(date)\"",
        "[ \"$x\" ] && [ ! -f \"$y\" ]",
        "echo \"${#x} ${#@} ${#} ${#x[@]} ${#1}\"",
        "printf '%s' $'\\u2713 done'",
        "bash - x.sh",
        "cat < /dev/null > \"$f\"",
        "set -euo pipefail; shopt -s nullglob globstar extglob",
        "history | tail -5",
        "while read -r l; do echo \"$l\"; done <<< \"$x\"",
        "sqlite3 app.db < schema.sql",
        "cat a.sql b.sql | sqlite3 app.db",
    ] {
        let line = analyse(text);
        assert!(line.unknown.is_empty(), "{text}: {:?}", line.unknown);
    }
}

#[test]
fn a_pattern_may_be_no_word_where_those_without_a_match_are_dropped() {
    use zeph_core::command::Becomes;
    for (text, expected) in [
        ("rm x*", Becomes::Names),
        ("shopt -s nullglob; rm x*", Becomes::Words),
        ("rm ~/x*; shopt -s nullglob", Becomes::Words),
        ("bash -O nullglob -c 'rm [x]'", Becomes::Words),
    ] {
        let line = analyse(text);
        assert!(line.unknown.is_empty(), "{text}: {:?}", line.unknown);
        let rm = line.commands.iter().find(|command| command.name == "rm");
        let becomes: Vec<Becomes> = rm.unwrap().holes.iter().map(|hole| hole.becomes).collect();
        assert!(becomes.contains(&expected), "{text}: {becomes:?}");
        let is_other = |hole: &Becomes| *hole != expected && *hole != Becomes::Operand;
        assert!(!becomes.iter().any(is_other), "{text}: {becomes:?}");
    }
}

#[test]
fn a_start_up_file_needs_a_rule_of_its_own() {
    use zeph_core::command::Wraps;
    for text in ["bash --rcfile f -ic ls", "bash --init-file f -i -c ls"] {
        let line = analyse(text);
        let kinds: Vec<Wraps> = line.commands.iter().map(|c| c.wraps).collect();
        assert_eq!(kinds, [Wraps::WithEffect, Wraps::Nothing], "{text}");
    }
}

#[test]
fn a_file_is_not_known_whose_name_depends_on_the_locale() {
    for text in ["ls > $'a/\\xff/x'", "ls > $'a/\\u00e9/x'"] {
        let line = analyse(text);
        assert_eq!(line.redirections[0].target, None, "{text}");
    }
    let line = analyse("ls > $'a\\tb'; ls > $'\\c?x'");
    let targets: Vec<_> = line.redirections.iter().map(|r| r.target.clone()).collect();
    assert_eq!(
        targets,
        [Some("a\tb".to_owned()), Some("\u{7f}x".to_owned())]
    );
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
        "sed -nl 5 p f",
        "sed -n -- '/a/,/b/{=;p}' f",
        "sed -se 's/a/b/w /dev/stdout' -e '$!N' f",
        "sed 5q \"$f\"",
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
