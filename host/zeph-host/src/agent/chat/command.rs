//! What a line means. Pure.

use zeph_core::failure::one_line;
use zeph_core::nearest::nearest;

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatCommand {
    /// Nothing was typed.
    Nothing,
    /// It goes to the model.
    Prompt(String),
    Help,
    Clear,
    /// What waits and what was approved, or the answer to a call that waits.
    Approve(Option<String>),
    /// Revokes an approval, or marks the result of a call as unacceptable; the newest call without an ID.
    Revoke(Option<String>),
    Tools,
    Stats,
    Cost,
    Undo(u32),
    Redo,
    /// Shows the providers, or uses another one.
    Model(Option<String>),
    /// Lists the sessions, or goes on with one.
    Resume(Option<String>),
    Compact,
    /// Shows the goal, sets another one, or ends it.
    Plan(Option<String>),
    Export(Option<String>),
    Quit,
}

/// Commands that take no argument.
const PLAIN: [(&str, ChatCommand); 10] = [
    ("/help", ChatCommand::Help),
    ("/?", ChatCommand::Help),
    ("/clear", ChatCommand::Clear),
    ("/tools", ChatCommand::Tools),
    ("/stats", ChatCommand::Stats),
    ("/cost", ChatCommand::Cost),
    ("/redo", ChatCommand::Redo),
    ("/compact", ChatCommand::Compact),
    ("/quit", ChatCommand::Quit),
    ("/exit", ChatCommand::Quit),
];

/// All commands, for completion.
pub(super) const COMMANDS: [&str; 15] = [
    "/approve", "/clear", "/compact", "/cost", "/export", "/help", "/model", "/plan", "/quit",
    "/redo", "/resume", "/revoke", "/stats", "/tools", "/undo",
];

/// `/help`.
pub(super) const HELP: &str = "\
Type what you want done; Alt-Enter begins a new line. @path attaches a file, and
Tab completes it.
  /approve [ID]   what waits and what was approved; with ID, answer a call that
                  waits
  /revoke [ID]    deny such calls as the last one, or as call ID; with the ID of
                  an approval, revoke that
  /tools          the tools
  /undo [N]       put back what the last commands changed; /redo takes that back
  /model [NAME]   the models; with NAME, use another one
  /cost, /stats   what the session used up; how it works
  /plan [TEXT]    the goal and its tasks; with TEXT, set a goal; `done` and
                  `cancel` end it, `list` shows all
  /compact        have the model sum up the conversation so far
  /export [FILE]  write the conversation as Markdown
  /resume [ID]    the sessions of this directory; with ID, go on with one
  /clear          begin a new conversation; approvals for this one are forgotten
  /help           this text
  /quit           leave (or Ctrl-D)
A call that needs approval asks: o once, s for this conversation, a always,
n [reason] deny. s and a make the rule that the question shows; /approve lists
it, and /revoke takes it back. Ctrl-C ends the turn, not the program.
";

/// Reads a line. A line that begins with a slash and is no path is a command.
///
/// Errors: one line that says what is wrong.
pub(super) fn read(line: &str) -> Result<ChatCommand, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(ChatCommand::Nothing);
    }
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !name.starts_with('/') || name[1..].contains('/') {
        return Ok(ChatCommand::Prompt(line.to_owned()));
    }
    let argument = argument.trim();
    let some = (!argument.is_empty()).then(|| argument.to_owned());
    if let Some((_, command)) = PLAIN.iter().find(|(plain, _)| *plain == name) {
        return match some {
            None => Ok(command.clone()),
            Some(_) => Err(format!("`{name}` takes no argument")),
        };
    }
    match name {
        "/approve" | "/approvals" => Ok(ChatCommand::Approve(some)),
        "/revoke" => Ok(ChatCommand::Revoke(some)),
        "/plan" => Ok(ChatCommand::Plan(some)),
        "/model" => Ok(ChatCommand::Model(some)),
        "/resume" => Ok(ChatCommand::Resume(some)),
        "/export" => Ok(ChatCommand::Export(some)),
        "/undo" => match some.as_deref().unwrap_or("1").parse() {
            Ok(count) if count > 0 => Ok(ChatCommand::Undo(count)),
            _ => Err("write `/undo` or `/undo N`, N from 1".to_owned()),
        },
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> String {
    let shown = one_line(name, 40);
    match nearest(name, COMMANDS) {
        Some(near) => format!("there is no command `{shown}`; did you mean `{near}`?"),
        None => format!("there is no command `{shown}`; `/help` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, ChatCommand, HELP, read};

    #[test]
    fn a_line_is_a_prompt_or_a_command() {
        let prompt = |text: &str| Ok(ChatCommand::Prompt(text.to_owned()));
        assert_eq!(read(" fix it "), prompt("fix it"));
        assert_eq!(
            read("/etc/hosts has a typo"),
            prompt("/etc/hosts has a typo")
        );
        assert_eq!(read("  "), Ok(ChatCommand::Nothing));
        assert_eq!(read("/undo 2"), Ok(ChatCommand::Undo(2)));
        assert_eq!(
            read("/model fast"),
            Ok(ChatCommand::Model(Some("fast".to_owned())))
        );
        assert_eq!(read("/export"), Ok(ChatCommand::Export(None)));
        assert!(read("/undo 0").is_err());
        assert!(read("/quit now").is_err());
        assert!(read("/hlep").unwrap_err().contains("/help"));
    }

    #[test]
    fn every_command_is_read_and_explained() {
        for name in COMMANDS {
            assert!(
                read(&format!("{name} x")).is_ok() || read(name).is_ok(),
                "{name}"
            );
            assert!(HELP.contains(name), "{name}");
        }
        assert!(HELP.lines().all(|line| line.chars().count() <= 80));
    }
}
