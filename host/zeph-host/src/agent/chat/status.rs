//! The status line: model, tokens, cost, cache hits, calls and context. Pure.

use std::fmt;

use zeph_agent::{Cost, Usage};
use zeph_core::failure::one_line;

/// Characters of the name of a model: the line fits into 80 columns.
const MODEL_CHARS_MAX: usize = 17;

/// What a conversation has used up so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ChatStatus {
    /// The model in use.
    pub(super) model: String,
    /// Of the session.
    pub(super) usage: Usage,
    /// Of the session, as far as prices are known.
    pub(super) cost: Cost,
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
        let model = one_line(&self.model, MODEL_CHARS_MAX);
        let tokens = short(self.usage.total());
        write!(f, "{model} · {tokens} tokens · {}", self.cost)?;
        let read = self.last.map(|last| (last.cache_read, last.prompt()));
        if let Some((cached, all @ 1..)) = read {
            write!(f, " · cache {}%", cached * 100 / all)?;
        }
        let context = self.context_tokens.saturating_mul(100) / self.context_max.max(1);
        let calls = counted(self.calls, "call");
        write!(f, " · {calls} · context {context}%")
    }
}

/// `1 call`, `2 calls`.
pub(super) fn counted(n: u64, what: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{n} {what}{end}")
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
    use zeph_agent::Usage;

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
            last: Some(usage),
            calls: 120,
            context_tokens: 50_000,
            context_max: 100_000,
            ..ChatStatus::default()
        };
        let line = status.to_string();
        assert!(line.chars().count() <= 80, "{line}");
        assert!(
            line.ends_with("· 1.0M tokens · $0.0000 · cache 70% · 120 calls · context 50%"),
            "{line}"
        );
    }
}
