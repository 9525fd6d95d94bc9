//! `zeph-host config`: what is set, where, and whether it is right.

use std::path::Path;

use zeph_config::{Config, Setting, StoreLocation};
use zeph_plugins::rights::OperatorPolicy;
use zeph_store::ServerUrl;

use super::args::{Config as Options, ConfigCommand, ConfigShow};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::{doctor, out, policy};
use crate::filtering::Filtering;
use crate::host::StartError;
use crate::run::render::{DIM, escape, push_styled};
use crate::{host, named_tools, user};

/// Characters of the longest line that has its origin behind it: with it, three of four settings and where they are set fit on a terminal
/// of a hundred columns.
const ORIGIN_COLUMN_MAX: usize = 60;

/// Runs the command.
pub(super) fn run(context: &Context, options: Options) -> Result<Exit, CliError> {
    match options.command {
        None => show(context, options.show),
        Some(ConfigCommand::Show(options)) => show(context, options),
        Some(ConfigCommand::Schema) => out::data(zeph_config::SCHEMA),
        Some(ConfigCommand::Check { file: None }) => {
            let config = context.load()?.config;
            check_store(&config)?;
            check_machine(context, &config)?;
            check_names(context, &config)?;
            all_right(context, "the configuration");
            Ok(())
        }
        Some(ConfigCommand::Check { file: Some(file) }) => check(context, &file),
    }?;
    Ok(Exit::Success)
}

/// TOML, one key a line, so that a line can be copied into a file.
fn show(context: &Context, options: ConfigShow) -> Result<(), CliError> {
    let settings = context.load()?.origins;
    if options.json.json {
        return out::json(&settings);
    }
    let lines: Vec<String> = settings
        .iter()
        .map(|setting| escape(&format!("{} = {}", setting.key, setting.value)))
        .collect();
    if !options.origin {
        return out::styled(&(lines.join("\n") + "\n"));
    }
    let origins = settings.iter().map(|setting| escape(&origins(setting)));
    out::styled(&with_origins(lines.into_iter().zip(origins)))
}

/// Each line with its origin as a comment: behind it, or above a line that is too long for that.
fn with_origins(lines: impl Iterator<Item = (String, String)> + Clone) -> String {
    let n_chars = |line: &str| line.chars().count();
    let short = lines.clone().map(|(line, _)| n_chars(&line));
    let width = short.filter(|n_chars| *n_chars <= ORIGIN_COLUMN_MAX).max();
    let width = width.unwrap_or(0);
    let mut shown = String::new();
    for (line, origin) in lines {
        match width.checked_sub(n_chars(&line)) {
            Some(gap) => {
                shown.push_str(&line);
                shown.extend(std::iter::repeat_n(' ', gap));
                push_styled(&mut shown, DIM, &format!("  # {origin}"));
            }
            None => {
                push_styled(&mut shown, DIM, &format!("# {origin}"));
                shown.push('\n');
                shown.push_str(&line);
            }
        }
        shown.push('\n');
    }
    shown
}

fn origins(setting: &Setting) -> String {
    let origins: Vec<String> = setting.origins.iter().map(ToString::to_string).collect();
    origins.join(", ")
}

fn check(context: &Context, file: &Path) -> Result<(), CliError> {
    let loaded = Config::check_file(&context.surroundings, file)?;
    check_store(&loaded.config)?;
    context.notes(&loaded.warnings);
    all_right(context, &format!("`{}`", file.display()));
    Ok(())
}

/// What a start would find on this machine, as far as that shows without changing anything.
///
/// Errors: what keeps a host from starting. What it does without is noted.
fn check_machine(context: &Context, config: &Config) -> Result<(), CliError> {
    user::check(config).map_err(|error| CliError::start(error.to_string()))?;
    if let Some((problem, hint)) = doctor::unwritable(config) {
        return Err(CliError::start(problem).hint(hint));
    }
    OperatorPolicy::new(config).map_err(StartError::Files)?;
    host::check_shared_keys(config)?;
    context.notes(&doctor::unusable(config));
    let (_, notices) = Filtering::new(config);
    context.notes(&notices);
    Ok(())
}

/// Notes servers whose tools one rule may cover, and rules and lists that name tools which are not there. Only where there are such: what
/// tools there are is known once plugins are read.
fn check_names(context: &Context, config: &Config) -> Result<(), CliError> {
    context.notes(&named_tools::shared_names(&config.mcp_servers));
    if named_tools::names_any(config) {
        context.notes(&policy::idle_rules(context, config)?);
    }
    Ok(())
}

/// Whether the URL of a server can be used, as far as that shows without it.
fn check_store(config: &Config) -> Result<(), CliError> {
    if let StoreLocation::Server(server) = &config.store {
        server.url.text().parse::<ServerUrl>()?;
    }
    Ok(())
}

fn all_right(context: &Context, what: &str) {
    if !context.quiet {
        out::remark(&format!("{what} is all right"));
    }
}

#[cfg(test)]
mod tests {
    use super::with_origins;

    /// One long list must not push the origins of all others off the screen.
    #[test]
    fn origins_stand_beside_short_lines_and_above_long_ones() {
        let long = format!("c = \"{}\"", "x".repeat(500));
        let lines = [
            ("a = 1", "built-in"),
            (long.as_str(), "/etc/c.toml:7"),
            ("bb = 22", "--set bb=22"),
        ];
        let lines = lines.map(|(line, origin)| (line.to_owned(), origin.to_owned()));
        let shown = with_origins(lines.iter().cloned());
        let shown = anstream::adapter::strip_str(&shown).to_string();
        let expect =
            format!("a = 1    # built-in\n# /etc/c.toml:7\n{long}\nbb = 22  # --set bb=22\n");
        assert_eq!(shown, expect);
    }
}
