//! Options that tell a program what to run, compared with a list that was made from manuals and not from the tables.

use super::super::analyse;

const OPTIONS: &str = include_str!("options.txt");

/// Whether something is unknown, or a command of its own needs a rule.
fn shows(line: &str) -> bool {
    let analysed = analyse(line);
    let mut commands = analysed.commands.iter();
    !analysed.unknown.is_empty()
        || commands.any(|command| ["evil", "evil.so"].contains(&command.base_name()))
}

/// The lines of a section.
fn section(name: &str) -> impl Iterator<Item = &'static str> {
    let section = OPTIONS.split(&format!("[{name}]\n")).nth(1);
    let lines = section.unwrap_or_default().lines();
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty())
}

/// A line with the value in the same word as the option, and in the next.
fn forms(line: &str) -> Vec<String> {
    let option = line.rsplit(' ').next().unwrap_or_default();
    match option {
        _ if option.starts_with("--") => {
            vec![format!("{line}=./evil x"), format!("{line} ./evil x")]
        }
        _ => vec![format!("{line} ./evil x")],
    }
}

#[test]
fn an_option_that_says_what_to_run_is_never_a_part_of_a_harmless_command() {
    let lines: Vec<String> = section("asks").flat_map(forms).collect();
    assert!(lines.len() > 150, "{}", lines.len());
    let hidden: Vec<String> = lines.into_iter().filter(|line| !shows(line)).collect();
    assert_eq!(hidden, Vec::<String>::new());
}

#[test]
fn options_that_only_sound_like_commands_are_free() {
    let stopped =
        section("free").flat_map(|line| [format!("{line}=./evil"), format!("{line} ./evil")]);
    let stopped: Vec<String> = stopped.filter(|line| shows(line)).collect();
    assert_eq!(stopped, Vec::<String>::new());
}

/// A shell or a pager that is chosen by its name is one that would be used anyway.
#[test]
fn a_choice_among_what_is_used_anyway_is_free() {
    for line in [
        "tool completions --shell zsh",
        "getopt --shell bash",
        "useradd --shell /bin/bash x",
        "tool --pager less",
        "tool --pager=never log",
        "tool --plugin name",
        "tool --exec -- x",
        "tool --editor --title x",
    ] {
        assert!(analyse(line).unknown.is_empty(), "{line}");
        assert_eq!(analyse(line).commands.len(), 1, "{line}");
    }
}

/// Names as `getopt` lets them be shortened, for programs that no table describes.
#[test]
fn an_abbreviated_option_says_what_to_run_as_well() {
    for option in [
        "--pag=evil",
        "--pag evil",
        "--pa=./evil",
        "--p=./evil",
        "--edit=evil",
        "--ed=./evil",
        "--e='evil x'",
        "--comm=evil",
        "--com=./evil",
        "--sh=./evil",
        "--browse=evil",
        "--ssh-comman evil",
        "--use-compress-prog=evil",
        "--diff-prog evil",
        "--askp=evil",
        "--wrap=./evil",
        "--pre=./evil",
        "--plug=./evil.so",
        "--preloa=./evil.so",
        "--l=./evil.so",
        "--pag=$x",
    ] {
        assert!(shows(&format!("unheard-of {option}")), "{option}");
    }
    for option in [
        "--pre",
        "--pre dist/x",
        "--prose-wrap=always",
        "--wrap=80",
        "--wrap none",
        "--port=./x",
        "--config=./x",
        "--out=./x",
        "--project=./x",
        "--preset=./x",
        "--path=./x",
        "--exclude=./x",
        "--env=./x",
        "--components=./x",
        "--p=8080",
        "--pattern='a b'",
        "--commit=./x",
        "--body='a b'",
        "--lang=./x",
        "--schema=./x",
        "--project ./x",
    ] {
        assert!(!shows(&format!("unheard-of {option}")), "{option}");
    }
}

/// `-o NAME=VALUE` and what is like it.
#[test]
fn a_setting_says_what_to_run_as_well() {
    for setting in [
        "-o ProxyCommand=evil",
        "-oProxyCommand=evil",
        "-o 'ProxyCommand evil'",
        "-c core.pager=evil",
        "-ccore.pager=evil",
        "--config ui.editor=evil",
        "--config=ui.editor=evil",
        "--set tools.shell=./evil",
        "--option=x-launcher=evil",
        "-o pager=$x",
        "-o SSH_ASKPASS=evil",
    ] {
        assert!(shows(&format!("unheard-of {setting}")), "{setting}");
    }
    for setting in [
        "-o out",
        "-o out=x",
        "-o command=",
        "-o pid,command=",
        "-o name=./x",
        "-c conf.toml",
        "-c a=b",
        "--config ./x",
        "-o PermitLocalCommand=no",
        "--set image.tag=1",
        "-o pager=less",
        "-o shell=bash",
        "-o jsonpath='{.command}'",
        "-o 'the program'",
    ] {
        assert!(!shows(&format!("unheard-of {setting}")), "{setting}");
    }
    for line in [
        "python3 -c 'cmd=1'",
        "psql -c 'shell=1'",
        "cmake -o x",
        "gcc -c -o shell x.c -DSHELL=x",
    ] {
        assert!(!shows(line), "{line}");
    }
}
