//! `zeph-host run --demo`: a scripted model, real tools and a real jail, in a directory of its own that is removed at the end. Nothing
//! of the user's configuration is used but where components are compiled to, and nothing leaves the machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tempfile::TempDir;
use tokio::sync::oneshot;
use zeph_agent::ProviderKind;
use zeph_agent::scripted::{Scenario, ScriptedServer};
use zeph_config::Flags;

use super::super::args::RunArgs;
use super::super::context::Context;
use super::super::error::CliError;
use super::super::exit::Exit;
use super::super::out;
use super::agent;

/// What the model says and calls.
const SCENARIO: &str = include_str!("demo/scenario.json");

/// The files of the project, with a mistake in one of them.
const PROJECT: [(&str, &str); 2] = [
    (
        "sum.sh",
        "# Prints the sum of two numbers.\necho $(($1 - $2))\n",
    ),
    (
        "test.sh",
        "sum=$(sh sum.sh 2 3)\nif [ \"$sum\" = 5 ]; then echo 'test passed'; else echo \"expected 5, found $sum\"; exit 1; fi\n",
    ),
];

/// The variable that says where compiled components are: the next start finds them there.
const COMPILED: &str = "ZEPH_ENGINE_CACHE_DIR";

/// The task, when nobody types one.
const TASK: &str = "Mend the failing test.";

/// Runs the demonstration: as a chat on a terminal, else to its end.
pub(super) fn run(context: &Context, options: &RunArgs) -> Result<Exit, CliError> {
    let server = DemoServer::start().map_err(failed)?;
    let folder = tempfile::Builder::new().prefix("zeph-demo-").tempdir();
    let folder = folder.map_err(failed)?;
    let (project, flags) = project(&folder, &server.base_url).map_err(failed)?;
    let is_chat = agent::is_at_terminal() && !options.json;
    if is_chat && !options.tui {
        out::remark(
            "A scripted model, real tools, a real sandbox. Type anything, such as: mend the failing test",
        );
    }
    let options = RunArgs {
        prompt: (!is_chat).then(|| TASK.to_owned()),
        allow: match is_chat {
            true => Vec::new(),
            false => vec!["edit".to_owned(), "bash".to_owned()],
        },
        json: options.json,
        tui: options.tui && is_chat,
        ..RunArgs::default()
    };
    let context = context
        .moved_to(project, flags)
        .without_variables_but(&[COMPILED]);
    agent::run(&context, options)
}

fn failed(error: io::Error) -> CliError {
    CliError::internal("the demonstration cannot begin").because(error)
}

/// Writes the project and a configuration of its own.
fn project(folder: &TempDir, base_url: &str) -> io::Result<(PathBuf, Flags)> {
    let base = folder.path().canonicalize()?;
    let (project, state) = (base.join("project"), base.join("state"));
    for path in [&project, &state] {
        fs::create_dir(path)?;
    }
    for (name, text) in PROJECT {
        fs::write(project.join(name), text)?;
    }
    let config = state.join("config.toml");
    fs::write(&config, configuration(base_url, &state))?;
    let flags = Flags {
        config: Some(config),
        set: vec!["agent.provider=demo".to_owned()],
        no_project: true,
        ..Flags::default()
    };
    Ok((project, flags))
}

fn configuration(base_url: &str, state: &Path) -> String {
    let store = toml::Value::String(state.join("zeph.db").to_string_lossy().into_owned());
    format!(
        "[store]\npath = {store}\n\n[tools.audit]\nfile = \"none\"\n\n[[llm.providers]]\nname = \"demo\"\ntype = \"anthropic\"\n\
         model = \"scripted-1\"\nbase_url = \"{base_url}\"\nprice_input = 0\nprice_output = 0\n"
    )
}

/// The scripted model, on a thread of its own until it is dropped.
struct DemoServer {
    base_url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DemoServer {
    fn start() -> io::Result<Self> {
        let scenario = Scenario::parse(SCENARIO).map_err(io::Error::other)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (started, start) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("zeph-demo".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let server = ScriptedServer::start(scenario).await;
                    let address = server
                        .as_ref()
                        .map(|server| server.base_url(ProviderKind::Anthropic))
                        .map_err(|error| io::Error::new(error.kind(), error.to_string()));
                    drop(started.send(address));
                    // Ends with the sender: nothing is ever sent.
                    drop(stopped.await);
                    drop(server);
                });
            })?;
        Ok(Self {
            base_url: start.recv().map_err(io::Error::other)??,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SCENARIO;
    use zeph_agent::scripted::Scenario;

    #[test]
    fn the_scenario_can_be_played() {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        assert!(scenario.repeats && scenario.steps.len() > 4);
    }
}
