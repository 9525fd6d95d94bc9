//! An output that no call printed: of a command a person runs, of another agent's, of a log. The original is kept under a
//! conversation of its own, or stays with whoever has it.

use zeph_core::command::CommandLine;
use zeph_core::id::{ConversationId, OverflowId};
use zeph_filter::Loss;
use zeph_store::Store;

use super::{Filtering, Shortened, Strategies};
use crate::clock::now_ms;
use crate::config::Config;

/// The conversation of such outputs; its last part spells "filter".
const CONVERSATION: uuid::Uuid = uuid::uuid!("00000000-0000-7000-8000-66696c746572");

/// Who has the original of what is shortened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Original<'a> {
    /// The caller.
    Elsewhere,
    /// The store. The program's name is for the command that reads it back.
    Stored {
        store: &'a Store,
        config: &'a Config,
        program: &'a str,
    },
}

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alone {
    /// `None`: the output itself.
    pub(crate) text: Option<String>,
    /// For whoever watches, one sentence each.
    pub(crate) remarks: Vec<String>,
}

/// The conversation under which originals are stored.
pub(crate) fn conversation() -> ConversationId {
    CONVERSATION.into()
}

/// What is to be shown of an output.
///
/// Errors: none; what cannot be kept is shown whole, with a remark.
pub(crate) async fn show(
    filtering: &Filtering,
    strategies: &Strategies,
    line: &CommandLine,
    exit_code: Option<i32>,
    raw: &[u8],
    original: Original<'_>,
) -> Alone {
    let shortened = filtering.shorten(line, exit_code, raw, &**strategies);
    let is_worth_it = shortened.is_worth_it(raw.len());
    let Shortened {
        filtered,
        line,
        warning,
        counted,
        ..
    } = shortened;
    let mut remarks = filtered.notes;
    remarks.extend(warning);
    let is_lossy = filtered.loss != Loss::None;
    let is_same = filtered.text.as_bytes() == raw;
    let mut text = (is_worth_it && !is_same).then(|| filtered.text.into_owned());
    let mut kept = None;
    if let (Original::Stored { store, config, .. }, true, true) =
        (original, is_lossy, text.is_some())
    {
        match keep(store, config, raw, &filtered.rules).await {
            Ok(id) => kept = Some(id),
            Err(why) => {
                text = None;
                remarks.push(format!("nothing is left out, because {why}"));
            }
        }
    }
    if let (Original::Stored { store, .. }, Some(mut counted)) = (original, counted) {
        counted.is_shortened &= text.is_some();
        store.count_filtered(conversation(), counted, now_ms());
    }
    if let (Some(text), true) = (&mut text, is_lossy) {
        let notice = kept.map(|id| notice(original, id, raw.len()));
        for below in notice.into_iter().chain(line) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&below);
            text.push('\n');
        }
    }
    Alone { text, remarks }
}

fn notice(original: Original<'_>, id: OverflowId, n_bytes: usize) -> String {
    let program = match original {
        Original::Elsewhere => "zeph-host",
        Original::Stored { program, .. } => program,
    };
    format!("[full output stored — {n_bytes} bytes, `{program} filter --read {id}` prints it]")
}

/// Stores an original.
///
/// Errors: why it cannot be, as the end of a sentence.
async fn keep(
    store: &Store,
    config: &Config,
    raw: &[u8],
    rules: &[String],
) -> Result<OverflowId, String> {
    let bytes_max = config.overflow.max_bytes;
    if raw.len() as u64 > bytes_max {
        return Err(format!(
            "the whole cannot be kept: {} bytes are more than {bytes_max} (`tools.overflow.max_overflow_bytes`)",
            raw.len()
        ));
    }
    let stored = store.put_filtered(conversation(), raw.to_vec(), rules.to_vec(), now_ms());
    stored
        .await
        .map_err(|error| format!("the whole cannot be kept: {error}"))
}
