//! Fits a result into what a model should get at once, and keeps the full text when something was omitted of it.

use std::borrow::Cow;
use std::time::Duration;

use moka::sync::Cache;
use sha2::{Digest as _, Sha256};
use zeph_config::OverflowConfig;
use zeph_core::id::{ConversationId, OverflowId};
use zeph_core::output::{Content, Outcome, ToolOutput, cut};
use zeph_store::{Store, StoreError};

use crate::clock::now_ms;
use crate::filtering::{self, FilteredResult, Shorter};

/// Most characters that a caller can have of one result beyond the configured threshold.
const WANTED_CHARS_MAX: usize = 131_072;

/// Characters that a page of a stored text has room for, however low the threshold is: a page that is cut and stored again could not be
/// read back either.
pub(crate) const PAGE_CHARS_MIN: usize = 500;

/// Of these, characters that are kept free for the lines below a page.
const PAGE_NOTICE_CHARS: usize = 300;

/// How many stored texts are remembered.
const RECENT_MAX: u64 = 1_000;

/// How long they are: a small part of the time for which a text stays in the store (`tools.overflow.retention_days`).
const RECENT_TIME: Duration = Duration::from_secs(3_600);

/// How the line ends that stands for the middle of a text that is too long.
pub(crate) const OMITTED: &str = " characters omitted …]";

/// How the line begins that says where a full text is.
pub(crate) const STORED: &str = "[full output stored — ID: overflow:";

/// The store as this stage uses it, and how long a text may be.
#[derive(Debug, Clone)]
pub(crate) struct Overflow {
    store: Store,
    settings: OverflowConfig,
    /// What was stored lately: a result that is used again has its text there already.
    recent: Cache<StoredKey, OverflowId>,
}

/// What two stored texts have in common that are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StoredKey {
    conversation: ConversationId,
    full: [u8; 32],
    rules: Vec<String>,
}

impl Overflow {
    pub(crate) fn new(store: Store, settings: OverflowConfig) -> Self {
        let recent = Cache::builder().max_capacity(RECENT_MAX);
        Self {
            store,
            settings,
            recent: recent.time_to_live(RECENT_TIME).build(),
        }
    }

    /// Where full texts are.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Characters of a stored text on one page.
    pub(crate) fn page_chars(&self) -> usize {
        page_chars(self.settings.threshold_chars)
    }

    /// The threshold of a call whose caller would take `wanted` characters: it can be raised, within bounds, and never lowered.
    fn threshold_for(&self, wanted: Option<usize>) -> usize {
        let raised = wanted.map_or(0, |wanted| wanted.min(WANTED_CHARS_MAX));
        raised.max(self.settings.threshold_chars)
    }
}

/// Characters of a page, where results may have so many.
pub(crate) fn page_chars(threshold_chars: usize) -> usize {
    threshold_chars.max(PAGE_CHARS_MIN) - PAGE_NOTICE_CHARS
}

/// Cuts the text to the configured threshold, or to what the caller can have; the full text goes to the store and the output carries its handle.
///
/// A text that rules shortened is shown only when its original is stored; otherwise what the tool gave is.
pub(crate) async fn fit(
    room: &Overflow,
    (conversation, wanted_chars): (ConversationId, Option<usize>),
    shown: FilteredResult,
    mut notes: Vec<String>,
) -> ToolOutput {
    let FilteredResult {
        mut raw,
        n_added,
        shorter,
        notes: of_filters,
        counted,
    } = shown;
    notes.extend(of_filters);
    // One text is moved: a copy of the longest would be as long as all a call may print.
    let mut full = match raw.content.as_mut_slice() {
        [Content::Text(text)] => std::mem::take(text),
        _ => raw.to_text(),
    };
    let OutputBody {
        text,
        line,
        mut kept,
    } = body(room, conversation, shorter, &full).await;
    let is_shortened = kept.is_some();
    let is_whole = matches!(text, Cow::Borrowed(_));
    let text = match head_and_tail(&text, room.threshold_for(wanted_chars)) {
        None => match text {
            Cow::Owned(text) => text,
            // The text itself, not a copy of it.
            Cow::Borrowed(_) => full,
        },
        Some(shown) => {
            if !is_shortened {
                // How a command ended is shown, and is none of its bytes.
                full.truncate(full.len().saturating_sub(n_added));
                kept = Some(keep(room, (conversation, None), full, Vec::new()).await);
            }
            shown
        }
    };
    if let Some(counted) = counted {
        let counted = match is_whole {
            true => filtering::counted_whole(counted),
            false => counted,
        };
        room.store.count_filtered(conversation, counted, now_ms());
    }
    let is_cut = kept.is_some();
    raw.content
        .retain(|content| !matches!(content, Content::Text(_)));
    let (overflow, notice) = kept.map_or((None, None), |kept| (kept.id, Some(kept.notice)));
    ToolOutput {
        outcome: Outcome::Done,
        text: with_lines_below(text, notice.into_iter().chain(line), &notes),
        structured: raw.structured,
        attachments: raw.content,
        locations: raw.locations,
        notes,
        is_cut,
        overflow,
    }
}

/// A text that is too long, without its middle.
fn head_and_tail(text: &str, chars_max: usize) -> Option<String> {
    let cut = cut(text, chars_max)?;
    Some(format!(
        "{}\n[… {}{OMITTED}\n{}",
        cut.head.trim_end_matches('\n'),
        cut.n_chars_left_out,
        cut.tail
    ))
}

/// What is shown, before it is cut.
struct OutputBody<'a> {
    text: Cow<'a, str>,
    /// The line of savings.
    line: Option<String>,
    /// Where the full text is, when something was omitted.
    kept: Option<StoredText>,
}

/// The shorter text when what it lacks is stored, else the full one.
async fn body<'a>(
    room: &Overflow,
    conversation: ConversationId,
    shorter: Option<Shorter>,
    full: &'a str,
) -> OutputBody<'a> {
    let whole = || OutputBody {
        text: Cow::Borrowed(full),
        line: None,
        kept: None,
    };
    let Some(Shorter {
        text,
        line,
        original,
        rules,
        handle,
    }) = shorter
    else {
        return whole();
    };
    let Some(original) = original else {
        return OutputBody {
            text: Cow::Owned(text),
            line,
            kept: None,
        };
    };
    let kept = keep(room, (conversation, handle), original, rules).await;
    match kept.id {
        Some(_) => OutputBody {
            text: Cow::Owned(text),
            line,
            kept: Some(kept),
        },
        None => whole(),
    }
}

fn with_lines_below(
    mut text: String,
    lines: impl Iterator<Item = String>,
    notes: &[String],
) -> String {
    for line in lines {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    for note in notes {
        text.push_str("\n[note] ");
        text.push_str(note);
    }
    text
}

/// Whether a full text was stored.
struct StoredText {
    /// Its handle, if it could be stored.
    id: Option<OverflowId>,
    /// The line that tells the model.
    notice: String,
}

impl StoredText {
    fn not_stored(why: &str) -> Self {
        Self {
            id: None,
            notice: format!("[full output not stored: {why}]"),
        }
    }
}

/// Stores a full text, under `handle` where what is shown names that already; `rules` shortened what is shown of it.
async fn keep(
    room: &Overflow,
    (conversation, handle): (ConversationId, Option<OverflowId>),
    full: String,
    rules: Vec<String>,
) -> StoredText {
    let n_bytes = full.len();
    let bytes_max = room.settings.max_bytes;
    if n_bytes as u64 > bytes_max {
        return StoredText::not_stored(&format!(
            "{n_bytes} bytes are more than {bytes_max} (`tools.overflow.max_overflow_bytes`)"
        ));
    }
    match store(room, (conversation, handle), full.into_bytes(), rules).await {
        Ok(id) => StoredText {
            id: Some(id),
            notice: format!("{STORED}{id} — {n_bytes} bytes, use read_overflow tool to retrieve]"),
        },
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the full output cannot be stored"
            );
            StoredText::not_stored("the store failed")
        }
    }
}

async fn store(
    room: &Overflow,
    (conversation, handle): (ConversationId, Option<OverflowId>),
    full: Vec<u8>,
    rules: Vec<String>,
) -> Result<OverflowId, StoreError> {
    if let Some(handle) = handle {
        let put = (room.store).put_overflow_as(handle, conversation, full, rules, now_ms());
        return put.await;
    }
    let key = StoredKey {
        conversation,
        full: Sha256::digest(&full).into(),
        rules: rules.clone(),
    };
    if let Some(known) = room.recent.get(&key)
        // A conversation may have been deleted meanwhile.
        && room.store.overflow(conversation, known).await?.as_ref() == Some(&full)
    {
        return Ok(known);
    }
    let id = OverflowId::new();
    let put = (room.store).put_overflow_as(id, conversation, full, rules, now_ms());
    put.await.inspect(|id| room.recent.insert(key, *id))
}
