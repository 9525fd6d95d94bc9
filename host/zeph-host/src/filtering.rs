//! Stage 5 of the line: less text for the model, with nothing lost. Rules and invariants are the filter room's; here they meet
//! the configuration, the outputs of calls, and the record of what was saved.
//!
//! In reading order: `rules` (which rules there are), this file (one output), `trailer` (what the host itself added to it), `wasm` (strategies in
//! components) with `absent` (why there is none of a name), `searched` (results that no rule is for), `alone` (outputs of no call) with `on_demand` (plugins for those).
//! What is shortened is only shown once the whole is stored: that is for the overflow stage, or for another caller.

mod absent;
pub(crate) mod on_demand;
mod rules;
pub(crate) mod search_results;
pub(crate) mod standalone;
mod trailer;
pub(crate) mod wasm;

use std::sync::Arc;
use std::time::Duration;

use zeph_config::Config;
use zeph_core::command::CommandLine;
use zeph_core::id::OverflowId;
use zeph_core::output::{Content, RawOutput};
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Backend;
use zeph_filter::secret::{self, Secret, Secrets};
use zeph_filter::{Confidence, Filtered, Filters, Foreign, Loss, Output, Rule, stats};
use zeph_plugins::set::PluginSet;
use zeph_shell::analysis::analyse;
use zeph_store::{FilteredOutput, RuleCoverage};

use self::trailer::Parts;
use self::wasm::{Components, SessionStrategies};
use crate::offers::Offers;

pub(crate) use self::search_results::KnownWarnings;

/// From so many bytes on an output is looked at on a thread that may block: a rule takes some milliseconds for a megabyte.
pub(crate) const BLOCKING_BYTES_MIN: usize = 32 * 1024;

/// What is left to say of a shortened output besides its text: the handle of the whole, and the line of savings.
const NOTICE_BYTES_MAX: usize = 200;

/// How long an output waits for plugins that are still being looked at, when a rule for it names a strategy that is not there yet.
/// Compiling a component of the slowest language takes longer; then the output is shown whole.
const PLUGINS_WAIT: Duration = Duration::from_secs(10);

/// The strategies of one session's components.
pub(crate) type Strategies = Arc<dyn Foreign + Send + Sync>;

/// The rules in force, and what else is told of outputs. Immutable; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Filtering(Arc<LoadedFilters>);

#[derive(Debug)]
struct LoadedFilters {
    is_enabled: bool,
    filters: Filters,
    /// Tools besides `bash`.
    tools: Vec<String>,
    secrets: Option<Secrets>,
}

/// What an output is the output of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputSubject {
    /// A command.
    Command(Box<CommandLine>),
    /// A tool that the operator named, whose name stands for a command.
    Tool(Box<CommandLine>),
    /// Something that is shown as it is.
    Other,
}

/// An output on its way to the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FilteredResult {
    /// As the tool gave it.
    pub(crate) raw: RawOutput,
    /// Bytes at the end of its text that the host added to what a command printed.
    pub(crate) n_added: usize,
    /// What is shown of its text, when that is not all of it.
    pub(crate) shorter: Option<Shorter>,
    /// What the caller should know, one sentence each.
    pub(crate) notes: Vec<String>,
    /// For the sums of what was saved, when rules were tried.
    pub(crate) counted: Option<FilteredOutput>,
}

/// What is shown in place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shorter {
    /// The text, what the host added to it included.
    pub(crate) text: String,
    /// The line that tells how much was omitted: `[shell] 342 lines -> 28 lines, 91.8% filtered`.
    pub(crate) line: Option<String>,
    /// What was omitted of, to be stored; `None` when only control characters were.
    pub(crate) original: Option<String>,
    /// The rules that worked.
    pub(crate) rules: Vec<String>,
    /// The handle of the original, when the text names it.
    pub(crate) handle: Option<OverflowId>,
}

impl FilteredResult {
    /// An output that is shown as it is.
    pub(crate) fn whole(raw: RawOutput) -> Self {
        Self {
            raw,
            ..Self::default()
        }
    }

    /// What was printed of an output that is one text and nothing else.
    pub(crate) fn printed(&self) -> Option<&str> {
        let text = only_text(&self.raw)?;
        Some(&text[..text.len().saturating_sub(self.n_added)])
    }
}

impl Filtering {
    /// Loads the rules.
    ///
    /// Returns with it what the operator should know: every rule that is not used, and why.
    pub(crate) fn new(config: &Config) -> (Self, Vec<String>) {
        let settings = &config.filters;
        let (filters, mut warnings) = rules::load(settings.rule_file.as_ref());
        let secrets = settings.finds_secrets.then(|| {
            let (secrets, unused) = Secrets::new(&settings.extra_patterns);
            warnings.extend(
                unused
                    .iter()
                    .map(|why| format!("`tools.filters.security.extra_patterns`: {why}")),
            );
            secrets
        });
        let loaded = LoadedFilters {
            is_enabled: settings.enabled,
            filters,
            tools: settings.tools.clone(),
            secrets,
        };
        (Self(Arc::new(loaded)), warnings)
    }

    /// The rules in force, for listings.
    pub(crate) fn filters(&self) -> &Filters {
        &self.0.filters
    }

    /// Whether any rule names a strategy of a plugin.
    pub(crate) fn needs_plugins(&self) -> bool {
        let mut rules = self.filters().of_user();
        self.0.is_enabled && rules.any(|rule| rule.foreign().is_some())
    }

    /// What the output of `call` will be the output of.
    pub(crate) fn subject<W>(&self, call: &AuthorizedCall<W>) -> OutputSubject {
        let tool = call.tool();
        match (&tool.backend, call.command()) {
            (Backend::Shell, Some(line)) => OutputSubject::Command(Box::new(line.clone())),
            _ if self.0.tools.iter().any(|name| name == tool.name.as_str()) => {
                OutputSubject::Tool(Box::new(analyse(tool.name.as_str())))
            }
            _ => OutputSubject::Other,
        }
    }

    /// Whether a rule is for this command: then strategies will work, which may block.
    pub(crate) fn acts_on(&self, line: &CommandLine) -> bool {
        self.0.is_enabled && !self.0.filters.why(line).acting.is_empty()
    }

    /// The rules for this command that name a strategy of a plugin.
    pub(crate) fn rules_of_plugins(&self, line: &CommandLine) -> Vec<&Rule> {
        if !self.needs_plugins() {
            return Vec::new();
        }
        let acting = self.filters().why(line).acting;
        (self.filters().of_user())
            .filter(|rule| rule.foreign().is_some() && acting.contains(&rule.name))
            .collect()
    }

    /// Shortens one text, as it is. Where what that saves is not worth its notice, control sequences alone are taken out.
    pub(crate) fn shorten<'a>(
        &self,
        line: &CommandLine,
        exit_code: Option<i32>,
        raw: &'a [u8],
        strategies: &dyn Foreign,
    ) -> Shortened<'a> {
        let output = Output {
            command: Some(line).filter(|_| self.0.is_enabled),
            exit_code,
            raw,
        };
        let mut filtered = self.0.filters.apply(&output, strategies);
        let is_worth_it = filtered.text.len() + NOTICE_BYTES_MAX <= raw.len();
        if filtered.loss != Loss::None && !is_worth_it {
            filtered = filtered.whole(raw);
        }
        let found = self.0.secrets.as_ref();
        let found = found.map(|secrets| secrets.scan_filtered(raw, &filtered));
        filtered
            .notes
            .extend(found.as_deref().and_then(secret::warning));
        Shortened {
            is_enabled: self.0.is_enabled,
            counted: counted(&filtered),
            // Blank lines that are folded are no loss, and nothing to tell of.
            line: stats::line(&filtered).filter(|_| filtered.loss != Loss::None),
            filtered,
        }
    }

    /// What looks like a credential in a text that no rule is for: one sentence that names kinds and lines.
    pub(crate) fn warning(&self, text: &str) -> Option<String> {
        secret::warning(&self.found(text))
    }

    /// What looks like a credential in a text; nothing when that is not looked for.
    fn found(&self, text: &str) -> Vec<Secret> {
        let secrets = self.0.secrets.as_ref();
        secrets.map_or_else(Vec::new, |secrets| secrets.scan(text.as_bytes()))
    }
}

/// What is counted of an output; nothing when no rule was tried.
fn counted(filtered: &Filtered<'_>) -> Option<FilteredOutput> {
    let fit = match filtered.confidence? {
        Confidence::Full => RuleCoverage::Full,
        Confidence::Partial => RuleCoverage::Partial,
        Confidence::Fallback => RuleCoverage::Fallback,
    };
    let is_shortened = filtered.loss != Loss::None && !filtered.rules.is_empty();
    let rules = match is_shortened {
        true => &filtered.rules,
        // Rules that were tried in vain are told apart too.
        false => &filtered.tried,
    };
    let size = filtered.size;
    let pair = |before: usize, after: usize| (before as u64, after as u64);
    Some(FilteredOutput {
        rules: rules.clone(),
        is_shortened,
        lines: pair(size.lines_before, size.lines_after),
        bytes: pair(size.bytes_before, size.bytes_after),
        fit,
    })
}

/// The count of an output that is shown as it was printed after all: nothing was saved.
pub(crate) fn counted_whole(counted: FilteredOutput) -> FilteredOutput {
    let (n_lines, n_bytes) = (counted.lines.0, counted.bytes.0);
    FilteredOutput {
        is_shortened: false,
        lines: (n_lines, n_lines),
        bytes: (n_bytes, n_bytes),
        ..counted
    }
}

/// A text that was looked at.
#[derive(Debug)]
pub(crate) struct Shortened<'a> {
    /// Whether outputs are to be shortened at all.
    is_enabled: bool,
    /// What is left of it. Its notes tell of what looks like a secret too.
    pub(crate) filtered: Filtered<'a>,
    /// The line of savings, when lines were omitted.
    pub(crate) line: Option<String>,
    /// For the sums.
    pub(crate) counted: Option<FilteredOutput>,
}

impl Shortened<'_> {
    /// Whether what stays is to be shown; otherwise the text itself is.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_enabled
    }
}

/// What the stage works with: the rules, where strategies run, and the plugins that may have some.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) filtering: Filtering,
    pub(crate) components: Components,
    pub(crate) offers: Offers,
}

/// Stage 5: what is to be shown of an output. Never fails: what cannot be shortened is shown as it is. `known` are the warnings of the same
/// output, as far as it was shown before.
pub(crate) async fn stage(
    room: &Stage,
    session: &SessionStrategies,
    (subject, known): (OutputSubject, KnownWarnings),
    exit_code: Option<i32>,
    raw: RawOutput,
) -> FilteredResult {
    let filtering = room.filtering.clone();
    let (line, is_command) = match subject {
        OutputSubject::Command(line) => (line, true),
        OutputSubject::Tool(line) => (line, false),
        OutputSubject::Other => {
            return search_results::whole(filtering, &room.components, raw, known).await;
        }
    };
    let Some(text) = only_text(&raw) else {
        return search_results::whole(filtering, &room.components, raw, known).await;
    };
    let parts = match is_command {
        true => trailer::split(text, raw.structured.as_ref()),
        false => Parts::without_trailer(text),
    };
    let n_added = parts.n_added;
    let plugins = plugins(&room.offers, &filtering, &line).await;
    let strategies = room.components.strategies(session, plugins);
    let takes_time = text.len() >= BLOCKING_BYTES_MIN || filtering.acts_on(&line);
    let work = {
        let filtering = filtering.clone();
        move || look(&filtering, &line, exit_code, &parts, &*strategies)
    };
    let looked = match takes_time {
        true => room.components.on_thread(work).await,
        false => Some(work()),
    };
    match looked {
        Some(mut shown) => {
            // The structured part of a command is the same text again.
            if !is_command {
                let in_text = only_text(&raw).map(|text| filtering.found(text));
                let in_text = in_text.unwrap_or_default();
                let beside = search_results::beside(&filtering, &in_text, &raw);
                shown.notes.extend(beside);
            }
            FilteredResult {
                raw,
                n_added,
                ..shown
            }
        }
        // The text is still there: a filter that failed costs nothing but its savings.
        None => FilteredResult {
            n_added,
            ..FilteredResult::whole(raw)
        },
    }
}

/// The plugins of this moment, or of the moment when those are known that a rule for this command may mean.
async fn plugins(offers: &Offers, filtering: &Filtering, line: &CommandLine) -> Arc<PluginSet> {
    let now = offers.plugins();
    let is_there = |rule: &Rule| {
        rule.foreign()
            .is_none_or(|name| now.strategy(name).is_some())
    };
    let rules = filtering.rules_of_plugins(line);
    if now.is_settled || rules.into_iter().all(is_there) {
        return now;
    }
    // Whether it was long enough or not, what there is then counts.
    let _ = tokio::time::timeout(PLUGINS_WAIT, offers.has_plugins()).await;
    offers.plugins()
}

fn look(
    filtering: &Filtering,
    line: &CommandLine,
    exit_code: Option<i32>,
    parts: &Parts,
    strategies: &dyn Foreign,
) -> FilteredResult {
    let body = &parts.body;
    let shortened = filtering.shorten(line, exit_code, body.as_bytes(), strategies);
    let is_shown = shortened.is_shown();
    let Shortened {
        filtered,
        line,
        counted,
        ..
    } = shortened;
    let is_other = filtered.text.as_ref() != body.as_str();
    let shorter = (is_shown && is_other).then(|| Shorter {
        text: parts.with_trailer(&filtered.text),
        line,
        original: (filtered.loss != Loss::None).then(|| body.clone()),
        rules: filtered.rules,
        handle: None,
    });
    FilteredResult {
        raw: RawOutput::default(),
        n_added: 0,
        shorter,
        notes: filtered.notes,
        counted,
    }
}

/// The text of an output that is one text and nothing else.
fn only_text(raw: &RawOutput) -> Option<&str> {
    match raw.content.as_slice() {
        [Content::Text(text)] => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
