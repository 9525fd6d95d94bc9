//! `zeph-host plugin new`: begins a project.

use std::path::Path;

use serde_json::json;
use zeph_plugins::author::{self, NewError, Template};

use super::display;
use crate::cli::args::PluginNew;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginNew) -> Result<Exit, CliError> {
    let here = &context.surroundings.working_directory;
    let typed = options.dir.as_deref().unwrap_or(Path::new(""));
    let (name, language) = (options.name.as_str(), options.lang);
    let template = match options.filter {
        true => Template::Filter(language),
        false => Template::Tools(language),
    };
    let files = author::new_project(template, name, &here.join(typed)).map_err(refused)?;
    let steps = author::next_steps(language, name, typed);
    if options.json.json {
        display::print_json(&json!({
            "name": name,
            "language": language.as_str(),
            "folder": here.join(typed).join(name),
            "files": files,
            "next": steps.lines().collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Success);
    }
    if !context.quiet {
        let folder = typed.join(name);
        out::remark(&format!(
            "{} files in `{}`; go on with",
            files.len(),
            folder.display()
        ));
    }
    out::data(&steps)?;
    Ok(Exit::Success)
}

fn refused(error: NewError) -> CliError {
    let problem = error.to_string();
    match error {
        NewError::BadName(_) | NewError::TakenName { .. } | NewError::NoTemplate(_) => {
            CliError::user(problem)
        }
        NewError::NoFolder(_) => {
            CliError::user(problem).hint("make it, or name another with `--dir`")
        }
        NewError::NotEmpty(_) => {
            CliError::user(problem).hint("choose another name, or another folder with `--dir`")
        }
        NewError::Io { source, .. } => CliError::internal(problem).because(source),
    }
}
