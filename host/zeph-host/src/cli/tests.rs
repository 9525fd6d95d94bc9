use clap::{ColorChoice, Command, CommandFactory as _, Parser as _};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::Outcome;

use super::args::CliArgs;
use super::error::CliError;
use super::exit::Exit;
use super::help::CALL_LONG;
use super::{color_typed, meant_command};

/// The table of `zeph-host call --help`.
#[test]
fn every_category_has_its_exit_code() {
    let before = ErrorPhase::ParamHandling;
    let during = ErrorPhase::Execution;
    let table = [
        (ErrorCategory::ToolNotFound, ErrorPhase::Setup, 2),
        (ErrorCategory::InvalidParameters, before, 2),
        (ErrorCategory::TypeMismatch, before, 2),
        (ErrorCategory::InvalidParameters, during, 1),
        (ErrorCategory::TypeMismatch, during, 1),
        (ErrorCategory::PolicyBlocked, during, 4),
        (ErrorCategory::ConfirmationRequired, ErrorPhase::Setup, 5),
        (ErrorCategory::PermanentFailure, during, 1),
        (ErrorCategory::Cancelled, during, 130),
        (ErrorCategory::RateLimited, during, 1),
        (ErrorCategory::ServerError, during, 1),
        (ErrorCategory::NetworkError, during, 1),
        (ErrorCategory::Timeout, during, 124),
    ];
    for (category, phase, expect) in table {
        let outcome = Outcome::Failed(ToolFailure::new(category, phase, "x"));
        assert_eq!(Exit::of(&outcome).code(), expect, "{category}");
    }
    assert_eq!(Exit::of(&Outcome::Done).code(), 0);
}

#[test]
fn colour_is_found_before_anything_is_parsed() {
    let table: [(&[&str], ColorChoice); 6] = [
        (&["run"], ColorChoice::Auto),
        (&["--color", "always", "run"], ColorChoice::Always),
        (&["run", "--color=never"], ColorChoice::Never),
        (&["run", "--color"], ColorChoice::Auto),
        (&["--color=purple"], ColorChoice::Auto),
        (&["call", "t", "--", "--color=never"], ColorChoice::Auto),
    ];
    for (typed, expect) in table {
        let typed: Vec<_> = typed.iter().map(Into::into).collect();
        assert_eq!(color_typed(&typed), expect, "{typed:?}");
    }
}

/// An agent takes the exit code of a usage error for a veto.
#[test]
fn a_hook_is_meant_wherever_its_line_is_wrong() {
    let table = [
        ("--no-projet hook claude pre-tool-use", true),
        ("--color=purple hook claude pre-tool-use", true),
        ("-vx hook claude pre-tool-use", true),
        ("hook claude pre-tool-use --no-such-option", true),
        ("hook --no-such-option", true),
        ("--root hook hook --no-such-option", true),
        ("--root run --no-projet hook claude pre-tool-use", true),
        ("--no-projet --root run hook claude pre-tool-use", true),
        ("--no-projet --set run hook claude pre-tool-use", true),
        ("--no-projet --root=run hook claude pre-tool-use", true),
        ("--no-projet --root hook run", false),
        ("--no-projet -q run hook", false),
        ("call hook --no-such-option", false),
        ("--bogus call bash hook", false),
        ("--no-projet explain hook path=x", false),
        ("--color=purple plugin remove hook", false),
        ("--no-projet call read -- hook", false),
        ("run --jsn", false),
    ];
    for (line, expect) in table {
        let typed: Vec<_> = std::iter::once("zeph-host")
            .chain(line.split(' '))
            .map(Into::into)
            .collect();
        let is_hook = meant_command(&typed).as_deref() == Some("hook");
        assert_eq!(is_hook, expect, "{line}");
    }
}

#[test]
fn command_lines_that_are_understood() {
    for line in [
        "run",
        "run --calls f -j 4 --allow write:src/** --allow edit",
        "--root a run --root b --set limits.cpu_secs=5",
        "call read path=a limit=5",
        "call read --json {} -o json",
        "call read path=a=b -- path=-x",
        "tools",
        "tools --json",
        "tools list --json",
        "tools show read",
        "config",
        "config show --origin --json",
        "config check",
        "config check f.toml",
        "config check f.toml --json",
        "audit",
        "audit -n 3 -f",
        "audit tail -n 3",
        "audit query --tool read --since 2h --unfinished --json",
        "conversations delete 01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10",
        "plugin",
        "plugin --json",
        "plugin list --json",
        "plugin info x",
        "plugin check x.wasm --no-run --json",
        "plugin add x --name y --replace --yes",
        "plugin remove x -y",
        "plugin grant x --dir a:read --dir b --host h --program p --variable V --limit handles=5 --once",
        "plugin grant x --all --until 2026-12-31",
        "plugin revoke x --id 3 --id 4 --dir a",
        "plugin suggest x --from f --include-untrusted --beyond-grants --json",
        "plugin approve x --yes --json",
        "policy suggest --from f --json",
        "grants --unused 30d --json",
        "replay 01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10 --from f --json",
        "replay 01938c2e-5a51 --from f",
        "run --record f",
        "serve --record f",
        "acp --record f",
        "call read path=a --record f",
        "plugin disable x",
        "plugin enable x --json",
        "plugin new --lang js x --dir d",
        "plugin dev x --approve",
        "approve",
        "approve k7m2x9qd --session --yes --json",
        "approve bash --always",
        "approve --last --deny",
        "approve k7m2x9qd --rule --write -y",
        "approve --revoke k7m2x9qd",
        "approve --list --json",
        "revoke 01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10 --json",
        "forgive",
        "forgive 12 --json",
        "explain bash command=ls timeout=5 --as-person --allow bash:ls*",
        "explain bash --args {} --json",
        "policy check",
        "policy check f.toml --json",
        "serve --http 8080 --allow-host tools.example.com --allow write",
        "serve --http 0.0.0.0:8080",
        "token",
        "token --json",
        "token add ci --tools read,file__* --expires 30d --rate 60",
        "token list --json",
        "token revoke ci",
        "trust",
        "trust --json",
        "trust list --json",
        "trust reset plugin:weather",
        "trust set weather__forecast blocked --json",
        "policy report --since 7d --json",
        "plugin grant weather --host a.example --mode observe",
        "secret",
        "secret --json",
        "secret set GH_TOKEN",
        "secret list --json",
        "secret rm GH_TOKEN --json",
        "doctor --json",
        "filter -- cargo test --workspace",
        "filter --as cargo --exit-code -1 --keep",
        "filter --read x",
        "filters",
        "filters --json",
        "filters show cargo-test --json",
        "filters test f.toml",
        "filters verify --json",
        "filters why -- cargo test --json",
        "stats --json",
        "hook claude post-tool-use",
        "hook anything",
        "run --ask --jsonl",
        "completions bash",
        "man",
        "-vv tools",
    ] {
        let words = std::iter::once("zeph-host").chain(line.split(' '));
        if let Err(error) = CliArgs::try_parse_from(words) {
            panic!("{line}: {error}");
        }
    }
    for line in [
        "",
        "rnu",
        "call",
        "-v -q tools",
        "conversations delete x",
        "run --jobs -1",
        "plugin lsit",
        "serve --http example.com:80",
        "serve --http 8080 --stdio",
        "serve --allow-host tools.example.com",
        "token add",
        "token add ci --rate 0",
        "trust set weather__forecast",
        "trust set weather__forecast half",
        "trust reset",
        "plugin grant weather --all --mode allow",
        "secret set",
        "secret set GH_TOKEN value",
        "token add ci --rate -1",
        "plugin grant",
        "plugin suggest x",
        "policy suggest",
        "replay x --from f",
        "replay 01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10",
        "plugin grant x --once --until 2026-12-31",
        "plugin grant x --session x",
        "plugin revoke x --id three",
        "approve k7m2x9qd --session --always",
        "approve k7m2x9qd --last",
        "approve k7m2x9qd --write",
        "approve k7m2x9qd --deny --always",
        "approve --revoke x",
        "approve --deny",
        "approve --always --yes",
        "approve --session",
        "approve --rule --write",
        "approve --yes",
        "approve --list --deny",
        "approve --list --yes",
        "approve --list --rule",
        "approve --revoke k7m2x9qd --deny",
        "approve --revoke k7m2x9qd --always",
        "approve --revoke k7m2x9qd --session",
        "approve --revoke k7m2x9qd --last",
        "approve --revoke k7m2x9qd --yes",
        "revoke",
        "forgive x",
        "explain",
        "explain bash a=b --args {}",
        "policy",
        "filter",
        "filter --exit-code 1 -- true",
        "filter --as x -- true",
        "filters why",
        "plugin new x",
        "plugin new --lang cobol x",
    ] {
        let words =
            std::iter::once("zeph-host").chain(line.split(' ').filter(|word| !word.is_empty()));
        assert!(CliArgs::try_parse_from(words).is_err(), "{line}");
    }
}

/// The help of a command shows its use.
#[test]
fn every_help_teaches_by_example() {
    let mut program = CliArgs::command();
    program.build();
    teaches(&mut program, "zeph-host");
    let plugin = program.find_subcommand_mut("plugin").unwrap();
    teaches(plugin, "zeph-host plugin");
}

/// Every command below `parent` has an example of itself.
fn teaches(parent: &mut Command, path: &str) {
    let commands = parent.get_subcommands_mut();
    for command in commands.filter(|command| command.get_name() != "help") {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "{help}");
        assert!(
            help.contains(&format!("{path} {}", command.get_name())),
            "{help}"
        );
    }
}

/// The words of a parser say nothing to who typed the line.
#[test]
fn what_is_no_id_is_told_what_lists_them() {
    for (line, told) in [
        ("forgive abc", "`zeph-host forgive` lists them"),
        (
            "conversations delete 123",
            "`zeph-host conversations` lists them",
        ),
        ("plugin grant x --session x", "wanted a whole ID"),
    ] {
        let words = std::iter::once("zeph-host").chain(line.split(' '));
        let error = CliArgs::try_parse_from(words).unwrap_err().to_string();
        assert!(error.contains(told), "{line}: {error}");
    }
}

/// A line that is longer than the help is wide would be broken a second time, within its sentence.
#[test]
fn lines_of_help_are_broken_once() {
    let mut program = CliArgs::command();
    program.build();
    fits(&program);
}

fn fits(command: &Command) {
    let texts = [command.get_after_help(), command.get_after_long_help()];
    for text in texts.into_iter().flatten() {
        let text = text.to_string();
        let too_long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(too_long, None, "{}", command.get_name());
    }
    command.get_subcommands().for_each(fits);
}

/// Where a help sends its reader is a command, and says what it is said to say.
#[test]
fn help_refers_to_help_that_is_there() {
    let mut program = CliArgs::command();
    program.build();
    let (mut n_found, mut commands) = (0, vec![&program]);
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        let text = command.get_after_long_help().map(ToString::to_string);
        // A reference may be broken over two lines.
        let text = text.unwrap_or_default().replace('\n', " ");
        for quoted in text.split('`') {
            let named = quoted.strip_prefix("zeph-host ");
            let Some(named) = named.and_then(|named| named.strip_suffix(" --help")) else {
                continue;
            };
            n_found += 1;
            let found = named
                .split(' ')
                .try_fold(&program, |command, name| command.find_subcommand(name));
            assert!(found.is_some(), "{}: {quoted}", command.get_name());
        }
    }
    assert!(n_found > 1, "no reference was found");
    // `serve --help` sends its reader there for them.
    for category in ErrorCategory::ALL.map(ErrorCategory::label) {
        assert!(CALL_LONG.contains(category), "{category}");
    }
}

#[test]
fn an_error_says_each_thing_once() {
    let error = CliError::stdout(std::io::Error::other("the disk is full"));
    assert_eq!(error.problems, ["standard output cannot be written"]);
    assert_eq!(error.causes(), ["the disk is full"]);
    assert_eq!(error.exit(), Exit::Failure);
    let pipe = CliError::stdout(std::io::ErrorKind::BrokenPipe.into());
    assert_eq!(pipe.exit().code(), 141);
}
