//! `zeph-host config`: what is set, where, and whether it is right.

use std::path::Path;

use serde_json::json;
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
use crate::{host, named_tools, servers, user};

/// Characters of the longest line that has its origin behind it: with it, three of four settings and where they are set fit on a terminal
/// of a hundred columns.
const ORIGIN_COLUMN_MAX: usize = 60;

/// Runs the command.
pub(super) fn run(context: &Context, options: Options) -> Result<Exit, CliError> {
    match options.command {
        None => show(context, options.show),
        Some(ConfigCommand::Show(options)) => show(context, options),
        Some(ConfigCommand::Schema) => out::data(zeph_config::SCHEMA),
        Some(ConfigCommand::Check { file, json }) => {
            return check(context, file.as_deref(), json.json);
        }
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

/// One file, or what is in effect with what a start would find on this machine.
fn check(context: &Context, file: Option<&Path>, json: bool) -> Result<Exit, CliError> {
    let loaded = match file {
        None => Config::load(&context.surroundings, &context.flags),
        Some(file) => Config::check_file(&context.surroundings, file),
    };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        errors if json => {
            out::json(&policy::as_json(&errors))?;
            return Ok(Exit::Start);
        }
        Err(errors) => return Err(errors.into()),
    };
    let mut warnings = loaded.warnings;
    let config = &loaded.config;
    let problem = match file {
        None => check_start(context, config, &mut warnings),
        Some(_) => check_store(config),
    }
    .err();
    if json {
        let problems = problem.iter().map(|problem| {
            let message = problem.problems.join("; ");
            json!({ "origin": null, "line": null, "column": null, "message": message })
        });
        out::json(&policy::report(&problems.collect::<Vec<_>>(), &warnings))?;
        return Ok(problem.map_or(Exit::Success, |problem| problem.exit()));
    }
    context.notes(&warnings);
    if let Some(problem) = problem {
        return Err(problem);
    }
    if !context.quiet {
        let what = match file {
            None => "the configuration".to_owned(),
            Some(file) => format!("`{}`", file.display()),
        };
        out::remark(&format!("{what} is all right"));
    }
    Ok(Exit::Success)
}

/// What a start would find on this machine, as far as that shows without changing anything.
///
/// Errors: what keeps a host from starting. What it does without is added to `warnings`; and servers whose tools one rule may cover, and
/// rules and lists that name tools which are not there. The last only where there are such: what tools there are is known once plugins
/// are read.
fn check_start(
    context: &Context,
    config: &Config,
    warnings: &mut Vec<String>,
) -> Result<(), CliError> {
    check_store(config)?;
    user::check(config).map_err(|error| CliError::start(error.to_string()))?;
    if let Some((problem, hint)) = doctor::unwritable(config) {
        return Err(CliError::start(problem).hint(hint));
    }
    OperatorPolicy::new(config).map_err(StartError::Files)?;
    host::check_shared_keys(config)?;
    warnings.extend(doctor::unusable(config));
    warnings.extend(Filtering::new(config).1);
    warnings.extend(named_tools::shared_names(&config.mcp_servers));
    if config.tools_enabled {
        warnings.extend(servers::idle_entries(config));
    }
    if named_tools::names_any(config) {
        warnings.extend(policy::idle_rules(context, config)?);
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
