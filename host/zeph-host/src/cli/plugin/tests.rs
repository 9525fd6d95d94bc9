use clap::Parser as _;

use super::changes_offer;
use crate::cli::args::{CliArgs, CliCommand};

#[test]
fn every_command_that_writes_tells_the_other_replicas() {
    for (line, tells) in [
        ("add x.wasm", true),
        ("remove x", true),
        ("grant x --all", true),
        ("approve x", true),
        ("disable x", true),
        ("enable x", true),
        ("update x", true),
        ("sync", true),
        ("sync --from plugins.bundle", true),
        ("sync --dry-run", false),
        ("list", false),
        ("info x", false),
        ("outdated", false),
        ("bundle plugins.bundle", false),
        ("revoke x --all", false),
    ] {
        let words = ["zeph-host", "plugin"].into_iter().chain(line.split(' '));
        let args = CliArgs::try_parse_from(words).unwrap();
        let CliCommand::Plugin(options) = args.command else {
            panic!("{line}");
        };
        let told = options.command.as_ref().is_some_and(changes_offer);
        assert_eq!(told, tells, "{line}");
    }
}
