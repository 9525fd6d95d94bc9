//! Shell completions and the manual page, generated from the arguments.

use std::io::{self, Write as _};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use super::args::{CliArgs, Completions};
use super::complete;
use super::error::CliError;
use super::exit::Exit;
use super::out;

/// Prints the completions of one shell.
pub(super) fn completions(options: &Completions) -> Result<Exit, CliError> {
    complete::register(options.shell)?;
    Ok(Exit::Success)
}

/// Prints the manual page: the program, then every command as a part of it.
pub(super) fn man() -> Result<Exit, CliError> {
    out::data(&page()?)?;
    Ok(Exit::Success)
}

fn page() -> Result<String, CliError> {
    let mut program = CliArgs::command();
    program.build();
    let mut roff = Vec::new();
    let man = Man::new(program.clone());
    man.render_title(&mut roff)
        .and_then(|()| man.render_name_section(&mut roff))
        .and_then(|()| body(&man, &mut roff))
        .and_then(|()| commands(&program, "zeph-host", &mut roff))
        .map_err(|error| CliError::internal("the manual page cannot be made").because(error))?;
    Ok(String::from_utf8_lossy(&roff).into_owned())
}

/// Every command below `parent`, each as a chapter.
fn commands(parent: &Command, path: &str, roff: &mut Vec<u8>) -> io::Result<()> {
    let commands = parent.get_subcommands();
    for command in commands.filter(|command| command.get_name() != "help") {
        let path = format!("{path} {}", command.get_name());
        let man = Man::new(command.clone().display_name(path.as_str()));
        let mut part = Vec::new();
        body(&man, &mut part)?;
        // Inside a chapter these are sections.
        let part = String::from_utf8_lossy(&part).replace(".SH ", ".SS ");
        write!(roff, ".SH \"{}\"\n{part}", path.to_uppercase())?;
        self::commands(command, &path, roff)?;
    }
    Ok(())
}

fn body(man: &Man, roff: &mut Vec<u8>) -> io::Result<()> {
    man.render_synopsis_section(roff)?;
    man.render_description_section(roff)?;
    man.render_options_section(roff)?;
    let mut examples = Vec::new();
    man.render_extra_section(&mut examples)?;
    // What is set line by line must not be filled.
    let examples = String::from_utf8_lossy(&examples).replace(".SH EXTRA\n", ".SH EXAMPLES\n.nf\n");
    if !examples.is_empty() {
        writeln!(roff, "{}\n.fi", examples.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{CliArgs, page};

    #[test]
    fn the_command_line_is_sound() {
        CliArgs::command().debug_assert();
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
        assert!(!page.contains("EXTRA"), "{page}");
        assert_eq!(
            page.matches("\n.nf\n").count(),
            page.matches("\n.fi\n").count()
        );
    }
}
