//! What is different between a plugin that was accepted and what is there now, for the person who decides.
//!
//! Pure. Nothing is omitted or truncated, because it could matter. Warnings and requests come first,
//! the tools after them, in a fixed order.

use serde::Serialize;
use zeph_core::failure::one_line;
use zeph_core::id::{Digest, Pin};

use super::definitions::Definitions;
use super::lock::LockedPlugin;
use super::visible::visible_line;

mod line;
mod provenance;
mod schema;
mod server;
mod text;
mod tool;
mod want;
mod warning;

pub use line::{DiffLine, DiffMark};
use provenance::ProvenanceChange;
pub use provenance::UpdateRisk;
pub use server::{ServerChanges, between_servers};
use tool::ToolChange;
use want::WantChange;

/// Characters of why a version was withdrawn.
const YANKED_CHARS_MAX: usize = 300;

/// One side: a plugin as it is or was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PluginSide<'a> {
    /// What exactly.
    pub(crate) pin: Pin,
    /// What it says about itself.
    pub(crate) definitions: &'a Definitions,
}

/// Everything that is different. As JSON the texts are the plugin's, unescaped.
#[derive(Debug, Serialize)]
pub struct Changes {
    /// The component's digests, when they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    wasm: Option<Was<Digest>>,
    /// The digests of the definitions, when they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    definitions: Option<Was<Digest>>,
    /// Source, version and signer, when one of them differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<ProvenanceChange>,
    /// What has to be agreed to by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risks: Vec<UpdateRisk>,
    /// What to look at twice, one sentence each.
    warnings: Vec<String>,
    /// Requests in the new manifest's order, then the removed ones.
    wants: Vec<WantChange>,
    /// Tools by name.
    tools: Vec<ToolChange>,
}

/// A value before and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Was<T> {
    pub(crate) old: T,
    pub(crate) new: T,
}

impl LockedPlugin {
    /// The side of a diff that was accepted.
    pub(crate) fn accepted(&self) -> PluginSide<'_> {
        PluginSide {
            pin: self.pin,
            definitions: &self.definitions,
        }
    }
}

/// Compares what was accepted with what is there now.
///
/// Limits: about linear in the size of the definitions.
pub(crate) fn between(old: PluginSide<'_>, new: PluginSide<'_>) -> Changes {
    let tools = tool::changes(old.definitions.tools(), new.definitions.tools());
    Changes {
        wasm: was(old.pin.wasm, new.pin.wasm),
        definitions: was(old.pin.tools, new.pin.tools),
        provenance: None,
        risks: Vec::new(),
        warnings: warning::all(old, new),
        wants: want::changes(old.definitions.wants(), new.definitions.wants()),
        tools,
    }
}

/// Compares two versions of a plugin with where they come from and who signed them.
///
/// Shape: `yanked` says why the publisher withdrew the new one, if that is known.
pub fn between_versions(old: &LockedPlugin, new: &LockedPlugin, yanked: Option<&str>) -> Changes {
    let mut changes = between(old.accepted(), new.accepted());
    let provenance = ProvenanceChange::between(old.provenance.as_ref(), new.provenance.as_ref());
    let mut risks = provenance
        .as_ref()
        .map(ProvenanceChange::risks)
        .unwrap_or_default();
    risks.extend(yanked.map(|reason| (UpdateRisk::Yanked, yanked_warning(reason))));
    let moved = provenance.as_ref().and_then(ProvenanceChange::moved);
    let told = risks.iter().map(|(_, told)| told.clone()).chain(moved);
    changes.warnings.splice(0..0, told);
    changes.risks = risks.into_iter().map(|(risk, _)| risk).collect();
    changes.provenance = provenance;
    changes
}

/// What is said of a version that was withdrawn.
pub fn yanked_warning(reason: &str) -> String {
    let reason = one_line(reason, YANKED_CHARS_MAX);
    match reason.is_empty() {
        true => "its publisher withdrew this version".to_owned(),
        false => format!(
            "its publisher withdrew this version: {}",
            visible_line(&reason)
        ),
    }
}

impl Changes {
    /// What has to be agreed to by name.
    pub fn risks(&self) -> &[UpdateRisk] {
        &self.risks
    }

    /// Adds something that has to be agreed to by name, with its sentence.
    pub fn warn(&mut self, risk: UpdateRisk, told: &str) {
        self.risks.push(risk);
        self.warnings.insert(0, told.to_owned());
    }

    /// Adds something to look at twice that nobody has to agree to by name.
    pub fn note(&mut self, told: String) {
        self.warnings.push(told);
    }

    /// Whether both sides are the same.
    pub fn is_empty(&self) -> bool {
        self.wasm.is_none() && self.definitions.is_none()
    }

    /// What happened, in one line: `warnings: 1 below; requests: 1 wider; tools: 1 added, 2 changed`.
    pub(crate) fn summary(&self) -> String {
        if self.is_empty() {
            let is_same = self.provenance.is_none() && self.warnings.is_empty();
            return match is_same {
                true => "nothing changed".to_owned(),
                false => "component and definitions are the same".to_owned(),
            };
        }
        let parts = [
            counts("warnings", &[(self.warnings.len(), "below")]),
            want::summary(&self.wants),
            tool::summary(&self.tools),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            false => parts.join("; "),
            true if self.definitions.is_none() => {
                "only the program changed; its definitions are the same".to_owned()
            }
            true => "the definitions changed only in their order or form".to_owned(),
        }
    }

    /// The whole diff for a terminal, escaped and without colors: the summary, warnings, requests, tools, digests.
    pub fn lines(&self) -> Vec<DiffLine> {
        let mut lines = vec![DiffLine::new(DiffMark::Plain, 0, self.summary())];
        let warnings = self.warnings.iter();
        lines.extend(warnings.map(|warning| DiffLine::new(DiffMark::Warning, 0, warning.clone())));
        self.wants
            .iter()
            .for_each(|change| change.push_lines(&mut lines));
        self.tools
            .iter()
            .for_each(|change| change.push_lines(&mut lines));
        if let Some(provenance) = &self.provenance {
            provenance.push_lines(&mut lines);
        }
        for (name, digests) in [("file", &self.wasm), ("definitions", &self.definitions)] {
            let Some(Was { old, new }) = digests else {
                continue;
            };
            lines.push(DiffLine::new(DiffMark::Changed, 0, name.to_owned()));
            lines.push(DiffLine::new(DiffMark::Removed, 1, old.to_string()));
            lines.push(DiffLine::new(DiffMark::Added, 1, new.to_string()));
        }
        lines
    }
}

fn was<T: PartialEq>(old: T, new: T) -> Option<Was<T>> {
    (old != new).then_some(Was { old, new })
}

/// `tools: 1 added, 2 changed`, without those there are none of; nothing when there are none at all.
fn counts(name: &str, counts: &[(usize, &str)]) -> Option<String> {
    let counts: Vec<_> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    (!counts.is_empty()).then(|| format!("{name}: {}", counts.join(", ")))
}

#[cfg(test)]
mod tests;
