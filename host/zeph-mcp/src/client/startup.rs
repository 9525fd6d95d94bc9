//! Opening a connection: the handshake, in either generation of the protocol.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{Implementation, ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService,
};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeph_core::failure::one_line;
use zeph_core::redact::Redactor;
use zeph_core::text::plain_line;
use zeph_egress::HostAccount;

use super::cleaning::{text, title};
use super::complaint::Complaints;
use super::desk::Desk;
use super::ending::{EndReason, Ending};
use super::error::{McpError, WORDS_CHARS_MAX};
use super::guard::{Guarded, Link};
use super::handler::Handler;
use super::listener::ServerListener;
use super::pipes::Pipes;
use super::probe::{Probe, ProbeFindings};
use super::session::{Session, of_rpc, tell_abandoned};
use super::subscription::Subscriber;
use super::{
    Connection, ConnectionOptions, DefinitionLimits, Era, Inside, QuestionKinds, ServerInfo,
    ServerTransport, http,
};

/// Most requests that wait for their cancellation to be told.
const ABANDONED_MAX: usize = 256;

/// Most characters of a name and of a version.
const NAME_CHARS_MAX: usize = 128;

/// How long a server may take to take note of which log messages are wanted.
const LEVEL_PATIENCE: Duration = Duration::from_secs(5);

type Running = RunningService<RoleClient, Handler>;

/// What the parts of one connection share.
struct Common {
    listener: Arc<dyn ServerListener>,
    complaints: Complaints,
    desk: Desk,
    ending: Ending,
    questions: QuestionKinds,
}

/// Opens a connection.
///
/// Errors: of [`Connection::open`].
pub(super) async fn open(
    transport: ServerTransport,
    options: ConnectionOptions,
    listener: Arc<dyn ServerListener>,
) -> Result<Connection, McpError> {
    let questions = match options.offers.elicitation {
        true => listener.question_kinds().await,
        false => QuestionKinds::default(),
    };
    let era = match options.era {
        Era::Auto if matches!(transport, ServerTransport::Pipes { .. }) => listener.era().await,
        era => era,
    };
    let options = ConnectionOptions { era, ..options };
    let complaints = Complaints::new(Arc::clone(&listener));
    let common = Common {
        questions,
        desk: Desk::new(Arc::clone(&listener), complaints.clone()),
        complaints,
        listener,
        ending: Ending::default(),
    };
    let bytes_max = options.message_bytes_max;
    let account = transport.account();
    let findings = Arc::new(ProbeFindings::default());
    let running = match transport {
        ServerTransport::Pipes {
            from_server,
            to_server,
        } => {
            let (complaints, ending) = (common.complaints.clone(), common.ending.clone());
            let pipes = Pipes::new(from_server, to_server, bytes_max, complaints, ending);
            over_pipes(pipes, &options, (&common, &findings)).await?
        }
        ServerTransport::Http(server) => {
            let link = http::transport(*server, bytes_max);
            let probe = match options.era {
                Era::Auto => Probe::patient(),
                Era::Initialize | Era::Discover => Probe::none(),
            };
            handshake(link, &options, &common, probe).await?
        }
    };
    let is_silent = findings.is_silent.load(Ordering::Relaxed);
    let level = common.listener.log_level();
    let connection = connected(running, (&options, account, is_silent), common)?;
    if let Some(level) = level.filter(|_| connection.sets_level()) {
        // One that does not answer logs as it likes.
        drop(timeout(LEVEL_PATIENCE, connection.set_level(level)).await);
    }
    Ok(connection)
}

async fn over_pipes(
    pipes: Pipes,
    options: &ConnectionOptions,
    (common, findings): (&Common, &Arc<ProbeFindings>),
) -> Result<Running, McpError> {
    let probe = match options.era {
        Era::Auto => Probe::new(Arc::clone(findings)),
        Era::Initialize | Era::Discover => Probe::none(),
    };
    let shaken = handshake(pipes, options, common, probe).await;
    shaken.map_err(|error| match findings.is_ended.load(Ordering::Relaxed) {
        true => McpError::EndedAtProbe,
        false => error,
    })
}

async fn handshake<L: Link + 'static>(
    link: L,
    options: &ConnectionOptions,
    common: &Common,
    probe: Probe,
) -> Result<Running, McpError> {
    let handler = Handler {
        listener: Arc::clone(&common.listener),
        complaints: common.complaints.clone(),
        desk: common.desk.clone(),
        ending: common.ending.clone(),
        questions: common.questions,
        version: options.version.clone(),
    };
    let guarded = Guarded::new(link, common.desk.clone(), common.ending.clone(), probe);
    let shaking = handler.serve_with_lifecycle(guarded, lifecycle(options.era));
    match timeout(options.start_timeout, shaking).await {
        Ok(Ok(running)) => Ok(running),
        Ok(Err(error)) => Err(failed(error, &common.ending)),
        Err(_) => Err(McpError::Timeout {
            limit: options.start_timeout,
        }),
    }
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => ClientLifecycleMode::Discover { preferred_versions },
        Era::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

/// Why there was no handshake.
fn failed(error: ClientInitializeError, ending: &Ending) -> McpError {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            match error.error.downcast_ref::<McpError>().cloned() {
                Some(McpError::Ended(reason)) => not_begun(&reason),
                Some(error) => error,
                None => McpError::start(error.error.to_string()),
            }
        }
        ClientInitializeError::ConnectionClosed(_) => {
            not_begun(&ending.reason().unwrap_or(EndReason::Exited))
        }
        ClientInitializeError::JsonRpcError(error) => {
            McpError::Refused(one_line(&of_rpc(&error).to_string(), WORDS_CHARS_MAX))
        }
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => {
            let versions: Vec<&str> = server_supported
                .iter()
                .map(|version| version.as_str())
                .collect();
            McpError::start(format!(
                "it speaks no revision of the protocol that zeph-host speaks, but {}",
                versions.join(", ")
            ))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => failed(*fallback, ending),
        ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ExpectedInitResponse(_) => {
            McpError::start("its answer to the handshake is not one of the protocol")
        }
        other => McpError::start(other.to_string()),
    }
}

fn not_begun(reason: &EndReason) -> McpError {
    McpError::start(match reason {
        EndReason::Exited => "it closed its output before it answered".to_owned(),
        reason => reason.to_string(),
    })
}

/// The connection after its handshake.
fn connected(
    running: Running,
    (options, account, is_silent): (&ConnectionOptions, Option<HostAccount>, bool),
    common: Common,
) -> Result<Connection, McpError> {
    let peer = running.peer().clone();
    let info = peer
        .peer_info()
        .ok_or_else(|| McpError::start("it said nothing about itself"))?;
    if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) {
        let version = one_line(info.protocol_version.as_str(), 32);
        return Err(McpError::start(format!(
            "it speaks revision `{version}` of the protocol, which zeph-host does not know"
        )));
    }
    let info = server_info(&info, &options.limits, &common.listener.redactor());
    let (abandoned, waiting) = mpsc::channel(ABANDONED_MAX);
    let renewed = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(tell_abandoned(peer.clone(), waiting, common.ending.clone()));
    if info.is_stateless {
        let subscriber = Subscriber {
            peer: peer.clone(),
            desk: common.desk.clone(),
            listener: Arc::clone(&common.listener),
            capabilities: info.capabilities.clone(),
            renewed: Arc::clone(&renewed),
        };
        tasks.spawn(subscriber.run(common.ending.clone()));
    }
    let session = Session {
        peer,
        desk: common.desk,
        ending: common.ending.clone(),
        listener: common.listener,
        questions: common.questions,
        request_timeout: options.request_timeout,
        is_stateless: info.is_stateless,
        abandoned,
    };
    Ok(Connection(Arc::new(Inside {
        session,
        info,
        is_silent,
        account,
        limits: options.limits,
        ending: common.ending,
        outputs: std::sync::Mutex::default(),
        level: tokio::sync::Mutex::default(),
        renewed,
        running: tokio::sync::Mutex::new(Some(running)),
        _tasks: tasks,
    })))
}

fn server_info(
    info: &ServerPeerInfo,
    limits: &DefinitionLimits,
    redactor: &Redactor,
) -> ServerInfo {
    let nobody = Implementation::new("", "");
    let named = info.server_info.as_ref().unwrap_or(&nobody);
    // That it was cut shows.
    let mut n_cut = 0;
    let line = |words: &str| plain_line(&redactor.text(words), NAME_CHARS_MAX);
    let named_title = named.title.as_deref().map(|words| redactor.text(words));
    let instructions = info.instructions.as_deref();
    let instructions = instructions.map(|words| redactor.text(words).into_owned());
    let clean = instructions
        .as_deref()
        .map(|words| text(words, limits.instructions_bytes, &mut n_cut));
    ServerInfo {
        name: line(&named.name),
        version: line(&named.version),
        title: title(named_title.as_deref()),
        instructions: clean.filter(|words| !words.is_empty()),
        instructions_sent: instructions,
        capabilities: info.capabilities.clone(),
        protocol: info.protocol_version.to_string(),
        is_stateless: !info.protocol_version.has_initialize(),
    }
}
