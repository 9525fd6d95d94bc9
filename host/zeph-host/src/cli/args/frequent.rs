//! The commands that programs start again and again, read without the others.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::{CallArgs, CallOutput, CliArgs, CliCommand, Color, Filter, Global, HookArgs};

/// A command line of one of these commands. Describing all others to the parser takes longer than all the rest of reading it.
#[derive(Debug, Parser)]
#[command(name = "zeph-host", version, propagate_version = true)]
pub(crate) struct FrequentArgs {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: FrequentCommand,
}

/// The same commands as in [`CliCommand`].
#[derive(Debug, Subcommand)]
enum FrequentCommand {
    Call(CallArgs),
    Filter(Filter),
    Hook(HookArgs),
}

impl FrequentArgs {
    /// The command line, if it is a right one of these commands. What is wrong, and what asks for help, is for the parser of them all:
    /// it says so.
    pub(crate) fn read(typed: &[OsString]) -> Option<CliArgs> {
        if let Some(call) = plain_call(typed) {
            return Some(call);
        }
        let first = typed.get(1)?.to_str()?;
        if !matches!(first, "call" | "filter" | "hook") {
            return None;
        }
        let Self { global, command } = Self::try_parse_from(typed).ok()?;
        let command = match command {
            FrequentCommand::Call(options) => CliCommand::Call(options),
            FrequentCommand::Filter(options) => CliCommand::Filter(options),
            FrequentCommand::Hook(options) => CliCommand::Hook(options),
        };
        Some(CliArgs { global, command })
    }
}

/// `zeph-host call TOOL KEY=VALUE…`, after `--no-project` or without any option. To describe even this one command to the parser takes
/// longer than to decide about its call.
fn plain_call(typed: &[OsString]) -> Option<CliArgs> {
    let (no_project, first, words) = match typed {
        [_, option, first, words @ ..] if option == "--no-project" => (true, first, words),
        [_, first, words @ ..] => (false, first, words),
        _ => return None,
    };
    let plain = |word: &OsString| {
        let word = word.to_str().filter(|word| !word.starts_with('-'));
        word.map(str::to_owned)
    };
    let mut words = words.iter().map(plain).collect::<Option<Vec<_>>>()?;
    if first != "call" || words.is_empty() {
        return None;
    }
    let call = CallArgs {
        tool: words.remove(0),
        arguments: words,
        json: None,
        conversation: None,
        record: None,
        output: CallOutput::Text,
    };
    Some(CliArgs {
        global: Global {
            config: None,
            set: Vec::new(),
            root: Vec::new(),
            plugins: Vec::new(),
            no_project,
            verbose: 0,
            quiet: 0,
            color: Color::Auto,
        },
        command: CliCommand::Call(call),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Parser as _;

    use super::{CliArgs, FrequentArgs};

    #[test]
    fn a_frequent_command_is_read_as_among_all_commands() {
        for line in [
            "zeph-host call bash command=true",
            "zeph-host call read path=a b= =c c=-d -",
            "zeph-host call read path=a b= =c c=-d",
            "zeph-host call help",
            "zeph-host call help read",
            "zeph-host call ",
            "zeph-host call read  a=b",
            "zeph-host call read -- -a=b",
            "zeph-host call read path=a --json {}",
            "zeph-host call --no-project -vv read --config c.toml path=a --root / --set a=b",
            "zeph-host call",
            "zeph-host call --help",
            "zeph-host call --version",
            "zeph-host call read --nonsense",
            "zeph-host call -q -v read",
            "zeph-host -q call read",
            "zeph-host --no-project call read path=a b= =c c=-d",
            "zeph-host --no-project call read path=a --json {}",
            "zeph-host --no-project --no-project call read",
            "zeph-host --no-project",
            "zeph-host filter --as pytest --exit-code 1",
            "zeph-host filter -- ls -l",
            "zeph-host hook",
            "zeph-host hook claude-code",
            "zeph-host tools",
            "zeph-host",
        ] {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let of_all = CliArgs::try_parse_from(&typed);
            let is_frequent = ["call", "filter", "hook"].map(OsString::from);
            let is_frequent = typed.get(1).is_some_and(|word| is_frequent.contains(word));
            let is_plain =
                line.starts_with("zeph-host --no-project call") && !line.contains("--json");
            let expected = of_all.ok().filter(|_| is_frequent || is_plain);
            let read = FrequentArgs::read(&typed);
            assert_eq!(format!("{read:?}"), format!("{expected:?}"), "{line}");
        }
    }
}
