//! The status line: model, tokens, cost, cache hits, calls and context; `~` stands before what is partly an estimate. Pure.

use std::fmt;

use zeph_agent::{Cost, Usage};
use zeph_core::failure::one_line;
use zeph_core::text::counted;

/// Characters of the line, as far as the name of the model can be shortened.
const LINE_CHARS_MAX: usize = 80;

/// Characters of the name of a model, whatever else is in the line.
const MODEL_CHARS_MIN: usize = 8;
const MODEL_CHARS_MAX: usize = 17;

/// What a conversation has used up so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ChatStatus {
    /// The model in use.
    pub(super) model: String,
    /// Of the session.
    pub(super) usage: Usage,
    /// Of the session, as far as prices are known; `None` when none is.
    pub(super) cost: Option<Cost>,
    /// Of the last request.
    pub(super) last: Option<Usage>,
    /// Calls made.
    pub(super) calls: u64,
    /// Tokens of the context now.
    pub(super) context_tokens: u64,
    /// `agent.context_budget_tokens`.
    pub(super) context_max: u64,
}

impl fmt::Display for ChatStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = self.counters();
        // One is for the mark of a name that is cut.
        let left = LINE_CHARS_MAX.saturating_sub(counters.chars().count() + 1);
        let model = one_line(&self.model, left.clamp(MODEL_CHARS_MIN, MODEL_CHARS_MAX));
        write!(f, "{model}{counters}")
    }
}

impl ChatStatus {
    /// What follows the name of the model.
    fn counters(&self) -> String {
        let tokens = short(self.usage.total());
        let about = self.usage.mark();
        let mut line = format!(" · {about}{tokens} tokens");
        if let Some(cost) = self.cost {
            line.push_str(&format!(" · {about}{cost}"));
        }
        let read = self.last.map(|last| (last.cache_read, last.prompt()));
        if let Some((cached, all @ 1..)) = read {
            line.push_str(&format!(" · cache {}%", cached * 100 / all));
        }
        let context = self.context_tokens.saturating_mul(100) / self.context_max.max(1);
        let calls = counted(self.calls, "call", "calls");
        line.push_str(&format!(" · {calls} · context {context}%"));
        line
    }
}

/// A number of tokens: exact while it is small.
fn short(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use zeph_agent::{Cost, Usage};

    use super::ChatStatus;

    #[test]
    fn the_line_fits_into_80_columns() {
        let usage = Usage {
            input: 300_000,
            cache_read: 700_000,
            ..Usage::default()
        };
        let status = ChatStatus {
            model: "a-model-with-a-long-name-of-its-own".to_owned(),
            usage,
            cost: Some(Cost::default()),
            last: Some(usage),
            calls: 120,
            context_tokens: 50_000,
            context_max: 100_000,
        };
        let line = status.to_string();
        assert!(line.chars().count() <= 80, "{line}");
        assert!(
            line.ends_with("· 1.0M tokens · $0.0000 · cache 70% · 120 calls · context 50%"),
            "{line}"
        );
    }

    #[test]
    fn a_cost_that_is_not_known_is_not_shown() {
        let mut status = ChatStatus::default();
        assert!(!status.to_string().contains('$'), "{status}");
        status.cost = Some(Cost::default());
        assert!(status.to_string().contains(" · $0.0000"), "{status}");
    }

    #[test]
    fn what_is_estimated_is_marked() {
        let mut status = ChatStatus {
            model: "a-model-with-a-long-name-of-its-own".to_owned(),
            usage: Usage {
                input: 999_999,
                output: 10,
                estimated: 10,
                ..Usage::default()
            },
            cost: Some(Cost::default()),
            calls: 1_000,
            context_tokens: 100,
            context_max: 100,
            ..ChatStatus::default()
        };
        let line = status.to_string();
        assert!(line.contains("· ~1.0M tokens · ~$0.0000 ·"), "{line}");
        status.last = Some(Usage {
            cache_read: 1,
            ..Usage::default()
        });
        let line = status.to_string();
        assert!(line.chars().count() <= 80, "{line}");
        status.usage.estimated = 0;
        assert!(!status.to_string().contains('~'), "{status}");
    }
}
