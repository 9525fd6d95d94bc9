//! A call that needs approval is put to the user: what would run, why it asks, and what each answer means. So are the questions of tools.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Prompt, PromptEditMode, PromptHistorySearch, Reedline, Signal};
use rustix::termios::{QueueSelector, tcflush};

use super::input::{is_dumb, plain_line};
use crate::agent::approver::{Asked, UserAnswer, understood};
use crate::approval::ApprovalQuestion;
use crate::run::approval_text;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::lost::TerminalWatch;
use crate::run::render::{BOLD, DIM, YELLOW};
use crate::run::repl::say;

/// Puts what is asked, hands the answer over, and gives back the signal that came meanwhile. Where there is no answer, the call ends
/// without one.
///
/// Errors: when the terminal cannot be used.
pub(super) async fn put(
    asked: Asked,
    width: Option<usize>,
    interrupts: &mut Interrupts,
) -> io::Result<Option<Interruption>> {
    match asked {
        Asked::Approval { question, answer } => {
            let (given, signal) = approval(&question, width, interrupts).await?;
            drop(answer.send(given));
            Ok(signal)
        }
        Asked::Inquiry {
            tool,
            asked,
            answer,
        } => {
            let (given, signal) = crate::run::question::put(&tool, &asked, interrupts).await?;
            drop(answer.send(given));
            Ok(signal)
        }
    }
}

/// Puts the question and waits for the answer, or for a signal, which denies the call.
async fn approval(
    question: &ApprovalQuestion,
    width: Option<usize>,
    interrupts: &mut Interrupts,
) -> io::Result<(UserAnswer, Option<Interruption>)> {
    say(&shown(question, width));
    let breaks = Arc::new(AtomicBool::new(false));
    let of_editor = Arc::clone(&breaks);
    let mut reading = tokio::task::spawn_blocking(move || read(of_editor));
    let mut interruption = None;
    loop {
        tokio::select! {
            answer = &mut reading => {
                return match answer.map_err(io::Error::other)?? {
                    Some(answer) => Ok((answer, interruption)),
                    // Ctrl-C at the question ends the turn.
                    None => Ok((UserAnswer::Denied(None), interruption.or(Some(Interruption::Interrupt)))),
                };
            }
            signal = interrupts.next() => {
                interruption = Some(signal);
                breaks.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Reads until the answer makes sense; none for Ctrl-C. Blocks.
fn read(breaks: Arc<AtomicBool>) -> io::Result<Option<UserAnswer>> {
    // Nothing that was typed before the question was shown answers it.
    tcflush(io::stdin(), QueueSelector::IFlush)?;
    let watch = TerminalWatch::start(Arc::clone(&breaks))?;
    let mut editor = (!is_dumb()).then(|| Reedline::create().with_break_signal(breaks));
    loop {
        let read = watch.reading(|| match &mut editor {
            Some(editor) => editor.read_line(&ApprovalPrompt).map_err(io::Error::other),
            None => plain_line("Run it? [o/s/a/N] "),
        });
        match read? {
            Signal::Success(line) => {
                if let Some(answer) = understood(&line) {
                    return Ok(Some(answer));
                }
            }
            Signal::CtrlD => return Ok(Some(UserAnswer::Denied(None))),
            _ => return Ok(None),
        }
    }
}

/// The question as it stands above the prompt.
fn shown(question: &ApprovalQuestion, width: Option<usize>) -> String {
    let mut page = approval_text::call(&question.call, width);
    for step in &question.trace {
        page.dim(1, step);
    }
    approval_text::why(&mut page, &question.reason, &question.rules);
    let rule = format!("exactly this call of {}", question.call.tool);
    page.line(0, &format!("o  once: {rule}"));
    page.line(
        0,
        &format!("s  for this conversation: {rule}, until /clear or /revoke"),
    );
    page.line(0, &format!("a  always: {rule}, until /revoke"));
    page.line(0, "n  deny; `n REASON` tells the model why");
    format!(
        "\n{YELLOW}The model asks to run:{YELLOW:#}\n{}",
        page.as_str()
    )
}

/// The prompt of the question.
struct ApprovalPrompt;

impl Prompt for ApprovalPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Owned(format!("{BOLD}Run it? [o/s/a/N]{BOLD:#}{DIM}{DIM:#}"))
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(" ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_history_search_indicator(&self, _search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}
