//! Compares the requests of two manifests: which are new, removed, wider or narrower.

use std::path::Path;

use serde::Serialize;
use zeph_core::capability::{Capability, FsRights};
use zeph_core::manifest::Want;

use super::line::{DiffLine, DiffMark};
use super::text;
use crate::visible::visible_line;

/// How a request changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestChange {
    /// It was not there before.
    Added,
    /// It would allow all it did, and more.
    Wider,
    /// It would allow only a part of what it did.
    Narrower,
    /// It would allow something else.
    Different,
    /// Only the reason is another.
    Reason,
    /// It is not there any more.
    Removed,
}

/// A changed request.
#[derive(Debug, Serialize)]
pub(crate) struct WantChange {
    effect: RequestChange,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Want>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Want>,
}

/// The changes, in the order of the new requests; removed ones come last.
pub(super) fn changes(old: &[Want], new: &[Want]) -> Vec<WantChange> {
    let has_subject_in = |wants: &[Want], want: &Want| {
        let subject = want.capability.subject();
        wants
            .iter()
            .position(|other| other.capability.subject() == subject)
    };
    let mut gone: Vec<&Want> = old
        .iter()
        .filter(|want| has_subject_in(new, want).is_none())
        .collect();
    let mut changes = Vec::new();
    for want in new {
        let before = match has_subject_in(old, want) {
            Some(idx) => Some(&old[idx]),
            // A directory above or below, or a pattern that covers the same host, is the same wish in another size.
            None => gone
                .iter()
                .position(|gone| is_resized(&gone.capability, &want.capability))
                .map(|idx| gone.remove(idx)),
        };
        if before != Some(want) {
            changes.push(change(before, want));
        }
    }
    changes.extend(gone.into_iter().map(|want| WantChange {
        effect: RequestChange::Removed,
        old: Some(want.clone()),
        new: None,
    }));
    changes
}

/// `requests: 1 added, 2 wider`; nothing if none changed.
pub(super) fn summary(changes: &[WantChange]) -> Option<String> {
    let names = [
        (RequestChange::Added, "added"),
        (RequestChange::Wider, "wider"),
        (RequestChange::Narrower, "narrower"),
        (RequestChange::Different, "different"),
        (RequestChange::Reason, "with another reason"),
        (RequestChange::Removed, "removed"),
    ];
    let count = |effect| {
        changes
            .iter()
            .filter(|change| change.effect == effect)
            .count()
    };
    super::counts(
        "requests",
        &names.map(|(effect, name)| (count(effect), name)),
    )
}

impl WantChange {
    pub(super) fn push_lines(&self, lines: &mut Vec<DiffLine>) {
        let shown = |want: &Want| visible_line(&want.capability.to_string());
        let mut push = |mark, text| lines.push(DiffLine::new(mark, 0, text));
        match (&self.old, &self.new) {
            (None, None) => {}
            (None, Some(new)) => {
                push(DiffMark::Added, format!("requests {}", shown(new)));
                text::push_lines(lines, 1, "", &new.reason);
            }
            (Some(old), None) => push(DiffMark::Removed, format!("requests {}", shown(old))),
            (Some(old), Some(new)) => {
                let change = match self.effect {
                    RequestChange::Wider => "requests more: ",
                    RequestChange::Narrower => "requests less: ",
                    RequestChange::Reason => "gives another reason for ",
                    RequestChange::Added | RequestChange::Removed | RequestChange::Different => {
                        "requests something else: "
                    }
                };
                let sides = match self.effect {
                    RequestChange::Reason => shown(new),
                    _ => format!("{} → {}", shown(old), shown(new)),
                };
                push(DiffMark::Changed, format!("{change}{sides}"));
                match old.reason == new.reason {
                    true => lines.push(DiffLine::new(
                        DiffMark::Plain,
                        1,
                        format!("\"{}\"", visible_line(&new.reason)),
                    )),
                    false => text::push_lines(lines, 1, &old.reason, &new.reason),
                }
            }
        }
    }
}

fn change(before: Option<&Want>, want: &Want) -> WantChange {
    let effect = match before {
        None => RequestChange::Added,
        Some(before) if before.capability == want.capability => RequestChange::Reason,
        Some(before) if allows(&want.capability, &before.capability) => RequestChange::Wider,
        Some(before) if allows(&before.capability, &want.capability) => RequestChange::Narrower,
        Some(_) => RequestChange::Different,
    };
    WantChange {
        effect,
        old: before.cloned(),
        new: Some(want.clone()),
    }
}

/// Whether two requests with different subjects are the same one, widened or narrowed, regardless of rights.
fn is_resized(old: &Capability, new: &Capability) -> bool {
    match (old, new) {
        (Capability::Directory { path: old, .. }, Capability::Directory { path: new, .. }) => {
            holds(old, new) || holds(new, old)
        }
        (Capability::Host(_), Capability::Host(_)) => allows(old, new) || allows(new, old),
        _ => false,
    }
}

/// Whether `wide` allows all that `narrow` does.
fn allows(wide: &Capability, narrow: &Capability) -> bool {
    match (wide, narrow) {
        (
            Capability::Directory { path, rights },
            Capability::Directory {
                path: inner,
                rights: inner_rights,
            },
        ) => holds(path, inner) && inner_rights.without(*rights) == FsRights::default(),
        (Capability::Host(access), Capability::Host(inner)) => access.covers(inner),
        (
            Capability::Limit { name, value },
            Capability::Limit {
                name: inner,
                value: inner_value,
            },
        ) => name == inner && value >= inner_value,
        (Capability::Secret(wide), Capability::Secret(narrow)) => {
            wide.intersect(narrow).as_ref() == Some(narrow)
        }
        (wide, narrow) => wide == narrow,
    }
}

/// Whether the tree `outer` holds the tree `inner`, both as an author wrote them. The root holds every other.
fn holds(outer: &str, inner: &str) -> bool {
    outer == "/" || Path::new(inner).starts_with(outer)
}
