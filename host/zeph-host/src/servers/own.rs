//! The servers of the configuration: programs of this machine in jails of their own, and remote ones over the host's way out.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;
use zeph_config::{
    CommandServer, Config, HttpServer, ServerConfig, ServerTransport as ConfiguredTransport,
};
use zeph_core::execution::HostUse;
use zeph_core::id::ServerName;
use zeph_egress::{Egress, HostAccount, OwnClient, OwnLimits, Pending};
use zeph_mcp::client::oauth::Access;
use zeph_mcp::client::{self, ServerTransport};
use zeph_plugins::event::{PluginEvent, Tell};
use zeph_shell::jail::PathWatch;

use super::last_start::LastStart;
use super::launch::{
    InstallPin, LaunchError, LaunchPin, Launched, Launcher, Prepared, Progress, Refusal,
    RemoteServer,
};
use super::login;
use super::older;
use super::opener::{Launch, LaunchPlan, OpenFailure, OpenedServer, Opener, ServerProcess};
use super::pending;
use super::set::ChangedServer;
use crate::known_secrets::KnownSecrets;

/// Most bytes of an answer of a remote server.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Opens what the configuration says.
#[derive(Debug)]
pub(crate) struct OwnOpener {
    config: Config,
    secrets: Arc<KnownSecrets>,
    egress: Egress,
    progress: Progress,
    watch: Option<PathWatch>,
    /// Made when the first server is wanted: it is a thread.
    launcher: OnceLock<Launcher>,
}

impl OwnOpener {
    /// Starts nothing yet. `tell` hears of installations.
    pub(crate) fn new(
        config: &Config,
        secrets: &Arc<KnownSecrets>,
        egress: &Egress,
        tell: Option<Tell>,
    ) -> Self {
        Self {
            config: config.clone(),
            secrets: Arc::clone(secrets),
            egress: egress.clone(),
            progress: Progress::new(move |text| {
                if let Some(tell) = &tell {
                    let what = text.to_owned();
                    tell(&PluginEvent::Progress { what });
                }
            }),
            watch: None,
            launcher: OnceLock::new(),
        }
    }

    /// Has `watch`, if there is one, learn which paths the servers ask for in vain.
    #[must_use]
    pub(crate) fn watched(self, watch: Option<PathWatch>) -> Self {
        Self { watch, ..self }
    }

    /// Ends every server that was started here, and waits until nothing of them is left. Blocks, for `patience` at most. Returns
    /// whether all are gone.
    pub(crate) fn end_all(&self, patience: Duration) -> bool {
        let launcher = self.launcher.get();
        launcher.is_none_or(|launcher| launcher.end_all(patience))
    }

    fn launcher(&self) -> Result<&Launcher, OpenFailure> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        let (progress, watch) = (self.progress.clone(), self.watch.clone());
        let launcher = Launcher::new(&self.config, &self.secrets, progress, watch);
        let launcher = launcher.map_err(|error| {
            OpenFailure::Failed(format!(
                "the thread that starts servers cannot start: {error}"
            ))
        })?;
        Ok(self.launcher.get_or_init(|| launcher))
    }

    /// Without the secrets the host knows: a pin is read by people.
    fn clean(&self, words: impl IntoIterator<Item = String>) -> Vec<String> {
        let redactor = self.secrets.redactor();
        let words = words.into_iter();
        words
            .map(|word| redactor.text(&word).into_owned())
            .collect()
    }

    async fn program(
        &self,
        name: &ServerName,
        server: &CommandServer,
        accepted: Option<&LaunchPlan>,
    ) -> Result<Box<dyn Launch>, OpenFailure> {
        let launcher = self.launcher()?;
        let argv = std::iter::once(&server.program).chain(&server.arguments);
        let argv: Vec<String> = argv.cloned().collect();
        // What is read by people holds no secret; what runs does.
        let accepted = accepted.filter(|plan| plan.launch == self.clean(argv.iter().cloned()));
        let accepted = accepted.map(|plan| LaunchPin {
            argv,
            installed: install_pin(plan),
        });
        let prepared = launcher.prepare(name, server, accepted.as_ref());
        let prepared = prepared.await.map_err(failed)?;
        let pin = prepared.pin();
        let installed = pin.installed.as_ref();
        let installed = installed.and_then(|pin| serde_json::to_value(pin).ok());
        let plan = LaunchPlan {
            launch: self.clean(pin.argv.iter().cloned()),
            install: installed.map(pairs).unwrap_or_default(),
        };
        Ok(Box::new(OwnProgram {
            launcher: launcher.clone(),
            prepared,
            plan,
        }))
    }

    fn remote(
        &self,
        name: &ServerName,
        server: &HttpServer,
    ) -> Result<Box<dyn Launch>, OpenFailure> {
        let remote = self.launcher()?.remote(name, server).map_err(failed)?;
        let launch = self.clean([server.url.clone()]);
        let account = HostAccount::default();
        let of = (server, &account);
        Ok(Box::new(OwnRemote {
            egress: self.egress.clone(),
            remote,
            access: login::access(&self.config, &self.secrets, &self.egress, name, of),
            account,
            plan: LaunchPlan {
                launch,
                ..LaunchPlan::default()
            },
        }))
    }
}

impl Opener for OwnOpener {
    fn plan<'a>(
        &'a self,
        name: &'a ServerName,
        config: &'a ServerConfig,
        accepted: Option<&'a LaunchPlan>,
    ) -> Pending<'a, Result<Box<dyn Launch>, OpenFailure>> {
        Box::pin(async move {
            match &config.transport {
                ConfiguredTransport::Command(server) => self.program(name, server, accepted).await,
                ConfiguredTransport::Http(server) => self.remote(name, server),
            }
        })
    }

    fn is_older(&self, name: &ServerName, plan: &LaunchPlan) -> bool {
        older::is_noted(&self.config, name, plan)
    }

    fn note_older(&self, name: &ServerName, plan: &LaunchPlan, is_older: bool) {
        if let Err(error) = older::note(&self.config, name, plan, is_older) {
            tracing::debug!(server = %name, %error, "the generation of a server cannot be remembered");
        }
    }

    fn note_start(&self, name: &ServerName, process: Option<&dyn ServerProcess>) {
        let walls = process.map_or("remote", |process| process.walls());
        let missing = process.map(|process| process.missing_layers());
        let start = LastStart {
            walls: walls.to_owned(),
            missing_layers: missing.unwrap_or_default(),
        };
        if let Err(error) = start.keep(&self.config, name) {
            tracing::debug!(server = %name, %error, "the start of a server cannot be remembered");
        }
    }

    fn keep_changed(&self, changed: &ChangedServer) {
        if let Err(problem) = pending::keep(&self.config, changed) {
            let server = &changed.new.name;
            tracing::warn!(%server, problem, "what a server is now cannot be kept for its approval");
        }
    }
}

/// A program that is installed as far as it has to be.
#[derive(Debug)]
struct OwnProgram {
    launcher: Launcher,
    prepared: Prepared,
    plan: LaunchPlan,
}

impl Launch for OwnProgram {
    fn plan(&self) -> LaunchPlan {
        self.plan.clone()
    }

    fn open(&self) -> Pending<'_, Result<OpenedServer, OpenFailure>> {
        Box::pin(async move {
            let mut launched = self.launcher.start(&self.prepared).await.map_err(failed)?;
            let pipes = launched.pipes.take();
            let pipes = pipes.ok_or_else(|| OpenFailure::Failed("it has no streams".to_owned()))?;
            Ok(OpenedServer {
                transport: ServerTransport::Pipes {
                    from_server: Box::new(pipes.stdout),
                    to_server: Box::new(pipes.stdin),
                },
                process: Some(Arc::new(launched)),
            })
        })
    }
}

impl ServerProcess for Launched {
    fn walls(&self) -> &'static str {
        self.label().as_str()
    }

    fn missing_layers(&self) -> Vec<String> {
        self.missing_layers.clone()
    }

    fn stderr(&self) -> String {
        self.error_output()
    }

    fn refused(&self) -> Vec<String> {
        self.complaints()
    }

    fn lacks(&self, said: &str) -> Vec<Refusal> {
        let mut refusals = self.refusals();
        refusals.extend(self.refusals_in(said));
        refusals
    }

    fn hosts(&self) -> Vec<HostUse> {
        Self::hosts(self)
    }

    fn end(&self) -> Pending<'_, ()> {
        Box::pin(async {
            self.service.stop();
            drop(self.service.ended().await);
        })
    }
}

/// A server that is reached over HTTP.
#[derive(Debug)]
struct OwnRemote {
    egress: Egress,
    remote: RemoteServer,
    access: Option<Arc<Access>>,
    /// Its own: what it exchanges is charged to its calls.
    account: HostAccount,
    plan: LaunchPlan,
}

impl Launch for OwnRemote {
    fn plan(&self) -> LaunchPlan {
        self.plan.clone()
    }

    fn open(&self) -> Pending<'_, Result<OpenedServer, OpenFailure>> {
        let opened = self.opened().map_err(OpenFailure::Failed);
        Box::pin(std::future::ready(opened))
    }
}

impl OwnRemote {
    fn opened(&self) -> Result<OpenedServer, String> {
        let url = Url::parse(&self.remote.url).map_err(|error| error.to_string())?;
        let limits = OwnLimits {
            time: Duration::MAX,
            bytes: ANSWER_BYTES_MAX,
        };
        let client = OwnClient::new(&self.egress, &[&self.remote.url], limits);
        let client = client.map_err(|error| error.to_string())?;
        let client = client.counted_in(self.account.clone());
        let mut headers = HeaderMap::new();
        for (name, value) in &self.remote.headers {
            let bad = |_bad| format!("the header `{name}` cannot be sent");
            let name = name.parse::<HeaderName>().map_err(|_bad| bad(()))?;
            let mut value = HeaderValue::from_str(value).map_err(|_bad| bad(()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let server = client::HttpServer {
            client,
            url,
            headers,
            credentials: self.access.clone().map(|access| access as _),
        };
        Ok(OpenedServer {
            transport: ServerTransport::Http(Box::new(server)),
            process: None,
        })
    }
}

/// What was accepted of an installation, if it is one.
fn install_pin(plan: &LaunchPlan) -> Option<InstallPin> {
    let fields = plan.install.iter();
    let fields = fields.map(|(key, text)| (key.clone(), serde_json::Value::from(text.as_str())));
    serde_json::from_value(serde_json::Value::Object(fields.collect())).ok()
}

/// What was installed, as names and texts.
fn pairs(installed: serde_json::Value) -> std::collections::BTreeMap<String, String> {
    let fields = match installed {
        serde_json::Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    let pair = |(key, value): (String, serde_json::Value)| match value {
        serde_json::Value::String(text) => (key, text),
        other => (key, other.to_string()),
    };
    fields.into_iter().map(pair).collect()
}

fn failed(error: LaunchError) -> OpenFailure {
    OpenFailure::Failed(zeph_core::failure::chain(&error, 600))
}
