//! Ctrl-Z on the full screen: the shell gets the terminal as it was, and the screen comes back when the program goes on.

use std::io;
use std::sync::Arc;

use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{self, SignalKind};
use tokio::task::JoinSet;

use super::{FullScreen, lock};

/// Has the screen come back whenever the program goes on, also when it was stopped from outside and could give nothing back.
///
/// Errors: when the system does not let the signal be heard; there is no known reason.
pub(super) fn watch(screen: &Arc<FullScreen>) -> io::Result<JoinSet<()>> {
    let mut goes_on = unix::signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    let screen = Arc::clone(screen);
    let mut watch = JoinSet::new();
    watch.spawn(async move {
        while goes_on.recv().await.is_some() {
            if screen.has_keys() {
                screen.come_back();
            }
        }
    });
    Ok(watch)
}

impl FullScreen {
    /// Gives the terminal back and stops the program, with whatever else its shell runs as the same job.
    pub(super) fn suspend(&self) {
        lock(&self.shown).leave();
        // It returns when the program goes on; at once, where no shell could have it go on.
        if let Err(error) = kill_current_process_group(Signal::TSTP) {
            tracing::warn!(%error, "the program cannot be stopped");
        }
        self.come_back();
    }

    /// Takes the terminal as if it had been given back, whatever it is used for.
    fn come_back(&self) {
        let came_back = {
            let mut shown = lock(&self.shown);
            shown.leave();
            shown.come_back()
        };
        if let Err(error) = came_back {
            lock(&self.error).get_or_insert(error);
        }
        self.draw();
    }
}
