//! An output that no call printed: of a command a person runs, of another agent's, of a log. The original is kept under a
//! conversation of its own, or stays with its owner.

use std::sync::Arc;

use zeph_config::Config;
use zeph_core::command::CommandLine;
use zeph_core::id::{ConversationId, OverflowId};
use zeph_filter::{Foreign, Loss};
use zeph_store::{FilteredOutput, Store};

use super::{Filtering, Shortened, Strategies, counted_whole};
use crate::clock::now_ms;

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

/// What was printed, and by what.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) line: CommandLine,
    /// `None` when it did not end by itself.
    pub(crate) exit_code: Option<i32>,
    pub(crate) raw: Vec<u8>,
}

/// The bytes of an output, shared: the longest are not copied to be stored.
struct Raw(Arc<Printed>);

impl AsRef<[u8]> for Raw {
    fn as_ref(&self) -> &[u8] {
        &self.0.raw
    }
}

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StandaloneOutput {
    /// `None`: the output itself.
    pub(crate) text: Option<String>,
    /// For the user, one sentence each.
    pub(crate) remarks: Vec<String>,
}

/// The conversation under which originals are stored.
pub(crate) fn conversation() -> ConversationId {
    CONVERSATION.into()
}

/// What came of looking at an output.
#[derive(Debug)]
pub(crate) struct Looked {
    /// `None`: the output itself.
    text: Option<String>,
    remarks: Vec<String>,
    is_lossy: bool,
    rules: Vec<String>,
    counted: Option<FilteredOutput>,
    /// The line of savings.
    line: Option<String>,
}

/// Looks at an output, on a thread of its own: strategies may block.
///
/// None when that failed in the host, which the log tells of.
pub(crate) async fn look(
    filtering: &Filtering,
    strategies: Strategies,
    printed: &Arc<Printed>,
) -> Option<Looked> {
    let (filtering, printed) = (filtering.clone(), Arc::clone(printed));
    let work = move || Looked::new(&filtering, &*strategies, &printed);
    let looked = tokio::task::spawn_blocking(work).await;
    looked
        .inspect_err(|error| tracing::error!(%error, "filtering failed in the host"))
        .ok()
}

impl Looked {
    fn new(filtering: &Filtering, strategies: &dyn Foreign, printed: &Printed) -> Self {
        let Printed {
            line,
            exit_code,
            raw,
        } = printed;
        let shortened = filtering.shorten(line, *exit_code, raw, strategies);
        let is_shown = shortened.is_shown();
        let Shortened {
            filtered,
            line,
            counted,
            ..
        } = shortened;
        let is_same = filtered.text.as_bytes() == raw.as_slice();
        // What is no text is passed on as it is: making it readable would break it.
        let is_data = filtered.rules.is_empty() && !is_text(raw);
        Self {
            is_lossy: filtered.loss != Loss::None,
            text: (is_shown && !is_same && !is_data).then(|| filtered.text.into_owned()),
            remarks: filtered.notes,
            rules: filtered.rules,
            counted,
            line,
        }
    }

    /// Whether there is something to store or to count.
    pub(crate) fn needs_store(&self) -> bool {
        self.counted.is_some() || self.is_shortened()
    }

    fn is_shortened(&self) -> bool {
        self.is_lossy && self.text.is_some()
    }

    /// The output itself, with what there is to remark.
    pub(crate) fn whole(self) -> StandaloneOutput {
        StandaloneOutput {
            text: None,
            remarks: self.remarks,
        }
    }

    /// What is to be shown of it, once the original is where it can be read back.
    ///
    /// Errors: none; what cannot be kept is shown whole, with a remark.
    pub(crate) async fn show(
        self,
        printed: &Arc<Printed>,
        original: Original<'_>,
    ) -> StandaloneOutput {
        let is_shortened = self.is_shortened();
        let Self {
            mut text,
            mut remarks,
            rules,
            counted,
            line,
            ..
        } = self;
        let mut notice = None;
        if let Original::Stored {
            store,
            config,
            program,
        } = original
        {
            if is_shortened {
                match keep(store, config, Raw(Arc::clone(printed)), rules).await {
                    Ok(id) => notice = Some(told(program, id, printed.raw.len())),
                    Err(why) => {
                        text = None;
                        remarks.push(format!("nothing is omitted, because {why}"));
                    }
                }
            }
            if let Some(counted) = counted {
                let counted = match text {
                    Some(_) => counted,
                    None => counted_whole(counted),
                };
                store.count_filtered(conversation(), counted, now_ms());
            }
        }
        if let Some(text) = text.as_mut().filter(|_| is_shortened) {
            add_below(text, notice.into_iter().chain(line));
        }
        StandaloneOutput { text, remarks }
    }
}

fn add_below(text: &mut String, lines: impl Iterator<Item = String>) {
    for line in lines {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
        text.push('\n');
    }
}

fn is_text(raw: &[u8]) -> bool {
    std::str::from_utf8(raw).is_ok_and(|text| !text.contains('\0'))
}

fn told(program: &str, id: OverflowId, n_bytes: usize) -> String {
    format!("[full output stored — {n_bytes} bytes, `{program} filter --read {id}` prints it]")
}

/// Stores an original.
///
/// Errors: why it cannot be, as the end of a sentence.
async fn keep(
    store: &Store,
    config: &Config,
    raw: Raw,
    rules: Vec<String>,
) -> Result<OverflowId, String> {
    let bytes_max = config.overflow.max_bytes;
    let n_bytes = raw.as_ref().len();
    if n_bytes as u64 > bytes_max {
        return Err(format!(
            "the whole cannot be kept: {} bytes are more than {bytes_max} (`tools.overflow.max_overflow_bytes`)",
            n_bytes
        ));
    }
    let (conversation, at_ms) = (conversation(), now_ms());
    let stored = match rules.is_empty() {
        true => store.put_overflow(conversation, raw, at_ms).await,
        false => store.put_filtered(conversation, raw, rules, at_ms).await,
    };
    stored.map_err(|error| format!("the whole cannot be kept: {error}"))
}
