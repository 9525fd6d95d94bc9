//! The commands that programs start again and again, read without the others.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::{CallArgs, CliArgs, CliCommand, Filter, Global, HookArgs};

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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Parser as _;

    use super::{CliArgs, FrequentArgs};

    #[test]
    fn a_frequent_command_is_read_as_among_all_commands() {
        for line in [
            "zeph-host call bash command=true",
            "zeph-host call read path=a --json {}",
            "zeph-host call --no-project -vv read --config c.toml path=a --root / --set a=b",
            "zeph-host call",
            "zeph-host call --help",
            "zeph-host call --version",
            "zeph-host call read --nonsense",
            "zeph-host call -q -v read",
            "zeph-host -q call read",
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
            let expected = of_all.ok().filter(|_| is_frequent);
            let read = FrequentArgs::read(&typed);
            assert_eq!(format!("{read:?}"), format!("{expected:?}"), "{line}");
        }
    }
}
