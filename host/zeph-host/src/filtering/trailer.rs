//! The lines that the shell room puts below a command's output: how it ended, and in which jail. They are the host's words and no
//! output: no rule sees them, and none can take them away.

use serde_json::Value;

/// An output and what stands below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    /// What the command printed.
    pub(super) body: String,
    trailer: String,
    /// Bytes of the text beyond the body: the trailer, and the line feed before it if the command printed none.
    pub(super) n_added: usize,
}

impl Parts {
    /// A text without any.
    pub(super) fn without_trailer(text: &str) -> Self {
        Self {
            body: text.to_owned(),
            trailer: String::new(),
            n_added: 0,
        }
    }

    /// Another text with the same lines below it.
    pub(super) fn with_trailer(&self, text: &str) -> String {
        let has_end = text.is_empty() || text.ends_with('\n') || self.trailer.is_empty();
        let end = if has_end { "" } else { "\n" };
        format!("{text}{end}{}", self.trailer)
    }
}

/// Takes a text apart by the envelope that came with it. The envelope tells how many lines there are, so no output can pass for
/// one of them.
pub(super) fn split(text: &str, envelope: Option<&Value>) -> Parts {
    let n_lines = envelope.map_or(0, n_lines);
    let mut start = text.len();
    for _ in 0..n_lines {
        start = text[..start.saturating_sub(1)]
            .rfind('\n')
            .map_or(0, |end| end + 1);
    }
    let has_added_end =
        n_lines > 0 && envelope.is_some_and(|envelope| is_end_added(envelope, start));
    let end = match has_added_end && text[..start].ends_with('\n') {
        true => start - 1,
        false => start,
    };
    Parts {
        body: text[..end].to_owned(),
        trailer: text[start..].to_owned(),
        n_added: text.len() - end,
    }
}

/// Whether the last of the `n_bytes` of what was printed is a line feed that the host added. Of streams whose middle is omitted, the ends
/// say it; where both have something, nobody knows which one printed last.
fn is_end_added(envelope: &Value, n_bytes: usize) -> bool {
    let stream = |name: &str| envelope.get(name).and_then(Value::as_str);
    let (Some(out), Some(err)) = (stream("stdout"), stream("stderr")) else {
        return false;
    };
    if envelope.get("truncated") != Some(&Value::Bool(true)) {
        return out.len() + err.len() + 1 == n_bytes;
    }
    match (out, err) {
        ("", "") => false,
        (one, "") | ("", one) => !one.ends_with('\n'),
        _ => false,
    }
}

/// One line for every end but a good one, one for every jail but the full one.
fn n_lines(envelope: &Value) -> usize {
    let Some(exit_code) = envelope.get("exit_code") else {
        return 0;
    };
    let ended_well = exit_code.as_i64() == Some(0);
    let has_label = envelope.get("sandbox").is_some();
    usize::from(!ended_well) + usize::from(has_label)
}
