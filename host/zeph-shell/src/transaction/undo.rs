//! What `/undo` and `/redo` work on: the snapshots of a session's last commands.
//!
//! A step goes back to the whole tree before a command, so edits a person made since go with it. They are kept on the way and come back
//! with `/redo`.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::RestoreError;
use super::restore::RestoreReport;
use super::snapshot::Snapshot;

/// The last commands of a session that changed something, and what was there before each.
#[derive(Debug)]
pub struct UndoStack {
    steps_max: usize,
    /// Newest last.
    done: VecDeque<UndoStep>,
    /// Next to redo last.
    undone: Vec<UndoResult>,
}

#[derive(Debug)]
struct UndoStep {
    command: String,
    before: Vec<Arc<Snapshot>>,
}

#[derive(Debug)]
struct UndoResult {
    step: UndoStep,
    after: Vec<Arc<Snapshot>>,
}

/// How an undo or redo ended.
#[derive(Debug)]
pub struct UndoEnd {
    /// For the user: one line, and one for each thing that could not be put back.
    pub text: String,
    /// What was done to the tree; zeros when nothing was.
    pub restored: RestoreReport,
}

impl UndoStack {
    /// Keeps the last `steps_max` commands. 0 keeps none.
    #[must_use]
    pub fn new(steps_max: usize) -> Self {
        Self {
            steps_max,
            done: VecDeque::new(),
            undone: Vec::new(),
        }
    }

    /// Adds a command that has run, with the snapshots taken before it, one per root. What was undone cannot be redone any more.
    ///
    /// Push only what changed something ([`Snapshot::changes`]): else `/undo` seems to do nothing.
    pub fn push(&mut self, command: impl Into<String>, before: Vec<Arc<Snapshot>>) {
        self.undone.clear();
        self.done.push_back(UndoStep {
            command: command.into(),
            before,
        });
        while self.done.len() > self.steps_max {
            self.done.pop_front();
        }
    }

    /// The newest snapshot of `root`, to take the next one after.
    #[must_use]
    pub fn newest(&self, root: &Path) -> Option<&Arc<Snapshot>> {
        let mut newest_first = self.done.iter().rev().flat_map(|step| &step.before);
        newest_first.find(|snapshot| snapshot.root() == root)
    }

    /// The commands that can be undone, newest first.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.done.iter().rev().map(|step| step.command.as_str())
    }

    /// Goes back to before the last `n` commands, or as many as there are.
    ///
    /// Errors: none; the text says what happened. After a failure the list is as it was, and the undo can be tried again.
    pub fn undo(&mut self, n: usize) -> UndoEnd {
        if n == 0 {
            return UndoEnd::nothing("Undo count must be > 0.");
        }
        if self.done.is_empty() {
            return UndoEnd::nothing("Nothing to undo.");
        }
        let available = self.done.len();
        let n = n.min(available);
        let first = available - n;
        let steps: Vec<&UndoStep> = self.done.range(first..).collect();
        let (now, warning) = keep_now(&steps);
        let restored = match restore_all(oldest_of_each_root(&steps)) {
            Ok(restored) => restored,
            Err(error) => return UndoEnd::nothing(format!("Nothing was undone: {error}.")),
        };
        self.move_to_undone(first, now);
        let head = match available - n {
            0 => format!("Undid {n} command(s)."),
            more => {
                format!("Undid {n} of {available} available command(s); {more} more available.")
            }
        };
        UndoEnd::told(head, restored, warning)
    }

    /// Does the last command that was undone again: not by running it, but by putting back what it had left.
    ///
    /// Errors: as for [`UndoStack::undo`].
    pub fn redo(&mut self) -> UndoEnd {
        let Some(last) = self.undone.last() else {
            return UndoEnd::nothing("Nothing to redo.");
        };
        let restored = match restore_all(last.after.iter().collect()) {
            Ok(restored) => restored,
            Err(error) => return UndoEnd::nothing(format!("Nothing was redone: {error}.")),
        };
        let head = format!("Redone: {}", last.step.command);
        if let Some(UndoResult { step, .. }) = self.undone.pop() {
            self.done.push_back(step);
        }
        UndoEnd::told(head, restored, None)
    }

    /// Moves the steps from `first` on to the list of the undone. What a step left is what the next one found, or what is there `now`.
    fn move_to_undone(&mut self, first: usize, now: Option<Roots>) {
        let Some(mut latest) = now else {
            self.undone.clear();
            self.done.truncate(first);
            return;
        };
        for step in self.done.drain(first..).rev() {
            let after = step
                .before
                .iter()
                .filter_map(|it| latest.insert(it.root().to_path_buf(), Arc::clone(it)))
                .collect();
            self.undone.push(UndoResult { step, after });
        }
    }
}

/// A snapshot per root.
type Roots = HashMap<PathBuf, Arc<Snapshot>>;

/// Keeps what is there now, so that it can come back.
fn keep_now(steps: &[&UndoStep]) -> (Option<Roots>, Option<String>) {
    let mut now = Roots::new();
    for snapshot in steps.iter().rev().flat_map(|step| &step.before) {
        if now.contains_key(snapshot.root()) {
            continue;
        }
        match snapshot.again() {
            Ok(taken) => now.insert(snapshot.root().to_path_buf(), Arc::new(taken)),
            Err(error) => return (None, Some(format!("It cannot be redone: {error}."))),
        };
    }
    (Some(now), None)
}

fn oldest_of_each_root<'a>(steps: &[&'a UndoStep]) -> Vec<&'a Arc<Snapshot>> {
    let mut oldest: Vec<&Arc<Snapshot>> = Vec::new();
    for snapshot in steps.iter().flat_map(|step| &step.before) {
        if !oldest.iter().any(|known| known.root() == snapshot.root()) {
            oldest.push(snapshot);
        }
    }
    oldest
}

fn restore_all(snapshots: Vec<&Arc<Snapshot>>) -> Result<RestoreReport, RestoreError> {
    let mut total = RestoreReport::nothing();
    for snapshot in &snapshots {
        // All roots are looked at before the first is touched.
        snapshot.check_root()?;
    }
    for snapshot in snapshots {
        let restored = snapshot.restore()?;
        total.restored += restored.restored;
        total.deleted += restored.deleted;
        total.failed += restored.failed;
        total.notes.extend(restored.notes);
    }
    Ok(total)
}

impl UndoEnd {
    fn nothing(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            restored: RestoreReport::nothing(),
        }
    }

    fn told(head: String, restored: RestoreReport, warning: Option<String>) -> Self {
        let lines: Vec<&str> = std::iter::once(head.as_str())
            .chain(warning.as_deref())
            .chain(restored.notes.iter().map(String::as_str))
            .collect();
        Self {
            text: lines.join("\n"),
            restored,
        }
    }
}

impl RestoreReport {
    fn nothing() -> Self {
        Self {
            restored: 0,
            deleted: 0,
            failed: 0,
            notes: Vec::new(),
        }
    }
}
