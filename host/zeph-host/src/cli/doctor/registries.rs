//! `zeph-host doctor --registries`: the hosts that the package managers of this machine get packages from, as a line for the
//! configuration.

use std::collections::BTreeSet;

use super::super::context::Context;
use super::super::error::CliError;
use super::super::exit::Exit;
use super::super::out;
use crate::registries;

/// Runs the command.
pub(super) fn run(context: &Context) -> Result<Exit, CliError> {
    let surroundings = &context.surroundings;
    let home = surroundings.home.clone().unwrap_or_default();
    let (hosts, unusable) = registries::of_machine(&home, &surroundings.working_directory);
    for text in unusable {
        out::note(&format!(
            "{text} is an address; commands reach hosts by their names"
        ));
    }
    if hosts.is_empty() {
        out::note("no package manager was found on the search path");
    }
    out::data(&line(&hosts))?;
    Ok(Exit::Success)
}

/// The line for `[tools.sandbox]`.
fn line(hosts: &BTreeSet<String>) -> String {
    let quoted: Vec<String> = hosts.iter().map(|host| format!("\"{host}\"")).collect();
    format!("allow_hosts = [{}]\n", quoted.join(", "))
}
