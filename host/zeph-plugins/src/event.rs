//! Plugin events for the user of the host, determined by comparing two sets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zeph_core::failure::one_line;
use zeph_core::id::PluginId;
use zeph_engine::{CompileEvent, CompileListener};

use super::set::{PluginSet, PluginStanding, Status};

/// Receives events. Must not block.
pub type Tell = Arc<dyn Fn(&PluginEvent) + Send + Sync>;

/// Something happened to a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginEvent {
    /// Its tools can be called from now on.
    Ready {
        /// Which.
        plugin: PluginId,
        /// The names its tools are offered by.
        tools: Vec<String>,
        /// The names rules know its filter strategies by.
        strategies: Vec<String>,
    },
    /// Its tools are gone.
    Gone {
        /// Which.
        plugin: PluginId,
    },
    /// It is not what was accepted, and off until it is approved.
    Changed {
        /// Which.
        plugin: PluginId,
    },
    /// The operator switched it off.
    Disabled {
        /// Which.
        plugin: PluginId,
    },
    /// It cannot be used.
    Quarantined {
        /// Which.
        plugin: PluginId,
        /// Why, in one sentence.
        reason: String,
    },
    /// A whole folder cannot be used.
    Folder {
        /// Which and why, in one sentence.
        problem: String,
    },
    /// A rule that cannot apply to any tool, found when every plugin is known.
    IdleRule {
        /// Which and why, in one sentence.
        problem: String,
    },
    /// A tool fails so often that something should be done about it, or was.
    Anomaly {
        /// Which, and what was done, in one sentence.
        problem: String,
    },
    /// An MCP server can be used, or not any more.
    Server {
        /// Which, and what happened, in one sentence.
        news: String,
    },
    /// Something that takes its time, such as the installation of an MCP server.
    Progress {
        /// What, in one sentence.
        what: String,
    },
    /// A component is being compiled: it may take seconds, once.
    Compiling {
        /// Which.
        plugin: PluginId,
        /// Size of the component.
        n_bytes: usize,
    },
    /// It is compiled.
    Compiled {
        /// Which.
        plugin: PluginId,
        /// How long it took.
        took: Duration,
    },
}

/// What is different in `new`, in a fixed order. While a plugin loads nothing is said of it.
pub(crate) fn between(old: &PluginSet, new: &PluginSet) -> Vec<PluginEvent> {
    let mut events = Vec::new();
    let is_news = |problem: &&String| !old.problems.contains(problem);
    events.extend(
        new.problems
            .iter()
            .filter(is_news)
            .map(|problem| PluginEvent::Folder {
                problem: problem.clone(),
            }),
    );
    for standing in &old.standings {
        let is_same = |other: &&PluginStanding| other.path == standing.path;
        let was_in_force = standing.status == Status::Active;
        if was_in_force && !new.standings.iter().any(|other| is_same(&other)) {
            let plugin = standing.name.clone();
            events.push(PluginEvent::Gone { plugin });
        }
    }
    for standing in &new.standings {
        let before = old
            .standings
            .iter()
            .find(|other| other.path == standing.path);
        let is_same = before.is_some_and(|before| {
            before.status == standing.status
                && pin(before) == pin(standing)
                && before.tools == standing.tools
                && before.strategies == standing.strategies
        });
        if !is_same {
            events.extend(event(standing));
        }
    }
    events
}

fn pin(standing: &PluginStanding) -> Option<zeph_core::id::Pin> {
    standing.good.as_ref().map(|good| good.pin)
}

fn event(standing: &PluginStanding) -> Option<PluginEvent> {
    let plugin = standing.name.clone();
    Some(match &standing.status {
        Status::Loading => return None,
        Status::Active => PluginEvent::Ready {
            plugin,
            tools: standing.tools.iter().map(ToString::to_string).collect(),
            strategies: standing.strategies.clone(),
        },
        Status::Changed => PluginEvent::Changed { plugin },
        Status::Disabled => PluginEvent::Disabled { plugin },
        Status::Quarantined(reason) => PluginEvent::Quarantined {
            plugin,
            reason: reason.clone(),
        },
    })
}

impl PluginEvent {
    /// Whether it is worth telling when it is found at start.
    pub(crate) fn is_problem(&self) -> bool {
        matches!(
            self,
            Self::Quarantined { .. } | Self::Changed { .. } | Self::Folder { .. }
        )
    }
}

/// Compiling as an event among the others.
pub fn compile_listener(tell: Tell) -> CompileListener {
    CompileListener::new(move |event| match event {
        CompileEvent::Waits { plugin, at_most } => {
            let secs = at_most.as_secs();
            let what = format!(
                "another process compiles plugin `{plugin}`; it is waited for, at most {secs} s"
            );
            tell(&PluginEvent::Progress { what });
        }
        CompileEvent::Started { plugin, n_bytes } => {
            tell(&PluginEvent::Compiling { plugin, n_bytes });
        }
        CompileEvent::Finished { plugin, duration } => {
            let took = duration;
            tell(&PluginEvent::Compiled { plugin, took });
        }
        // The reason follows when the plugin is quarantined.
        CompileEvent::Failed { .. } => {}
    })
}

/// Bytes of a component that one processor compiles in a second. Source: components of Python and JavaScript, 12 to 18 MB, took
/// 12 to 15 s on two.
const COMPILED_BYTES_PER_SEC: usize = 500_000;

/// Processors that compiling one component keeps busy.
const COMPILING_MAX: usize = 8;

/// How long compiling takes on a machine that has nothing else to do, in words: right within a factor of two.
fn estimate(n_bytes: usize) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let secs = n_bytes / (COMPILED_BYTES_PER_SEC * cores.min(COMPILING_MAX));
    match secs {
        0..2 => "a moment".to_owned(),
        2..10 => format!("about {secs} s, more on a busy machine"),
        _ => format!(
            "about {} s, more on a busy machine",
            secs.next_multiple_of(5)
        ),
    }
}

/// A size for people: `812 bytes`, `14.0 KiB`.
pub fn size(n_bytes: u64) -> String {
    const UNITS: [&str; 3] = ["KiB", "MiB", "GiB"];
    if n_bytes < 1024 {
        return match n_bytes {
            1 => "1 byte".to_owned(),
            _ => format!("{n_bytes} bytes"),
        };
    }
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let mut size = n_bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

impl fmt::Display for PluginEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready {
                plugin,
                tools,
                strategies,
            } => {
                let (names, noun) = match (strategies.len(), tools.len()) {
                    (0, 1) => (tools, "tool"),
                    (0, _) => (tools, "tools"),
                    (1, _) => (strategies, "filter strategy"),
                    _ => (strategies, "filter strategies"),
                };
                let shown = one_line(&names.join(", "), 200);
                write!(f, "plugin `{plugin}`: {} {noun}: {shown}", names.len())
            }
            Self::Gone { plugin } => write!(f, "plugin `{plugin}` is gone"),
            Self::Changed { plugin } => write!(
                f,
                "plugin `{plugin}` is not what was accepted and is off; look at the changes with `zeph-host plugin approve {plugin}`"
            ),
            Self::Disabled { plugin } => write!(f, "plugin `{plugin}` is switched off"),
            Self::Quarantined { plugin, reason } => {
                write!(
                    f,
                    "plugin `{plugin}` is not used: {}",
                    one_line(reason, 500)
                )
            }
            Self::Folder { problem } | Self::IdleRule { problem } => f.write_str(problem),
            Self::Anomaly { problem: text }
            | Self::Server { news: text }
            | Self::Progress { what: text } => f.write_str(&one_line(text, 700)),
            Self::Compiling { plugin, n_bytes } => {
                let (size, estimate) = (size(*n_bytes as u64), estimate(*n_bytes));
                write!(
                    f,
                    "compiling plugin `{plugin}` ({size}); it takes {estimate}, once"
                )
            }
            Self::Compiled { plugin, took } => {
                let took = match took.as_millis() {
                    ms @ ..1000 => format!("{ms} ms"),
                    _ => format!("{:.1} s", took.as_secs_f64()),
                };
                write!(f, "plugin `{plugin}` is compiled ({took})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zeph_core::id::PluginId;

    use super::{PluginEvent, size};

    #[test]
    fn what_is_small_or_quick_is_not_nothing() {
        for (n_bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (812, "812 bytes"),
            (1024, "1.0 KiB"),
            (14 << 20, "14.0 MiB"),
        ] {
            assert_eq!(size(n_bytes), shown);
        }
        for (ms, shown) in [(12, "(12 ms)"), (3_210, "(3.2 s)")] {
            let compiled = PluginEvent::Compiled {
                plugin: PluginId("notes".to_owned()),
                took: Duration::from_millis(ms),
            };
            let told = compiled.to_string();
            assert!(told.ends_with(shown), "{told}");
        }
    }
}
