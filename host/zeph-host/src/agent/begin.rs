//! An agent, put together: a session of a model, its tools, the provider, the stored conversation.

use std::sync::Arc;

use time::OffsetDateTime;
use tokio::sync::mpsc;
use zeph_agent::Provider;
use zeph_agent::agent::{Agent, AgentLimits};
use zeph_agent::budget::BudgetLimits;
use zeph_agent::transcript::{Transcript, UserEntry};
use zeph_config::Config;
use zeph_core::id::ConversationId;
use zeph_core::principal::Principal;
use zeph_core::user::run_as;
use zeph_shell::run::OutputChunk;
use zeph_store::WorkHold;

use super::approver::Approver;
use super::attachment;
use super::journal::{self, StoreJournal};
use super::prompt;
use super::tools::HostTools;
use crate::admission::Admission;
use crate::goal::{self, plan};
use crate::host::Host;

/// An agent of this host.
pub(crate) type HostAgent = Agent<HostTools, StoreJournal>;

/// How an agent begins.
#[derive(Debug)]
pub(crate) struct AgentStart {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) approver: Approver,
    /// Hears what commands print while they run.
    pub(crate) live: Option<mpsc::Sender<OutputChunk>>,
    /// The conversation that goes on.
    pub(crate) resume: Option<ConversationId>,
    /// The conversation that begins, when it has an ID already.
    pub(crate) conversation: Option<ConversationId>,
    /// The run of a schedule that begins it.
    pub(crate) schedule: Option<AgentRun>,
}

/// The run of a schedule.
#[derive(Debug)]
pub(crate) struct AgentRun {
    /// As the audit names it.
    pub(crate) label: Arc<str>,
    /// The caller it is for.
    pub(crate) caller: Option<String>,
    /// What let that in.
    pub(crate) admission: Admission,
    /// What this host holds of it.
    pub(crate) hold: WorkHold,
}

/// Begins a conversation, or goes on with a stored one. Its entries are only read: the first turn stores some.
///
/// Errors: in words.
pub(crate) async fn begin(host: &Host, start: AgentStart) -> Result<HostAgent, String> {
    let (transcript, last) = match (start.resume, start.conversation) {
        (Some(conversation), _) => journal::load(host.store(), conversation).await?,
        (None, Some(conversation)) => {
            let last = host.store().last_item(conversation).await;
            (
                Transcript::default(),
                last.map_err(|error| error.to_string())?,
            )
        }
        (None, None) => (Transcript::default(), 0),
    };
    let caller_id = start.schedule.as_ref().and_then(|run| run.caller.clone());
    let principal = Principal::Model { caller_id };
    let conversation = start.resume.or(start.conversation);
    let session = host.open_session(conversation, principal).await;
    let mut session = session.map_err(|error| error.to_string())?;
    if let Some(run) = &start.schedule {
        session = session.admitted(run.admission.clone());
        session = session.of_schedule(&run.label).holding(run.hold);
    }
    host.recall(&session).await;
    let config = host.config();
    let directory = directory(config);
    journal::hear(&session, transcript.entries(), true);
    let store = host.store().clone();
    let journal = StoreJournal::new(store, session.clone(), directory.clone(), last);
    let origin = start.provider.origin();
    journal.uses(&origin.provider, &origin.model);
    let configured = config.agent.goal_text.as_deref();
    let found = goal::find(host.store(), &session, configured).await;
    found.map_err(|error| error.to_string())?;
    let tools = HostTools::new((host.clone(), session), start.approver, start.live);
    let system = prompt::system(directory.as_ref());
    let limits = limits(config);
    let mut agent = Agent::new(start.provider, (tools, journal), limits, system, transcript);
    agent.summarizes_results(config.agent.summarizes_output);
    Ok(agent)
}

/// The working directory of tools.
pub(crate) fn directory(config: &Config) -> String {
    let root = config.file.roots.first();
    root.map(|root| root.path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn limits(config: &Config) -> AgentLimits {
    let agent = &config.agent;
    AgentLimits {
        max_tool_iterations: agent.max_tool_iterations,
        context_budget_tokens: agent.context_budget_tokens,
        compaction: agent.compaction,
        budget: BudgetLimits {
            max_cost_usd: agent.max_cost_usd,
            max_total_tokens: agent.max_total_tokens,
            max_wall: agent.max_wall,
        },
    }
}

/// What the user typed, with the files it names and what changes from turn to turn; and what is wrong with files. No known secret is in it.
pub(crate) fn user_entry(tools: &HostTools, text: &str) -> (UserEntry, Vec<String>) {
    let host = tools.host();
    let (config, redactor) = (host.config(), host.redactor());
    let look = || attachment::attached(text, &config.file);
    let (mut attachments, problems) = match run_as(config.tool_user.as_ref(), look) {
        Ok(attached) => attached,
        Err(error) => (Vec::new(), vec![format!("no file is attached: {error}")]),
    };
    for attachment in &mut attachments {
        if let Some(text) = &mut attachment.text {
            redactor.clean(text);
        }
    }
    let entry = UserEntry {
        attachments,
        ..plain_entry(tools, text)
    };
    (entry, problems)
}

/// The same without files: what no person typed names none.
pub(crate) fn plain_entry(tools: &HostTools, text: &str) -> UserEntry {
    let mut text = text.to_owned();
    tools.host().redactor().clean(&mut text);
    let goal = plan::told(tools.session());
    UserEntry {
        text,
        attachments: Vec::new(),
        context: prompt::context(OffsetDateTime::now_utc(), goal.as_deref()),
        is_summary: false,
        is_by_model: false,
    }
}
