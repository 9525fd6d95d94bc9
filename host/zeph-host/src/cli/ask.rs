//! Yes or no, from the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::cli::out;
use crate::run::render::{BOLD, escape};
use crate::run::typed_ahead;

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Answer {
    Yes,
    /// Everything else.
    No,
    /// There is no terminal to ask at.
    Nobody,
}

/// Whether a user can answer.
pub(in crate::cli) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on standard error and waits. `yes` is an answer that was typed beforehand.
pub(in crate::cli) fn ask(question: &str, yes: bool) -> Answer {
    if yes {
        return Answer::Yes;
    }
    if !is_possible() {
        return Answer::Nobody;
    }
    out::stderr(&format!("{BOLD}{}{BOLD:#}", escape(question)));
    // Nothing that was typed before the question was shown answers it.
    if typed_ahead::discard(io::stdin()).is_err() {
        return Answer::No;
    }
    out::stderr(" [y/N] ");
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(_) if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") => Answer::Yes,
        _ => Answer::No,
    }
}

/// Asks whether the changes that were shown are accepted; without a person the answer is no, and it is said how to give it.
///
/// Shape: `subject` is what changed, such as "plugin `x`", `noun` its kind, `command` what was typed. A reader of JSON has not seen the
/// changes yet, and is not asked.
pub(in crate::cli) fn accepted(
    (subject, noun): (&str, &str),
    command: &str,
    (is_json, yes): (bool, bool),
) -> bool {
    let answer = match is_json && !yes {
        true => Answer::Nobody,
        false => ask(&format!("Accept {subject} as it is now?"), yes),
    };
    match answer {
        Answer::Yes => {}
        Answer::No => out::remark("nothing was approved"),
        Answer::Nobody => out::note(&format!(
            "nothing was approved; `{command} --yes` accepts the {noun} as it is now"
        )),
    }
    answer == Answer::Yes
}
