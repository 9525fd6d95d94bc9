//! Counting an execution in the windows of its tool and of the tool's owner, whatever the database.

use zeph_core::anomaly::{Window, WindowItem};
use zeph_core::policy::TrustSubject;

use super::{OutcomeNote, TrustAlert, TrustRecord};

/// The tables of trust within a transaction.
pub(crate) trait TrustTables {
    /// What the database says.
    type Fault;

    /// The window over the executions of a subject by a caller; empty when there is none.
    fn window(&self, subject: &TrustSubject, caller: &str) -> Result<Window, Self::Fault>;

    /// Keeps the window of a subject and of the caller of `note`; deletes an empty one.
    fn save(
        &self,
        subject: &TrustSubject,
        note: &OutcomeNote,
        window: &Window,
    ) -> Result<(), Self::Fault>;

    /// Keeps a record, in place of that of the same subject and caller, and begins another version.
    fn put(&self, record: &TrustRecord) -> Result<(), Self::Fault>;

    /// Begins another version.
    fn bump(&self) -> Result<(), Self::Fault>;
}

/// Counts an execution of a tool, for the tool and for its owner. The failures that a tool is blocked for are not held against the owner.
pub(crate) fn note<T: TrustTables>(
    tables: &T,
    note: &OutcomeNote,
) -> Result<Vec<TrustAlert>, T::Fault> {
    let owner = note.subject.whole();
    let of_tool = count(tables, note, &note.subject, "")?;
    if let Some(alert) = of_tool.as_ref().filter(|alert| alert.is_blocked) {
        block(tables, note, alert)?;
        if let Some(owner) = &owner {
            tables.save(owner, note, &Window::default())?;
        }
        return Ok(of_tool.into_iter().collect());
    }
    let of_owner = match &owner {
        Some(owner) => {
            let tool = note.subject.tool.as_deref().unwrap_or_default();
            count(tables, note, owner, tool)?
        }
        None => None,
    };
    if let Some(alert) = of_owner.as_ref().filter(|alert| alert.is_blocked) {
        block(tables, note, alert)?;
    }
    Ok(of_tool.into_iter().chain(of_owner).collect())
}

/// Blocks what an alert is about.
fn block<T: TrustTables>(
    tables: &T,
    note: &OutcomeNote,
    alert: &TrustAlert,
) -> Result<(), T::Fault> {
    // It starts anew when the block is lifted.
    tables.save(&alert.subject, note, &Window::default())?;
    tables.put(&alert.record(note))
}

/// Adds to one window; returns the alert when its rate has become critical by that.
fn count<T: TrustTables>(
    tables: &T,
    note: &OutcomeNote,
    subject: &TrustSubject,
    tool: &str,
) -> Result<Option<TrustAlert>, T::Fault> {
    let settings = &note.settings;
    let critical = |window: &Window| {
        let is_of_one = !tool.is_empty() && !window.has_several();
        window.critical(settings).filter(|_| !is_of_one)
    };
    let mut window = tables.window(subject, &note.caller)?;
    let (was_empty, was_critical) = (window.is_empty(), critical(&window).is_some());
    let item = WindowItem {
        outcome: note.outcome,
        tool: tool.to_owned(),
    };
    window.push(item, settings.window_size);
    if was_empty && window.is_empty() {
        return Ok(None);
    }
    tables.save(subject, note, &window)?;
    if was_empty != window.is_empty() {
        tables.bump()?;
    }
    let rate = critical(&window).filter(|_| !was_critical);
    Ok(rate.map(|rate| TrustAlert {
        subject: subject.clone(),
        rate,
        is_blocked: settings.auto_block,
    }))
}
