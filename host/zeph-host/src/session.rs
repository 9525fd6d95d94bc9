//! One client's stay: whose conversation it is, whose calls it makes, and what its commands left behind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;
use zeph_core::call::{CallFrame, ResolvedCall, ToolRequest, TurnContext};
use zeph_core::id::{CallId, ConversationId};
use zeph_core::output::RawOutput;
use zeph_core::policy::HeardUrls;
use zeph_core::principal::Principal;
use zeph_store::{ApprovalAsker, Owner, TokenUse, WorkHold};

use crate::admission::Admission;
use crate::clock::now_ms;
use crate::dependencies::{AskedCall, Progress};
use crate::filtering::wasm::SessionStrategies;
use crate::goal::{GoalPlace, SessionGoal};
use crate::governance::{AskedStep, Trajectory};
use crate::mode::{ModeSwitch, SessionMode};
use crate::quota::SessionQuota;
use crate::shell::{CommandBackend, Share};
use crate::turn_state::TurnStates;
use crate::workspace::SessionWorkspace;

/// A client connection. Owned by one task; clones are handles to one.
#[derive(Debug, Clone)]
pub struct Session {
    /// Owns the outputs stored during the session.
    pub(crate) conversation: ConversationId,
    principal: Principal,
    /// What let its caller in: no call of the caller's goes beyond it.
    admission: Arc<Admission>,
    commands: CommandBackend,
    shell: Share,
    strategies: SessionStrategies,
    /// Calls of its conversation that were asked for, refused ones too.
    quota: Arc<SessionQuota>,
    /// Messages for the model that came with a report it was not shown. Protects the list for the moment of exchanging it.
    untold: Arc<Mutex<Vec<String>>>,
    /// The addresses it was told of. Protects the exchange of the whole.
    heard: Arc<Mutex<Hearing>>,
    /// What it works towards.
    goals: GoalPlace,
    /// What the outputs of its turns held.
    turn_states: TurnStates,
    /// What the user said last. Protects the exchange of the whole.
    said: Arc<Mutex<Option<Arc<str>>>>,
    /// What the model's last answer took, where its agent says so. Protects the exchange of the whole.
    tokens: Arc<Mutex<Option<TokenUse>>>,
    /// Which tools have succeeded in it.
    progress: Progress,
    /// What it did and read.
    trajectory: Trajectory,
    mode: Arc<ModeSwitch>,
    /// The run of a schedule that makes its calls; none when a caller does.
    schedule: Option<Arc<str>>,
    /// The call of a plugin that makes its calls, and waits for them.
    by_call: Option<CallId>,
    /// What its calls are made for, if another host may take that over.
    hold: Option<WorkHold>,
    /// Whether nobody knows who its client is.
    is_anonymous: bool,
    /// What it has of files and commands.
    workspace: SessionWorkspace,
}

/// The addresses a session was told of.
#[derive(Debug, Default)]
struct Hearing {
    /// None where nobody will say what the user does: nothing is kept for nothing.
    urls: Option<Arc<HeardUrls>>,
    /// Whether the user said something by now.
    has_user: bool,
}

impl Hearing {
    /// For what the user says, or names elsewhere.
    fn of_user(&mut self) -> &mut HeardUrls {
        self.has_user = true;
        Arc::make_mut(self.urls.get_or_insert_default())
    }
}

/// A call that was asked for: its place in the order of calls is that of this moment, and so is its turn.
#[derive(Debug)]
pub(crate) struct AskedRequest {
    pub(crate) frame: CallFrame,
    pub(crate) request: ToolRequest,
    pub(crate) asked: AskedCall,
    pub(crate) step: AskedStep,
}

impl Session {
    pub(crate) fn new(
        conversation: ConversationId,
        principal: Principal,
        (commands, shell): (CommandBackend, Share),
        strategies: SessionStrategies,
        (progress, trajectory): (Progress, Trajectory),
    ) -> Self {
        Self {
            conversation,
            principal,
            admission: Arc::default(),
            commands,
            shell,
            strategies,
            quota: Arc::default(),
            untold: Arc::default(),
            heard: Arc::default(),
            goals: GoalPlace::default(),
            turn_states: TurnStates::default(),
            said: Arc::default(),
            tokens: Arc::default(),
            progress,
            trajectory,
            mode: Arc::default(),
            schedule: None,
            by_call: None,
            hold: None,
            is_anonymous: false,
            workspace: SessionWorkspace::Here,
        }
    }

    /// The same with these files and commands.
    #[must_use]
    pub(crate) fn with_workspace(self, workspace: SessionWorkspace) -> Self {
        Self { workspace, ..self }
    }

    /// Limits the session to what `admission` allows its caller.
    #[must_use]
    pub(crate) fn admitted(self, admission: Admission) -> Self {
        Self {
            admission: Arc::new(admission),
            ..self
        }
    }

    /// What let its caller in.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Whose what it leaves behind is.
    pub(crate) fn owner(&self) -> Owner {
        if self.is_anonymous {
            return Owner::anonymous();
        }
        Owner {
            token: self.admission.token,
            ..Owner::named(self.principal.caller_id())
        }
    }

    /// Who asks for an approval of its calls.
    pub(crate) fn asker(&self) -> ApprovalAsker {
        ApprovalAsker {
            conversation: self.conversation,
            caller: self.owner(),
        }
    }

    /// What it has of files and commands.
    pub(crate) fn workspace(&self) -> &SessionWorkspace {
        &self.workspace
    }

    /// Looks in the store for what another host did in its conversation meanwhile, before its next call is decided.
    pub(crate) fn look_back(&self) {
        self.progress.look_back();
        self.trajectory.look_back();
    }

    /// The same for a client that nobody knows: it showed no token.
    #[must_use]
    pub(crate) fn of_anybody(self) -> Self {
        Self {
            is_anonymous: true,
            ..self
        }
    }

    /// Whether nobody knows who its client is.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// Its conversation, to be resumed later.
    pub fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Whose calls it makes.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// How much it may do beyond the rules.
    pub(crate) fn mode(&self) -> SessionMode {
        self.mode.mode()
    }

    /// Another mode, for every call that is decided from now on.
    pub(crate) fn set_mode(&self, mode: SessionMode) {
        self.mode.set(mode);
    }

    /// The same session for calls that a program or a model makes for `caller_id`. An operator's stay the operator's.
    #[must_use]
    pub(crate) fn acting_for(&self, caller_id: &str) -> Self {
        Self {
            principal: self.principal.acting_for(caller_id),
            ..self.clone()
        }
    }

    /// The same session for calls that a schedule makes, with a name for the audit: nobody types them, and what was allowed for this moment
    /// alone, by a mode or on the command line, does not count.
    #[must_use]
    pub(crate) fn of_schedule(&self, label: &str) -> Self {
        let mode = ModeSwitch::default();
        if self.mode() == SessionMode::ReadOnly {
            mode.set(SessionMode::ReadOnly);
        }
        Self {
            principal: match &self.principal {
                Principal::Operator(_) => Principal::PROGRAM,
                other => other.clone(),
            },
            mode: Arc::new(mode),
            schedule: Some(Arc::from(label)),
            ..self.clone()
        }
    }

    /// The same session for calls that the plugin's call `id` makes, which its records name: nobody types them, and what was allowed for
    /// this moment alone by a mode does not count.
    #[must_use]
    pub(crate) fn of_plugin(&self, id: CallId) -> Self {
        Self {
            schedule: self.schedule.clone(),
            by_call: Some(id),
            ..self.of_schedule("")
        }
    }

    /// Whether a plugin's call makes its calls: nobody reads what they give.
    pub(crate) fn is_of_plugin(&self) -> bool {
        self.by_call.is_some()
    }

    /// What makes its calls in the place of a person or a model, as the audit names it: a plugin's call, or the run of a schedule.
    pub(crate) fn made_by(&self) -> Option<String> {
        let by_call = self.by_call.map(|id| id.to_string());
        by_call.or_else(|| self.schedule.as_deref().map(str::to_owned))
    }

    /// The same session for calls that begin only while this host holds what they are made for.
    #[must_use]
    pub(crate) fn holding(self, hold: WorkHold) -> Self {
        Self {
            hold: Some(hold),
            ..self
        }
    }

    /// What its calls are made for, if another host may take that over.
    pub(crate) fn hold(&self) -> Option<WorkHold> {
        self.hold
    }

    /// The run of a schedule that makes its calls, as the audit names it.
    pub(crate) fn schedule(&self) -> Option<&str> {
        self.schedule.as_deref()
    }

    /// The frame of a call that is asked for now.
    pub(crate) fn frame(&self) -> CallFrame {
        let turn = self.shell.commands().context();
        CallFrame::new(
            self.conversation,
            self.principal.clone(),
            Some(turn),
            now_ms(),
        )
    }

    /// Asks for a call now.
    pub(crate) fn asks(&self, request: ToolRequest) -> AskedRequest {
        let frame = self.frame();
        AskedRequest {
            asked: self.progress.ask(&request.tool),
            step: self.trajectory.ask(frame.id),
            frame,
            request,
        }
    }

    /// What it did and read.
    pub(crate) fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// Notes what the answer took that asks for the calls that follow.
    pub(crate) fn set_tokens(&self, tokens: TokenUse) {
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }

    /// What the answer took that asked for the calls of this moment.
    pub(crate) fn tokens(&self) -> Option<TokenUse> {
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which tools have succeeded in it.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Begins a turn: directory, variables and history of commands start anew, and what ended in the background meanwhile is told
    /// with the next call. Without a goal of its own it has that of the session.
    pub fn begin_turn(&self, goal_id: Option<String>, skill_name: Option<String>) {
        let goal_id = goal_id.or_else(|| self.goal_id());
        self.shell.begin_turn(turn(goal_id, skill_name));
    }

    /// The goals it knows.
    pub(crate) fn goals(&self) -> &GoalPlace {
        &self.goals
    }

    /// Works towards `goal` from now on, in this turn too.
    pub(crate) fn set_goal(&self, goal: Option<Arc<SessionGoal>>) {
        let before = self.goal_id();
        self.goals.set(goal);
        let commands = self.shell.commands();
        commands.set_goal(before.as_deref(), self.goal_id());
    }

    fn goal_id(&self) -> Option<String> {
        self.goals.active().map(|goal| goal.id())
    }

    /// Takes what an output of `turn` held; it holds no known secret.
    pub(crate) fn take_output(&self, turn: Option<&TurnContext>, output: &RawOutput) {
        let Some(turn) = turn else { return };
        let now = self.shell.commands().context();
        let caller = self.principal.caller_id();
        self.turn_states.take(caller, (turn, &now), output);
    }

    /// What the outputs of its turns held.
    pub(crate) fn turn_states(&self) -> &TurnStates {
        &self.turn_states
    }

    /// Forgets what the session has done so far: a new turn, and the count of its calls begins anew (`/clear`).
    pub fn clear(&self) {
        self.quota.clear();
        self.shell.commands().begin_turn(turn(self.goal_id(), None));
        self.strategies.clear();
        self.progress.clear();
    }

    /// Ends everything that runs in the background for it.
    ///
    /// Limits: returns within 8 seconds.
    pub async fn close(&self) {
        self.shell.commands().shutdown().await;
    }

    /// The warm instances of the strategies its outputs pass through.
    pub(crate) fn strategies(&self) -> &SessionStrategies {
        &self.strategies
    }

    /// Keeps messages for the next call: their report is not shown.
    pub(crate) fn tell_later(&self, messages: Vec<String>) {
        self.untold().extend(messages);
    }

    /// What was kept for the next call.
    pub(crate) fn take_untold(&self) -> Vec<String> {
        std::mem::take(&mut *self.untold())
    }

    fn untold(&self) -> MutexGuard<'_, Vec<String>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its user may be heard later: what its calls write and get until then is remembered.
    pub(crate) fn expects_user(&self) {
        self.lock_heard().urls.get_or_insert_default();
    }

    /// Remembers what the user said, and the addresses in it. From then on a call that reaches another one asks.
    pub fn hear_user(&self, text: &str) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(text));
        self.lock_heard().of_user().hear_user(text);
    }

    /// Remembers the addresses that were named where a model wrote its schedule. From then on a call that reaches another one asks.
    pub(crate) fn hear_named(&self, addresses: &[String]) {
        self.lock_heard().of_user().hear_named(addresses);
    }

    /// Remembers what a model said in the place of the user: it names nothing, and a result that repeats it does not either.
    pub(crate) fn hear_model(&self, text: &str) {
        self.lock_heard().of_user().hear_model(text);
    }

    /// What the user said last, where that is known.
    pub(crate) fn last_said(&self) -> Option<Arc<str>> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.clone()
    }

    /// Remembers the addresses in a result, where the user is heard.
    pub(crate) fn hear_result(&self, text: &str) {
        if let Some(heard) = self.lock_heard().urls.as_mut() {
            Arc::make_mut(heard).hear_result(text);
        }
    }

    /// Remembers the addresses in the name and the arguments of a call, where the user is heard: a result that repeats one does not name it.
    pub(crate) fn hear_call(&self, tool: &str, arguments: &serde_json::Value) {
        if let Some(heard) = self.lock_heard().urls.as_mut() {
            let heard = Arc::make_mut(heard);
            heard.hear_model(tool);
            heard.hear_arguments(arguments);
        }
    }

    /// Remembers the addresses in a request as it was written, before anything of it is left out or refused. What an operator types is
    /// said by its user.
    pub(crate) fn hear_request(&self, request: &ToolRequest) {
        if !self.principal.is_operator() {
            self.hear_call(&request.tool, &request.arguments);
        }
    }

    /// Remembers the addresses in the arguments of a call as its tool gets them, which may be read from a text of the request.
    pub(crate) fn hear_resolved(&self, call: &ResolvedCall) {
        if call.frame.principal.is_operator() {
            return;
        }
        if let Some(heard) = self.lock_heard().urls.as_mut() {
            let heard = Arc::make_mut(heard);
            let values = call.arguments.values.values();
            values.for_each(|value| heard.hear_arguments(value));
        }
    }

    /// The addresses it was told of; `None` where what its user says is not known.
    pub(crate) fn heard(&self) -> Option<Arc<HeardUrls>> {
        let heard = self.lock_heard();
        heard.urls.clone().filter(|_| heard.has_user)
    }

    fn lock_heard(&self) -> MutexGuard<'_, Hearing> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What runs its commands.
    pub(crate) fn commands(&self) -> &CommandBackend {
        &self.commands
    }

    pub(crate) fn shell(&self) -> &Share {
        &self.shell
    }

    /// The calls that count for its conversation.
    pub(crate) fn quota(&self) -> &SessionQuota {
        &self.quota
    }

    /// Calls that were asked for so far, as far as that is known.
    pub(crate) fn calls_made(&self) -> u32 {
        self.quota.n_calls()
    }
}

/// A turn that begins now.
pub(crate) fn turn(goal_id: Option<String>, skill_name: Option<String>) -> TurnContext {
    TurnContext {
        turn_id: Uuid::now_v7().to_string(),
        goal_id,
        skill_name,
        timestamp_ms: u64::try_from(now_ms()).unwrap_or_default(),
    }
}
