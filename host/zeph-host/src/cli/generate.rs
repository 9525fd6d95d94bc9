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
        .and_then(|()| list(&program, &mut roff))
        .and_then(|()| chapters(&program, "zeph-host", &mut roff))
        .map_err(|error| CliError::internal("the manual page cannot be made").because(error))?;
    // A terminal that knows ASCII alone has no such letter, and drops it.
    Ok(String::from_utf8_lossy(&roff).replace('…', "..."))
}

/// The commands below `parent` that its help lists.
fn commands(parent: &Command) -> impl Iterator<Item = &Command> {
    let commands = parent.get_subcommands();
    commands.filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

/// The commands below `parent`, each with what it is for.
fn list(parent: &Command, roff: &mut Vec<u8>) -> io::Result<()> {
    // As the rest of the page has them.
    let escaped = |text: &str| text.replace('-', "\\-").replace('\'', "\\*(Aq");
    writeln!(roff, ".SH COMMANDS")?;
    for command in commands(parent) {
        let about = command.get_about().map(ToString::to_string);
        let about = escaped(&about.unwrap_or_default());
        writeln!(
            roff,
            ".TP\n\\fB{}\\fR\n{about}",
            escaped(command.get_name())
        )?;
    }
    Ok(())
}

/// Every command below `parent`, each as a chapter.
fn chapters(parent: &Command, path: &str, roff: &mut Vec<u8>) -> io::Result<()> {
    for command in commands(parent) {
        let path = format!("{path} {}", command.get_name());
        let man = Man::new(command.clone().display_name(path.as_str()));
        let mut part = Vec::new();
        body(&man, &mut part)?;
        // Inside a chapter these are sections.
        let part = String::from_utf8_lossy(&part).replace(".SH ", ".SS ");
        write!(roff, ".SH \"{}\"\n{part}", path.to_uppercase())?;
        chapters(command, &path, roff)?;
    }
    Ok(())
}

fn body(man: &Man, roff: &mut Vec<u8>) -> io::Result<()> {
    man.render_synopsis_section(roff)?;
    man.render_description_section(roff)?;
    man.render_options_section(roff)?;
    let mut examples = Vec::new();
    man.render_extra_section(&mut examples)?;
    // What is set line by line must not be filled. The heading of the text is the one of the section.
    let examples = String::from_utf8_lossy(&examples).replace(".SH EXTRA\n", ".SH EXAMPLES\n.nf\n");
    let examples =
        examples
            .replacen(".nf\nExamples:\n", ".nf\n", 1)
            .replacen(".nf\nExample:\n", ".nf\n", 1);
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
        // `LC_ALL=C man` drops what is not.
        assert!(page.is_ascii(), "{page}");
        assert!(!page.contains("EXTRA"), "{page}");
        assert!(!page.contains(".nf\nExample"), "{page}");
        // What help does not list.
        assert!(!page.contains("JAIL\""), "{page}");
        assert!(page.contains(".SH COMMANDS\n"), "{page}");
        let listed = ".TP\n\\fBmcp\\-config\\fR\nSet up an MCP client to use the tools\n";
        assert!(page.contains(listed), "{page}");
        assert_eq!(
            page.matches("\n.nf\n").count(),
            page.matches("\n.fi\n").count()
        );
    }
}
