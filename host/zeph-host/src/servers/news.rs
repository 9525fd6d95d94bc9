//! Tells the user of the host when a server can be used, and when it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::watch;
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;
use zeph_core::text::counted;
use zeph_plugins::event::{PluginEvent, Tell};

use super::set::{ServerSet, ServerStanding, ServerState};

/// Most characters of why a server cannot be used, where it is told among other text.
const TROUBLE_CHARS_MAX: usize = 700;

/// Tells of every change, until the servers end; that a server runs as it should only when something else was told before. What the
/// configuration says of it in vain is told once. `program`: how the host is called here, for the commands that are named.
pub(crate) async fn tell_news(
    mut watch: watch::Receiver<Arc<ServerSet>>,
    program: String,
    tell: Tell,
) {
    let mut told: BTreeMap<ServerName, String> = BTreeMap::new();
    let mut told_idle = BTreeSet::new();
    loop {
        let set = Arc::clone(&watch.borrow_and_update());
        for standing in set.standings() {
            for problem in idle(standing) {
                if told_idle.insert(problem.clone()) {
                    tell(&PluginEvent::IdleRule { problem });
                }
            }
            let Some(news) = news(standing, &program) else {
                continue;
            };
            let last = told.get(&standing.name);
            let is_expected = last.is_none() && is_sound(standing);
            if last != Some(&news) && !is_expected {
                told.insert(standing.name.clone(), news.clone());
                tell(&PluginEvent::Server { news });
            }
        }
        if watch.changed().await.is_err() {
            return;
        }
    }
}

/// What the configuration says of a server in vain, one sentence each.
fn idle(standing: &ServerStanding) -> impl Iterator<Item = String> {
    let idle = standing.about.iter().flat_map(|about| &about.idle);
    idle.map(|problem| format!("MCP server `{}`: {problem}", standing.name))
}

/// What keeps servers from being used, one sentence each; nothing of those that are still being started.
pub(crate) fn troubles(set: &ServerSet, program: &str) -> Vec<String> {
    let off = set.standings();
    let off = off.filter(|standing| !matches!(standing.state, ServerState::Active));
    let troubles = off.filter_map(|standing| news(standing, program));
    troubles
        .map(|trouble| one_line(&trouble, TROUBLE_CHARS_MAX))
        .collect()
}

/// What there is to tell of a server in this state, if anything.
fn news(standing: &ServerStanding, program: &str) -> Option<String> {
    let name = &standing.name;
    let what = match &standing.state {
        ServerState::Idle | ServerState::Starting | ServerState::Disabled => return None,
        ServerState::Active => format!("{}{}", n_tools(standing), open_walls(standing)),
        ServerState::Changed(_) => format!(
            "it is not what was accepted, and is off; `{program} mcp approve {name}` shows the difference"
        ),
        ServerState::Failed { reason, .. } => format!("it does not run: {reason}"),
        ServerState::NeedsLogin(_) => {
            format!("it needs a login: `{program} mcp login {name}`")
        }
    };
    Some(format!("MCP server `{name}`: {what}"))
}

/// Whether it runs with everything around it that should be.
fn is_sound(standing: &ServerStanding) -> bool {
    matches!(standing.state, ServerState::Active) && open_walls(standing).is_empty()
}

fn n_tools(standing: &ServerStanding) -> String {
    counted(standing.tools.len(), "tool", "tools")
}

/// Which layers do not stand around a server that runs.
fn open_walls(standing: &ServerStanding) -> String {
    let about = standing.about.as_deref();
    match about.map(|about| about.missing_layers.as_slice()) {
        None | Some([]) => String::new(),
        Some(missing) => format!("; not around it: {}", missing.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zeph_core::id::ServerName;

    use super::{ServerStanding, ServerState, news};

    #[test]
    fn what_a_person_can_do_is_named() {
        let of = |state| {
            let name = ServerName::new("files").unwrap();
            news(&ServerStanding::new(name, state), "zeph-host -x")
        };
        assert_eq!(of(ServerState::Starting), None);
        assert_eq!(
            of(ServerState::Active).unwrap(),
            "MCP server `files`: 0 tools"
        );
        let failed = ServerState::Failed {
            reason: "no such program".to_owned(),
            next_try: Duration::from_secs(1),
        };
        assert!(
            of(failed)
                .unwrap()
                .ends_with("it does not run: no such program")
        );
        let login = of(ServerState::NeedsLogin(String::new())).unwrap();
        assert!(login.contains("`zeph-host -x mcp login files`"), "{login}");
    }
}
