//! `zeph-host policy check`: whether the rules that decide about calls compile, with the place of each mistake, and whether each can
//! apply to a tool.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use zeph_config::{Config, ConfigErrors, Flags, LoadedConfig, StoreLocation};
use zeph_plugins::event::Tell;

use super::args::{Policy, PolicyCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use super::page::print_json;

mod report;
mod show;
mod suggest;

/// Runs the command.
pub(super) fn run(context: &Context, options: Policy) -> Result<Exit, CliError> {
    let (file, json) = match options.command {
        PolicyCommand::Show { json } => return show::run(context, json.json),
        PolicyCommand::Report { since, json } => {
            return report::run(context, since.as_deref(), json.json);
        }
        PolicyCommand::Suggest(options) => return suggest::run(context, &options),
        PolicyCommand::Check { file, json } => (file, json),
    };
    let (what, checked) = match &file {
        None => (
            "the policy in effect".to_owned(),
            Config::load(&context.surroundings, &context.flags),
        ),
        Some(file) => (format!("`{}`", file.display()), check(context, file)?),
    };
    let checked = match (checked, &file) {
        (Ok(mut loaded), None) => {
            loaded.warnings.extend(idle_rules(context, &loaded.config)?);
            Ok(loaded)
        }
        (checked, _) => checked,
    };
    if json.json {
        print_json(&as_json(&checked))?;
        return Ok(match checked {
            Ok(_) => Exit::Success,
            Err(_) => Exit::Start,
        });
    }
    let loaded = checked?;
    context.notes(&loaded.warnings);
    if !context.quiet {
        out::remark(&format!("{what} is all right"));
    }
    Ok(Exit::Success)
}

/// What is wrong with rules and lists that no tool can meet. Plugins are looked at, and pinned, as with any other command.
pub(super) fn idle_rules(context: &Context, config: &Config) -> Result<Vec<String>, CliError> {
    let mut config = config.clone();
    config.store = StoreLocation::Memory;
    config.audit.enabled = false;
    context::block_on(async {
        let silent: Tell = Arc::new(|_| {});
        let host = context.start_silently(config, silent).await?;
        host.settled().await;
        Ok(host.idle_rules())
    })
}

/// A file of rules is checked as `tools.policy.policy_file` of a program that works in its folder; any other as a configuration
/// file.
fn check(context: &Context, file: &Path) -> Result<Result<LoadedConfig, ConfigErrors>, CliError> {
    let path = context.surroundings.working_directory.join(file);
    let cannot = |error: std::io::Error| {
        CliError::user(format!("`{}` cannot be read", file.display())).because(error)
    };
    let path = fs::canonicalize(&path).map_err(cannot)?;
    if !is_rules(&path) {
        return Ok(Config::check_file(&context.surroundings, &path));
    }
    let mut alone = context.surroundings.clone();
    alone.env.clear();
    alone.config_home = None;
    alone.working_directory = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let flags = Flags {
        set: vec![
            "tools.policy.enabled=true".to_owned(),
            format!("tools.policy.policy_file={}", path.display()),
        ],
        no_project: true,
        ..Flags::default()
    };
    Ok(Config::load(&alone, &flags))
}

/// Whether it is a file of rules: it has `[[rules]]` and nothing of a configuration.
fn is_rules(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    match text.parse::<toml::Table>() {
        Ok(table) => table.contains_key("rules"),
        // Broken TOML: the author of rules finds the place of the mistake either way.
        Err(_) => text
            .lines()
            .any(|line| line.trim_start().starts_with("[[rules")),
    }
}

/// The JSON report of a check, of this command and of `config check`.
pub(super) fn as_json(checked: &Result<LoadedConfig, ConfigErrors>) -> Value {
    match checked {
        Ok(loaded) => report(&[], &loaded.warnings),
        Err(errors) => {
            let problems = errors.problems.iter().map(|problem| {
                json!({
                    "origin": problem.origin.to_string(),
                    "line": problem.origin.line(),
                    "column": problem.column,
                    "message": problem.message,
                })
            });
            report(&problems.collect::<Vec<_>>(), &[])
        }
    }
}

/// The JSON report of a check with these problems and warnings.
pub(super) fn report(problems: &[Value], warnings: &[String]) -> Value {
    json!({ "ok": problems.is_empty(), "problems": problems, "warnings": warnings })
}
