//! A run that is over, as a model and a program read it.

use serde_json::{Value, json};

use zeph_core::exit::CommandExit;

use super::capture::CapturedOutput;

/// The output of a command and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rendered {
    /// What the model reads: the output in the order of arrival, then how the command ended when it did not end well.
    pub(crate) text: String,
    /// `{stdout, stderr, exit_code, truncated}`, and `sandbox` when that is not the full jail.
    pub(crate) envelope: Value,
}

/// Puts it together. `lines` stand below the output, each on a line of its own; `sandbox` is named when it is not the full jail.
pub(crate) fn render(
    captured: CapturedOutput,
    exit: CommandExit,
    lines: impl IntoIterator<Item = String>,
    sandbox: Option<&str>,
) -> Rendered {
    let mut text = captured.text;
    let sandbox_line = sandbox.map(|label| format!("[sandbox: {label}]"));
    for line in lines.into_iter().chain(sandbox_line) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    let mut envelope = json!({
        "exit_code": exit.code(),
        "truncated": captured.n_cut > 0,
    });
    // Moved: the macro would copy them, and they may be as long as all that is kept.
    envelope["stdout"] = Value::String(captured.stdout);
    envelope["stderr"] = Value::String(captured.stderr);
    if let Some(label) = sandbox {
        envelope["sandbox"] = json!(label);
    }
    Rendered { text, envelope }
}
