//! Fits a result into what a model should get at once, and keeps the full text when something was cut.

use zeph_core::output::{Content, Outcome, RawOutput, ToolOutput, cut};

use crate::clock::now_ms;
use crate::host::Inner;
use crate::session::Session;

/// Cuts the text to the configured threshold; the full text goes to the store and the output carries its handle.
pub(crate) async fn fit(
    host: &Inner,
    session: &Session,
    raw: RawOutput,
    notes: Vec<String>,
) -> ToolOutput {
    let full = raw.to_text();
    let (mut overflow, mut is_cut) = (None, false);
    let mut text = match cut(&full, host.config.overflow.threshold_chars) {
        None => full,
        Some(cut) => {
            let shown = format!(
                "{}\n[… {} characters left out …]\n{}",
                cut.head.trim_end_matches('\n'),
                cut.n_chars_left_out,
                cut.tail
            );
            let (stored, notice) = store(host, session, &full).await;
            (overflow, is_cut) = (stored, true);
            format!("{shown}\n{notice}")
        }
    };
    for note in &notes {
        text.push_str("\n[note] ");
        text.push_str(note);
    }
    ToolOutput {
        outcome: Outcome::Done,
        text,
        structured: raw.structured,
        attachments: raw
            .content
            .into_iter()
            .filter(|content| !matches!(content, Content::Text(_)))
            .collect(),
        locations: raw.locations,
        notes,
        is_cut,
        overflow,
    }
}

/// Stores the full text. Returns its handle, if it could be stored, and the line that tells the model.
async fn store(
    host: &Inner,
    session: &Session,
    full: &str,
) -> (Option<zeph_core::id::OverflowId>, String) {
    let n_bytes = full.len();
    let bytes_max = host.config.overflow.max_bytes;
    if n_bytes as u64 > bytes_max {
        let notice = format!(
            "[full output not stored: {n_bytes} bytes are more than {bytes_max} (`tools.overflow.max_overflow_bytes`)]"
        );
        return (None, notice);
    }
    let stored = host
        .store
        .put_overflow(session.conversation, full.as_bytes().to_vec(), now_ms())
        .await;
    match stored {
        Ok(id) => {
            let notice = format!(
                "[full output stored — ID: overflow:{id} — {n_bytes} bytes, use read_overflow tool to retrieve]"
            );
            (Some(id), notice)
        }
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the full output cannot be stored"
            );
            (
                None,
                "[full output not stored: the store failed]".to_owned(),
            )
        }
    }
}
