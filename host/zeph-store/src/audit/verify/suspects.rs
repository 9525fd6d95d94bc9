//! Events whose codes do not fit: which of them were changed, and which only moved or follow one that was.

use crate::audit::code::Code;
use crate::audit::event::{StoredEvent, call_text};
use crate::audit::problem::{AuditPlace, AuditProblem, AuditProblemKind, Problems};
use crate::secrets::audit_keys::AuditKey;

/// Suspects that are compared with each other; of more, each is told as changed.
const COMPARED_MAX: usize = 24;

/// An event whose code does not fit.
#[derive(Clone)]
pub(super) struct Suspect {
    event: StoredEvent,
    key: AuditKey,
    /// The code that stands before it.
    previous: Code,
    /// The code it should have there.
    computed: Option<Code>,
}

impl Suspect {
    pub(super) fn new(
        event: &StoredEvent,
        key: &AuditKey,
        previous: Code,
        computed: Option<Code>,
    ) -> Self {
        Self {
            event: event.clone(),
            key: key.clone(),
            previous,
            computed,
        }
    }

    fn fits(&self, n: i64, previous: &[Code]) -> bool {
        let fits = |code: &Code| self.event.code_as(n, &self.key, code) == Some(self.event.code);
        previous.iter().any(fits)
    }
}

/// Tells what is wrong with `suspects`.
pub(super) fn told(suspects: &[Suspect], host: Option<&str>, problems: &mut Problems) {
    let is_few = suspects.len() <= COMPARED_MAX;
    let codes: Vec<Code> = suspects
        .iter()
        .flat_map(|suspect| {
            let stored = [suspect.previous, suspect.event.code];
            stored.into_iter().chain(suspect.computed)
        })
        .collect();
    for suspect in suspects {
        let n = suspect.event.head.n;
        // What stands before it was changed, it was not.
        if is_few && suspect.fits(n, &codes) {
            continue;
        }
        let mut others = suspects.iter().map(|other| other.event.head.n);
        let moved = others.find(|other| is_few && *other != n && suspect.fits(*other, &codes));
        let (kind, message) = match moved {
            Some(from) => (AuditProblemKind::Reordered, format!("it was record {from}")),
            None => (
                AuditProblemKind::Changed,
                "its code is not that of what it says".to_owned(),
            ),
        };
        problems.add(AuditProblem {
            kind,
            place: AuditPlace::Store {
                host: host.map(str::to_owned),
                record: n,
            },
            call_id: call_text(suspect.event.head.call),
            message,
        });
    }
}
