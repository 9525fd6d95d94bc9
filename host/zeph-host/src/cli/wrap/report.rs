//! What the user of a wrapped server should know while it runs and when it has ended, on standard error: clients show it as the server's log.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use zeph_config::CommandServer;
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;
use zeph_shell::jail::{DeniedPath, PathWatch, is_private};

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

/// Refused paths that are shown without a grant.
const KEPT_MAX: usize = 10;

/// Tells how a server stands, each time that changes.
#[derive(Debug)]
pub(super) struct Report {
    host: Host,
    name: ServerName,
    granted: Option<CommandServer>,
    is_configured: bool,
    seen: Arc<Mutex<Seen>>,
    complaints: Complaints,
    /// What paths it asked for in vain, where that is to be learned.
    watch: Option<PathWatch>,
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
    pub(super) fn begin(
        host: &Host,
        wrapped: &WrappedServer,
        complaints: Complaints,
        watch: Option<PathWatch>,
    ) -> Self {
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
            watch,
            following,
        }
    }

    /// Tells what the server was refused, with the grant that would allow it, and that its client left before it had started, if the end of its
    /// input is why this is the end. Returns whether the server ever ran.
    pub(super) async fn end(mut self, is_at_end: bool) -> bool {
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
            let is_early = matches!(standing.state, ServerState::Idle | ServerState::Starting);
            if is_at_end && is_early && !seen.was_active {
                let name = &self.name;
                out::note(&format!(
                    "the client closed standard input before MCP server `{name}` had started; `zeph-host wrap` serves until then"
                ));
            }
        }
        let learned = self.learned(&seen);
        match learned.is_empty() {
            true if self.watch.is_some() => {
                out::note(&format!("`{}` was refused nothing", self.name));
            }
            true => {}
            false => self.propose(&learned),
        }
        self.tell_of_watch();
        seen.was_active
    }

    /// The smallest grant for what it lacked: for the paths that it really asked for where they were watched, else for those that it spoke
    /// of.
    fn learned(&self, seen: &Seen) -> Learned {
        let watch = self.watch.as_ref();
        let watch = watch.filter(|watch| watch.problem().is_none());
        let said = seen.refusals.iter().cloned();
        let Some(watch) = watch else {
            return Learned::of(said);
        };
        let hosts = said.filter(|refusal| matches!(refusal, Refusal::Host(_)));
        let mut learned = Learned::of(hosts);
        let home = self.host.config().plugins.home.as_deref();
        learned.add_watched(watch.denied(), |path| is_private(path, home));
        learned
    }

    fn propose(&self, learned: &Learned) {
        let name = &self.name;
        let options = learned.options();
        out::note(&format!(
            "`{name}` was refused something; `wrap {options}` allows it"
        ));
        for wider in learned.wider() {
            out::note(&wider);
        }
        if let Some(server) = self.granted.as_ref().filter(|_| self.watch.is_some()) {
            let difference = learned.difference(name, server, self.is_configured);
            out::stderr(&escape(&difference));
        }
    }

    /// Tells what was asked for and is not proposed, and what could not be seen.
    fn tell_of_watch(&self) {
        let Some(watch) = &self.watch else { return };
        if let Some(problem) = watch.problem() {
            out::note(&format!(
                "paths were learned from what the server said only, because {problem}"
            ));
        }
        let denied = watch.denied();
        let kept = denied
            .iter()
            .filter_map(|denied| Some((denied, denied.obstacle?)));
        let kept: Vec<(&DeniedPath, &str)> = kept.collect();
        for (denied, obstacle) in kept.iter().take(KEPT_MAX) {
            let shown = one_line(&denied.wanted.to_string_lossy(), LINE_CHARS_MAX);
            out::note(&format!(
                "it was refused `{shown}`, too; no grant is proposed, because {obstacle}"
            ));
        }
        let n_more = kept.len().saturating_sub(KEPT_MAX);
        if n_more > 0 {
            out::note(&format!("and {n_more} more paths for such reasons"));
        }
        match watch.n_omitted() {
            0 => {}
            n_omitted => out::note(&format!(
                "{n_omitted} more refusals of paths were not kept; grant what is proposed, and learn again"
            )),
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
