//! What the user of a wrapped server should know while it runs and when it has ended, on standard error: clients show it as the server's log.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use zeph_config::CommandServer;
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;

use super::learned::Learned;
use super::server::WrappedServer;
use crate::cli::out;
use crate::host::Host;
use crate::run::render::escape;
use crate::serve::native::Complaints;
use crate::servers::launch::Refusal;
use crate::servers::{ServerSet, ServerStanding, ServerState};

/// Lines of the server's own error stream that are shown when it does not run.
const LINES_MAX: usize = 12;

/// Most characters of such a line.
const LINE_CHARS_MAX: usize = 300;

/// Tells how a server stands, each time that changes.
#[derive(Debug)]
pub(super) struct Report {
    host: Host,
    name: ServerName,
    granted: Option<CommandServer>,
    is_configured: bool,
    seen: Arc<Mutex<Seen>>,
    complaints: Complaints,
    following: JoinSet<()>,
}

/// What was seen of the server so far.
#[derive(Debug, Default)]
struct Seen {
    was_active: bool,
    said: String,
    refusals: BTreeSet<Refusal>,
}

impl Report {
    /// Begins to follow the server.
    pub(super) fn begin(host: &Host, wrapped: &WrappedServer, complaints: Complaints) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let mut following = JoinSet::new();
        let followed = (host.clone(), wrapped.name.clone());
        following.spawn(follow(followed, Arc::clone(&seen)));
        Self {
            host: host.clone(),
            name: wrapped.name.clone(),
            granted: wrapped.granted.clone(),
            is_configured: wrapped.is_configured,
            seen,
            complaints,
            following,
        }
    }

    /// Tells what the server was refused, with the grant that `learn` asks for. Returns whether the server ever ran.
    pub(super) async fn end(mut self, learn: bool) -> bool {
        self.following.shutdown().await;
        let standing = self
            .host
            .servers()
            .set()
            .standing(self.name.as_str())
            .cloned();
        let mut seen = lock(&self.seen);
        if let Some(standing) = standing {
            seen.note(&standing, &self.complaints.text());
        }
        let learned = Learned::of(seen.refusals.iter().cloned());
        match learned.is_empty() {
            true if learn => out::note(&format!("`{}` was refused nothing", self.name)),
            true => {}
            false => self.propose(&learned, learn),
        }
        seen.was_active
    }

    fn propose(&self, learned: &Learned, learn: bool) {
        let name = &self.name;
        let options = learned.options();
        out::note(&format!(
            "`{name}` was refused something; `wrap {options}` allows it"
        ));
        if let Some(server) = self.granted.as_ref().filter(|_| learn) {
            let difference = learned.difference(name, server, self.is_configured);
            out::stderr(&escape(&difference));
        }
    }
}

impl Seen {
    /// `said`: what failed calls said.
    fn note(&mut self, standing: &ServerStanding, said: &str) {
        self.was_active |= matches!(standing.state, ServerState::Active);
        let about = standing.about.as_ref();
        let process = about.and_then(|about| about.process.as_ref());
        self.refusals
            .extend(process.into_iter().flat_map(|process| process.lacks(said)));
    }
}

async fn follow((host, name): (Host, ServerName), seen: Arc<Mutex<Seen>>) {
    let mut watch = host.servers().watch();
    loop {
        let set: Arc<ServerSet> = Arc::clone(&watch.borrow_and_update());
        if let Some(standing) = set.standing(name.as_str()) {
            let mut seen = lock(&seen);
            seen.note(standing, "");
            let lines = last_words(&host, standing);
            // A server that is started again and again fails with the same words.
            if !lines.is_empty() && lines != seen.said {
                out::stderr(&lines);
                seen.said = lines;
            }
        }
        if watch.changed().await.is_err() {
            return;
        }
    }
}

/// The end of the error stream of a server that does not run: it says why most often.
fn last_words(host: &Host, standing: &ServerStanding) -> String {
    if !matches!(standing.state, ServerState::Failed { .. }) {
        return String::new();
    }
    let stderr = standing
        .about
        .as_ref()
        .map_or("", |about| about.stderr.as_str());
    let said: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = said.iter().skip(said.len().saturating_sub(LINES_MAX));
    let shown: String = last
        .map(|line| format!("  | {}\n", escape(&one_line(line, LINE_CHARS_MAX))))
        .collect();
    host.redactor().text(&shown).into_owned()
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
