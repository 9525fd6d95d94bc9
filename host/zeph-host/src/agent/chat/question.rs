//! A call that needs approval is put to the user: what would run, why it asks, and the exact rule that each answer makes.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Prompt, PromptEditMode, PromptHistorySearch, Signal};

use crate::agent::approver::{UserAnswer, understood};
use crate::approval::ApprovalQuestion;
use crate::run::approval_text;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::line_input::LineInput;
use crate::run::render::{BOLD, YELLOW};
use crate::run::repl::say;

/// What stands before the answer.
pub(super) const LABEL: &str = "Run it? [o/s/a/N]";

/// What an answer can be.
pub(super) const ANSWERS: &str = "answer `o`, `s`, `a`, or `n` and a reason";

/// Puts the question and waits for the answer, or for a signal, which denies the call.
///
/// Errors: when the terminal cannot be used.
pub(super) async fn approval(
    shown: &str,
    interrupts: &mut Interrupts,
) -> io::Result<(UserAnswer, Option<Interruption>)> {
    say(shown);
    let breaks = Arc::new(AtomicBool::new(false));
    let of_editor = Arc::clone(&breaks);
    let mut reading = tokio::task::spawn_blocking(move || read(of_editor));
    let mut interruption = None;
    loop {
        tokio::select! {
            answer = &mut reading => {
                return Ok(match answer.map_err(io::Error::other)?? {
                    Ok(answer) => (answer, interruption),
                    Err(signal) => (UserAnswer::Denied(None), interruption.or(Some(signal))),
                });
            }
            signal = interrupts.next() => {
                interruption = Some(signal);
                breaks.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Reads until the answer makes sense, or the turn has to end: with Ctrl-C, or because the terminal is gone. Blocks.
fn read(breaks: Arc<AtomicBool>) -> io::Result<Result<UserAnswer, Interruption>> {
    let mut input = LineInput::of_answers(breaks)?;
    let answer = answer(&mut input);
    match input.is_lost() {
        // Whatever went wrong then went wrong because of it.
        true => Ok(Err(Interruption::HangUp)),
        false => answer.map(|answer| answer.ok_or(Interruption::Interrupt)),
    }
}

fn answer(input: &mut LineInput) -> io::Result<Option<UserAnswer>> {
    input.discard()?;
    loop {
        match input.read(&ApprovalPrompt)? {
            Signal::Success(line) => {
                if let Some(answer) = understood(&line) {
                    return Ok(Some(answer));
                }
                say(&format!("{ANSWERS}\n"));
            }
            Signal::CtrlD => return Ok(Some(UserAnswer::Denied(None))),
            _ => return Ok(None),
        }
    }
}

/// The question as it stands above the prompt.
pub(super) fn shown(question: &ApprovalQuestion, width: Option<usize>) -> String {
    let mut page = approval_text::call(&question.call, width);
    for step in &question.trace {
        page.dim(1, step);
    }
    page.line(0, &format!("It asks because: {}", question.reason));
    let tool = &question.call.tool;
    let exactly = format!("exactly this call of {tool}");
    page.line(0, &format!("o  once: {exactly}"));
    let (rule, rules) = match question.rules.as_slice() {
        [] => (exactly, &[][..]),
        [one] => (format!("what fits the rule {one}"), &[][..]),
        parts => (format!("what fits these {} rules", parts.len()), parts),
    };
    page.line(0, &format!("s  for this conversation: {rule}"));
    rules.iter().for_each(|rule| {
        page.line(1, rule);
    });
    let place = question.call.directory.as_deref().unwrap_or_default();
    page.line(0, &format!("a  always in {place}: the same, until /revoke"));
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
        Cow::Owned(format!("{BOLD}{LABEL}{BOLD:#}"))
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;
    use zeph_core::argument::Parameters;
    use zeph_core::id::ToolName;
    use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
    use zeph_store::BoundCall;

    use super::shown;
    use crate::approval::ApprovalQuestion;

    fn check(rules: &[&str], expect: &[&str]) {
        let tool = Tool {
            name: ToolName::new("bash").unwrap(),
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({ "type": "object" })).unwrap(),
            output: None,
            kind: ToolKind::Execute,
            annotations: Annotations::default(),
            backend: Backend::Builtin,
        };
        let arguments = json!({ "command": "make && make test" });
        let directory = Some(Path::new("/srv/a"));
        let call = BoundCall::new(&tool, None, arguments.as_object().unwrap(), directory);
        let question = ApprovalQuestion {
            call: call.shown().clone(),
            reason: "`bash` changes something".to_owned(),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            trace: Vec::new(),
            is_once: false,
        };
        let text = anstream::adapter::strip_str(&shown(&question, Some(80))).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let from = lines
            .iter()
            .position(|line| line.starts_with("o "))
            .unwrap();
        assert_eq!(lines[from..], *expect);
    }

    #[test]
    fn each_answer_names_the_rule_it_makes() {
        check(
            &[],
            &[
                "o  once: exactly this call of bash",
                "s  for this conversation: exactly this call of bash",
                "a  always in /srv/a: the same, until /revoke",
                "n  deny; `n REASON` tells the model why",
            ],
        );
        check(
            &["bash:make *"],
            &[
                "o  once: exactly this call of bash",
                "s  for this conversation: what fits the rule bash:make *",
                "a  always in /srv/a: the same, until /revoke",
                "n  deny; `n REASON` tells the model why",
            ],
        );
        check(
            &["bash:make", "bash:make test*"],
            &[
                "o  once: exactly this call of bash",
                "s  for this conversation: what fits these 2 rules",
                "    bash:make",
                "    bash:make test*",
                "a  always in /srv/a: the same, until /revoke",
                "n  deny; `n REASON` tells the model why",
            ],
        );
    }
}
