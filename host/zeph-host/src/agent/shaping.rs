//! What a model is shown of the tools: those that fit the conversation, room to think in complex ones, and none that needs another one
//! first (`tools.schema_filter`, `tools.tafc`, `tools.dependencies`).
//!
//! What is shown stays as it is until the conversation is compacted. A tool that is not shown can be called nevertheless: `find_tool` and
//! `call_tool` are among those that are shown then, what becomes possible meanwhile is told with the result that made it so, and a call
//! by name is a call like any other. A filter saves tokens; it forbids nothing.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use zeph_agent::budget::CallMeter;
use zeph_agent::message::{Arguments, ToolCall};
use zeph_agent::selection::{Candidate, FilterRules, Selection, SelectionVectors, select, text_of};
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_agent::{ToolDefinition, tafc, tools_as_text};
use zeph_config::{SchemaFilterSettings, ShapingSettings};
use zeph_core::catalog::Catalog;
use zeph_core::policy::tool_key;
use zeph_core::tool::Tool;

use crate::dependencies::keys_of;
use crate::host::Host;
use crate::serve::search;
use crate::session::Session;

/// What one conversation is shown.
#[derive(Debug)]
pub(crate) struct Shaping {
    host: Host,
    session: Session,
    shown: Mutex<ShownTools>,
}

#[derive(Debug, Default)]
struct ShownTools {
    /// The names of those that are shown; none while all are.
    names: Option<BTreeSet<String>>,
    /// Those that will be told of when what they need has succeeded.
    waiting: BTreeSet<String>,
}

/// What a call of a model means.
#[derive(Debug)]
pub(crate) enum MeantCall {
    /// This call.
    Call(ToolCall),
    /// A search for tools, which is answered here.
    Find,
    /// None: the call is wrong in this way.
    Wrong(String),
}

impl Shaping {
    /// Of the conversation of `session`.
    pub(crate) fn new(host: &Host, session: &Session) -> Self {
        Self {
            host: host.clone(),
            session: session.clone(),
            shown: Mutex::default(),
        }
    }

    /// All tools that it may call, sorted by name.
    pub(crate) fn all(&self) -> Vec<ToolDefinition> {
        let catalog = self.host.catalog();
        let tools = self.allowed(&catalog);
        let mut all: Vec<_> = tools.map(|tool| self.definition(tool)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The tools for a conversation that is about `text`; none when all are shown.
    /// What vectors for it take is counted by `meter`.
    pub(crate) async fn select(
        &self,
        text: &str,
        meter: &CallMeter,
    ) -> Option<Vec<ToolDefinition>> {
        if !self.is_active() {
            return None;
        }
        let candidates = self.candidates();
        let vectors = self.vectors(text, &candidates, meter).await;
        let rules = self.filter().map(filter_rules);
        let selection = select(text, &candidates, rules, vectors.as_ref());
        log(&selection, &candidates);
        let shown = selection
            .shown
            .iter()
            .filter_map(|(idx, _)| candidates.get(*idx));
        let mut tools: Vec<_> = shown.map(|candidate| candidate.tool.clone()).collect();
        if tools.len() < candidates.len() {
            tools.extend(ways());
        }
        let waiting = selection.excluded.into_iter().map(|excluded| excluded.tool);
        self.show(&tools, waiting.collect());
        Some(tools)
    }

    /// The vectors of a conversation and of its tools; none when nothing is filtered, and where words have to do.
    async fn vectors(
        &self,
        text: &str,
        candidates: &[Candidate],
        meter: &CallMeter,
    ) -> Option<SelectionVectors<Vec<f32>>> {
        self.filter()?;
        let tools = candidates.iter().map(|one| text_of(&one.tool)).collect();
        let asked = self
            .host
            .embeddings()?
            .vectors(vec![text.to_owned()], tools, Some(meter));
        let (mut texts, tools) = asked.await?;
        Some(SelectionVectors {
            text: texts.pop()?,
            tools,
        })
    }

    /// The tools of these names, as they were selected before.
    pub(crate) fn selected(&self, names: &[String]) -> Option<Vec<ToolDefinition>> {
        if !self.is_active() {
            return None;
        }
        let is_named = |tool: &ToolDefinition| names.contains(&tool.name);
        let candidates = self.candidates();
        let (shown, hidden): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|one| is_named(&one.tool));
        let mut tools: Vec<_> = shown.into_iter().map(|one| one.tool).collect();
        tools.extend(ways().into_iter().filter(is_named));
        let waiting = hidden.into_iter().filter(|one| !one.unmet.is_empty());
        self.show(&tools, waiting.map(|one| one.tool.name).collect());
        Some(tools)
    }

    /// What a call means: one through `call_tool` is one of the tool it names, and thoughts are not part of it.
    pub(crate) fn meant(&self, call: &ToolCall) -> MeantCall {
        let Arguments::Object(arguments) = &call.arguments else {
            return MeantCall::Call(call.clone());
        };
        let (name, mut arguments) = match call.name.as_str() {
            search::FIND if self.offers_ways() => return MeantCall::Find,
            search::CALL if self.offers_ways() => match search::meant(arguments.clone()) {
                Ok(meant) => meant,
                Err(problem) => return MeantCall::Wrong(format!("[error] {problem}")),
            },
            name => (name.to_owned(), arguments.clone()),
        };
        self.strip(&name, &mut arguments);
        MeantCall::Call(ToolCall {
            id: call.id.clone(),
            name,
            arguments: Arguments::Object(arguments),
        })
    }

    /// Adds what the model should know after a call of `tool`.
    pub(crate) fn tell(&self, tool: &str, end: &mut CallEnd) {
        let news = match end.kind {
            CallEndKind::Done => self.released(),
            CallEndKind::Malformed => self.definition_of_hidden(tool),
            _ => None,
        };
        if let Some(news) = news {
            end.text = format!("{}\n\n{news}", end.text.trim_end());
        }
    }

    /// Whether anything of it is configured.
    fn is_active(&self) -> bool {
        self.filter().is_some() || !self.host.dependencies().is_empty()
    }

    fn settings(&self) -> &ShapingSettings {
        &self.host.config().shaping
    }

    fn filter(&self) -> Option<&SchemaFilterSettings> {
        self.settings().filter.as_ref()
    }

    fn shown(&self) -> MutexGuard<'_, ShownTools> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, tools: &[ToolDefinition], waiting: BTreeSet<String>) {
        *self.shown() = ShownTools {
            names: Some(tools.iter().map(|tool| tool.name.clone()).collect()),
            waiting,
        };
    }

    /// Whether `find_tool` and `call_tool` are among the tools that are shown.
    fn offers_ways(&self) -> bool {
        let shown = self.shown();
        shown
            .names
            .as_ref()
            .is_some_and(|names| names.contains(search::CALL))
    }

    fn definition(&self, tool: &Tool) -> ToolDefinition {
        let schema = tool.parameters.schema();
        let threshold = self.settings().tafc_threshold;
        let augmented = threshold.and_then(|threshold| tafc::augmented(schema, threshold));
        ToolDefinition {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            schema: augmented.unwrap_or_else(|| schema.clone()),
        }
    }

    /// Every tool, sorted by name, but for those whose names mean something else here.
    fn candidates(&self) -> Vec<Candidate> {
        let catalog = self.host.catalog();
        let tools = self.allowed(&catalog);
        let tools = tools.filter(|tool| !search::RESERVED.contains(&tool.name.as_str()));
        tools.map(|tool| self.candidate(tool, &catalog)).collect()
    }

    /// The tools that the token allows under which it was scheduled; all where there is none.
    fn allowed<'a>(&'a self, catalog: &'a Catalog) -> impl Iterator<Item = &'a Tool> {
        catalog.tools().filter(|tool| self.is_allowed(tool))
    }

    fn is_allowed(&self, tool: &Tool) -> bool {
        let tools = &self.session.admission().tools;
        tools.has(tool.name.as_str(), &tool.qualified_name())
    }

    fn candidate(&self, tool: &Tool, catalog: &Arc<Catalog>) -> Candidate {
        let (rules, progress) = (self.host.dependencies(), self.session.progress());
        let always_on = self.filter().map_or(&[][..], |filter| &filter.always_on);
        let keys = keys_of(tool);
        Candidate {
            tool: self.definition(tool),
            is_always_on: always_on.iter().any(|name| keys.contains(&tool_key(name))),
            unmet: rules.unmet(progress, tool, catalog),
            boost: rules.boost(progress, tool, catalog),
        }
    }

    /// Takes the thoughts out of the arguments of a tool.
    fn strip(&self, name: &str, arguments: &mut Map<String, Value>) {
        if self.settings().tafc_threshold.is_none() {
            return;
        }
        match self.host.catalog().resolve(name) {
            Ok(tool) => tafc::strip(tool.parameters.schema(), arguments),
            // Nothing of a call of no tool is needed.
            Err(_) => drop(arguments.remove(tafc::FIELD)),
        }
    }

    /// The answer to a search.
    pub(crate) fn find(&self, call: &ToolCall) -> CallEnd {
        let Arguments::Object(arguments) = &call.arguments else {
            return CallEnd::of(
                CallEndKind::Malformed,
                "[error] the arguments are not a JSON object",
            );
        };
        let entries = self.candidates().into_iter().map(|candidate| {
            let mut description = candidate.tool.description;
            if !candidate.unmet.is_empty() {
                let needed = candidate.unmet.join(", ");
                description.push_str(&format!(
                    " It can be called once these have succeeded: {needed}."
                ));
            }
            search::Entry {
                name: candidate.tool.name,
                title: None,
                description,
                schema: candidate.tool.schema,
            }
        });
        let entries: Vec<search::Entry> = entries.collect();
        match search::find(arguments, &entries) {
            Ok(found) => CallEnd::of(CallEndKind::Done, found.to_string()),
            Err(problem) => CallEnd::of(CallEndKind::Malformed, format!("[error] {problem}")),
        }
    }

    /// The tools that waited and need nothing any more, told once.
    fn released(&self) -> Option<String> {
        let waiting: Vec<String> = self.shown().waiting.iter().cloned().collect();
        if waiting.is_empty() {
            return None;
        }
        let candidates = self.candidates().into_iter();
        let released =
            candidates.filter(|one| one.unmet.is_empty() && waiting.contains(&one.tool.name));
        let released: Vec<ToolDefinition> = released.map(|one| one.tool).collect();
        let mut shown = self.shown();
        let told = released
            .into_iter()
            .filter(|tool| shown.waiting.remove(&tool.name));
        let told: Vec<ToolDefinition> = told.collect();
        let text = tools_as_text(&told);
        (!told.is_empty()).then(|| {
            format!(
                "[{} can be used now: call it by name, or through `{}`]\n{text}",
                names(&told),
                search::CALL
            )
        })
    }

    /// The definition of a tool that is not shown, for a call that did not fit it.
    fn definition_of_hidden(&self, name: &str) -> Option<String> {
        let is_hidden = {
            let shown = self.shown();
            shown
                .names
                .as_ref()
                .is_some_and(|names| !names.contains(name))
        };
        let catalog = self.host.catalog();
        let tool = catalog.resolve(name).ok()?;
        if !is_hidden || !self.is_allowed(tool) {
            return None;
        }
        let text = tools_as_text(&[self.definition(tool)]);
        Some(format!(
            "[`{name}` was not listed, because the conversation did not seem to need it; this is its definition]\n{text}"
        ))
    }
}

fn names(tools: &[ToolDefinition]) -> String {
    let names: Vec<String> = tools
        .iter()
        .map(|tool| format!("`{}`", tool.name))
        .collect();
    names.join(", ")
}

/// The tools that reach the others.
fn ways() -> [ToolDefinition; 2] {
    let find = "Finds tools that are not listed, by what they do, with their schemas.";
    let call =
        "Calls a tool that is not listed, by the name that `find_tool` gave or a result told.";
    [
        (search::CALL, call, search::call_schema()),
        (search::FIND, find, search::find_schema()),
    ]
    .map(|(name, description, schema)| ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    })
}

fn filter_rules(settings: &SchemaFilterSettings) -> FilterRules {
    FilterRules {
        top_k: settings.top_k.map(NonZeroUsize::get),
        min_similarity: settings.min_similarity,
    }
}

fn log(selection: &Selection, candidates: &[Candidate]) {
    for (idx, reason) in &selection.shown {
        let tool = candidates
            .get(*idx)
            .map(|candidate| candidate.tool.name.as_str());
        tracing::debug!(tool, ?reason, "a tool is shown");
    }
    for excluded in &selection.excluded {
        tracing::debug!(?excluded, "a tool is not shown");
    }
}
