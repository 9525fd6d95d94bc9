//! Shell completions and the manual page, generated from the arguments.

use clap::{Command, CommandFactory as _};

use super::args::{Args, Completions};
use super::error::CliError;
use super::exit::Exit;
use super::out;

/// Prints the completions of one shell.
pub(super) fn completions(options: &Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(
        options.shell,
        &mut Args::command(),
        "zeph-host",
        &mut script,
    );
    out::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// Prints the manual page: the program, then every command as a part of it.
pub(super) fn man() -> Result<Exit, CliError> {
    out::data(&page()?)?;
    Ok(Exit::Success)
}

fn page() -> Result<String, CliError> {
    let mut program = Args::command();
    program.build();
    let mut roff = Vec::new();
    let written = clap_mangen::Man::new(program.clone())
        .render(&mut roff)
        .and_then(|()| commands(&program, "zeph-host", &mut roff));
    written.map_err(|error| CliError::internal("the manual page cannot be made").because(error))?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

/// The synopsis, description, options and examples of every command below `parent`.
fn commands(parent: &Command, path: &str, roff: &mut Vec<u8>) -> std::io::Result<()> {
    for command in parent
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        let path = format!("{path} {}", command.get_name());
        roff.extend_from_slice(format!(".SH \"{}\"\n", path.to_uppercase()).as_bytes());
        let man = clap_mangen::Man::new(command.clone().display_name(path.as_str()));
        let mut part = Vec::new();
        man.render_description_section(&mut part)?;
        man.render_synopsis_section(&mut part)?;
        man.render_options_section(&mut part)?;
        man.render_extra_section(&mut part)?;
        // Inside a command these are parts, not chapters.
        roff.extend_from_slice(
            String::from_utf8_lossy(&part)
                .replace("\n.SH ", "\n.SS ")
                .as_bytes(),
        );
        commands(command, &path, roff)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Args, page};

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_the_manual() {
        let page = page().unwrap();
        for command in [
            "RUN",
            "CALL",
            "TOOLS SHOW",
            "CONFIG CHECK",
            "AUDIT QUERY",
            "CONVERSATIONS DELETE",
        ] {
            assert!(
                page.contains(&format!("\"ZEPH-HOST {command}\"")),
                "{command}"
            );
        }
    }
}
