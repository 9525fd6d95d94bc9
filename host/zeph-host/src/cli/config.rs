//! `zeph-host config`: what is set, where, and whether it is right.

use std::path::Path;

use zeph_config::{Config, Setting, StoreLocation};
use zeph_store::ServerUrl;

use super::args::{Config as Options, ConfigCommand, ConfigShow};
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::{out, policy};
use crate::named_tools;
use crate::run::render::{DIM, escape, push_styled};

/// Runs the command.
pub(super) fn run(context: &Context, options: Options) -> Result<Exit, CliError> {
    match options.command {
        None => show(context, options.show),
        Some(ConfigCommand::Show(options)) => show(context, options),
        Some(ConfigCommand::Schema) => out::data(zeph_config::SCHEMA),
        Some(ConfigCommand::Check { file: None }) => {
            let config = context.load()?.config;
            check_store(&config)?;
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
    let width = lines
        .iter()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let mut shown = String::new();
    for (line, setting) in lines.iter().zip(&settings) {
        shown.push_str(line);
        if options.origin {
            shown.extend(std::iter::repeat_n(' ', width - line.chars().count()));
            push_styled(
                &mut shown,
                DIM,
                &escape(&format!("  # {}", origins(setting))),
            );
        }
        shown.push('\n');
    }
    out::styled(&shown)
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

/// Notes lists that name tools which are not there. Only where there are such lists: what tools there are is known once plugins are read.
fn check_names(context: &Context, config: &Config) -> Result<(), CliError> {
    if !named_tools::named_tools(config).is_empty() {
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
