//! What a database has to be able to do: every operation with its arguments and its result, and nothing of how it is done.
//!
//! [`Operations`] is the border to a database. Above it [`Store`](crate::Store) queues operations and waits for their answers; below it
//! `sqlite` says them in SQL. A second database implements the trait and drains the same queue; what is tested through `Store` in `tests/it`
//! holds for it too.

use std::error::Error;
use std::time::Duration;

use uuid::Uuid;
use zeph_core::capability::Capability;
use zeph_core::id::{
    ApprovalId, CallId, ConversationId, Digest, OverflowId, Pin, PluginId, ToolName,
};
use zeph_core::lifetime::{GrantLifetime, Lifetime};
use zeph_core::policy::{Label, Mode, TrustLevel, TrustSubject};

use crate::approvals::{Agreement, ApprovalRequest, StoredApproval};
use crate::audit::chain::{ChainHead, ChainMark};
use crate::audit::checkpoint::CheckpointDue;
use crate::audit::earlier::ChainBegin;
use crate::audit::filter::AuditFilter;
use crate::audit::record::{AuditRecord, BeginRecord, Finish, HostProcess};
use crate::call::{CallBegin, SingleUseRights};
use crate::caller::Owner;
use crate::conversation::Conversation;
use crate::defaults::OwnGrants;
use crate::error::StoreError;
use crate::goals::{Goal, GoalState, TaskGraph};
use crate::grant_uses::GrantUses;
use crate::grants::{GrantRecord, ListedGrants, OldGrants, Revoke};
use crate::indexes::SeenIndex;
use crate::long_tasks::{
    LongTask, LongTaskAsker, LongTaskBounds, LongTaskClaim, LongTaskEnd, LongTaskHold,
    LongTaskNews, LongTaskOwner, NewLongTask,
};
use crate::observed::{ObservedCount, ObservedDecision};
use crate::overflow::StoredOutput;
use crate::passages::PassageVector;
use crate::reputation::Reputation;
use crate::savings::{AskedCalls, CacheSavings, FilteredOutput, Savings};
use crate::schedules::{
    NewSchedule, PutSchedule, RunBegin, RunFence, RunFinish, Schedule, ScheduleBounds,
    ScheduleClaim, ScheduleOwner, ScheduleRun,
};
use crate::secrets::audit_keys::AuditKeys;
use crate::sequences::{ConversationPast, SequenceObservation, StoredSequence};
use crate::session::{AppendEnd, NewSession, NewSessionItem, SessionItems, SessionRecord};
use crate::sharing::CallBucket;
use crate::sweep::{Past, SweepClock, SweepReport, SweepTime};
use crate::tokens::TokenRecord;
use crate::trust::{OutcomeNote, TrustAlert, TrustState};

/// Why an operation has no result.
#[derive(Debug)]
pub(crate) enum OperationFault {
    /// The database refused; in its own words.
    Database(Box<dyn Error + Send + Sync>),
    /// The file is no longer the one that was opened.
    Moved,
    /// The line in the audit file cannot be written, without which the operation must not happen.
    Line(StoreError),
    /// For a reason that has its words.
    Told(StoreError),
}

/// The result of an operation.
pub(crate) type Outcome<T> = Result<T, OperationFault>;

/// Everything the store can do, each inside a transaction of its caller: an operation that fails changes nothing.
pub(crate) trait Operations {
    /// Gives back memory that only spares work; a database elsewhere holds none here.
    fn give_back_memory(&self) -> Outcome<()> {
        Ok(())
    }

    /// Begins a conversation, or marks the one that is there as used at `at_ms`.
    fn begin_conversation(&self, id: ConversationId, at_ms: i64) -> Outcome<()>;
    /// The conversations used last, newest first, at most `limit`.
    fn conversations(&self, limit: u32) -> Outcome<Vec<Conversation>>;
    /// Deletes a conversation with its outputs, session grants, requests and approvals; says whether there was one.
    fn delete_conversation(&self, id: ConversationId) -> Outcome<bool>;

    /// Begins the session of a conversation, which is begun when there is none; one that is there keeps its items and its beginning.
    fn begin_session(&self, session: &NewSession, at_ms: i64) -> Outcome<()>;
    /// Appends items to a session whose last one has the number `after`.
    fn append_items(
        &self,
        conversation: ConversationId,
        items: &[NewSessionItem],
        after: i64,
        at_ms: i64,
    ) -> Outcome<AppendEnd>;
    /// The items of a session in order, from the last base on.
    fn session_items(&self, conversation: ConversationId) -> Outcome<SessionItems>;
    /// The items of a session in order that were appended after the one with the number `after`.
    fn session_items_after(
        &self,
        conversation: ConversationId,
        after: i64,
    ) -> Outcome<SessionItems>;
    /// The number of the last item of a session; 0 when there is none.
    fn last_item(&self, conversation: ConversationId) -> Outcome<i64>;
    /// The session of a conversation.
    fn session(&self, conversation: ConversationId) -> Outcome<Option<SessionRecord>>;
    /// The sessions of one directory or of all that were used last, newest first, at most `limit`.
    fn sessions(&self, directory: Option<&str>, limit: u32) -> Outcome<Vec<SessionRecord>>;

    /// Sets the goal of a conversation, which is begun when there is none; the active one it had is cancelled.
    fn begin_goal(&self, goal: &Goal) -> Outcome<()>;
    /// The active goal of a conversation, with its tasks.
    fn active_goal(&self, conversation: ConversationId) -> Outcome<Option<Goal>>;
    /// A goal of this conversation, with its tasks.
    fn goal(&self, conversation: ConversationId, id: Uuid) -> Outcome<Option<Goal>>;
    /// The goals of a conversation, newest first, at most `limit`.
    fn goals(&self, conversation: ConversationId, limit: u32) -> Outcome<Vec<Goal>>;
    /// Ends an active goal of this conversation; false when there is none.
    fn end_goal(
        &self,
        conversation: ConversationId,
        id: Uuid,
        state: GoalState,
        at_ms: i64,
    ) -> Outcome<bool>;
    /// Puts tasks in the place of those of an active goal of this conversation; false when there is none.
    fn set_tasks(
        &self,
        conversation: ConversationId,
        id: Uuid,
        tasks: &TaskGraph,
        at_ms: i64,
    ) -> Outcome<bool>;

    /// Puts a schedule in the place of one of the same owner and name; without one, within the bounds.
    fn put_schedule(
        &self,
        schedule: &NewSchedule,
        bounds: ScheduleBounds,
        at_ms: i64,
    ) -> Outcome<PutSchedule>;
    /// Removes the schedule of an owner, with what is known of its runs; false when there is none.
    fn cancel_schedule(&self, owner: &ScheduleOwner, name: &str) -> Outcome<bool>;
    /// Moves schedules from one directory to another, but for those whose caller has one of that name there; says how many.
    fn move_schedules(&self, from: &str, to: &str) -> Outcome<u64>;
    /// The schedules of one owner or of all, by name, each with its last run, at most `limit`.
    fn schedules(&self, owner: Option<&ScheduleOwner>, limit: u32) -> Outcome<Vec<Schedule>>;
    /// The last runs of a schedule, newest first.
    fn schedule_runs(&self, schedule: Uuid) -> Outcome<Vec<ScheduleRun>>;
    /// When the next schedule of a directory comes, those of anonymous clients among them or not.
    fn next_schedule(&self, place: (&str, bool), waiting_ms: Option<i64>) -> Outcome<Option<i64>>;
    /// Claims schedules whose time has come, the earliest first.
    fn claim_schedules(&self, claim: &ScheduleClaim) -> Outcome<Vec<Schedule>>;
    /// The schedules of a directory of which a run goes on.
    fn held_schedules(&self, directory: &str) -> Outcome<Vec<Schedule>>;
    /// Records a run and moves its schedule on, if that is as it was claimed and no run of it goes on; an occurrence that passes without a
    /// run is recorded while one goes on, too.
    fn begin_run(&self, begin: &RunBegin) -> Outcome<bool>;
    /// Holds runs from now on; says which are held.
    fn keep_runs(&self, runs: &[RunFence], lease: Duration) -> Outcome<Vec<Uuid>>;
    /// Ends a run; false when it had ended already, or is held and was to end only if it is not.
    fn finish_run(&self, finish: &RunFinish) -> Outcome<bool>;

    /// Begins a task; none when there are too many.
    fn put_long_task(
        &self,
        task: &NewLongTask,
        bounds: LongTaskBounds,
        lease: Duration,
    ) -> Outcome<Option<LongTask>>;
    /// How many tasks a caller has, and how many there are.
    fn n_long_tasks(&self, owner: &LongTaskOwner) -> Outcome<(u32, u32)>;
    /// A task of who asks.
    fn long_task(&self, id: Uuid, asker: &LongTaskAsker) -> Outcome<Option<LongTask>>;
    /// Marks a task of who asks as to be ended; false when there is none.
    fn cancel_long_task(&self, id: Uuid, asker: &LongTaskAsker) -> Outcome<bool>;
    /// Keeps the first answers to questions of a task; false when there is none of who asks.
    fn answer_long_task(
        &self,
        id: Uuid,
        asker: &LongTaskAsker,
        answers: &[(String, String)],
    ) -> Outcome<bool>;
    /// Holds tasks from now on; says what has come for those that are held.
    fn keep_long_tasks(
        &self,
        holds: &[LongTaskHold],
        lease: Duration,
    ) -> Outcome<Vec<LongTaskNews>>;
    /// Puts a question of a task that is held; false when it is not.
    fn ask_long_task(&self, hold: LongTaskHold, key: &str, question: &str) -> Outcome<bool>;
    /// Takes a question of a task back that is held; false when it is not.
    fn withdraw_long_task(&self, hold: LongTaskHold, key: &str) -> Outcome<bool>;
    /// Ends a task that is held; false when it is not.
    fn end_long_task(&self, hold: LongTaskHold, end: &LongTaskEnd) -> Outcome<bool>;
    /// Lets go of a task that is held; false when it is not.
    fn release_long_task(&self, hold: LongTaskHold) -> Outcome<bool>;
    /// Takes over tasks that nobody holds, each by one host, and forgets those whose time is over.
    fn claim_long_tasks(&self, claim: &LongTaskClaim) -> Outcome<Vec<LongTask>>;

    /// The calls of a conversation that count towards its quota.
    fn n_counted(&self, conversation: ConversationId) -> Outcome<u32>;
    /// Counts the calls of a conversation from 0 again.
    fn forget_counted(&self, conversation: ConversationId) -> Outcome<()>;

    /// Stores the full text of an output. `rules`: those that shortened what is shown of it, as a JSON array.
    fn put_output(&self, output: &NewOutput<'_>) -> Outcome<()>;
    /// A stored output of this conversation.
    fn output(&self, conversation: ConversationId, id: OverflowId) -> Outcome<Option<Vec<u8>>>;

    /// The stored outputs of a conversation, newest first, at most `limit`.
    fn outputs(&self, conversation: ConversationId, limit: u32) -> Outcome<Vec<StoredOutput>>;

    /// Adds one output to the sums of its conversation, which is begun when there is none.
    fn count_filtered(
        &self,
        conversation: ConversationId,
        output: &FilteredOutput,
        at_ms: i64,
    ) -> Outcome<()>;
    /// Counts that a stored output was read, the first time.
    fn count_read_back(&self, conversation: ConversationId, id: OverflowId) -> Outcome<()>;
    /// The sums of one conversation or of all, those over all outputs first, then by the name of the rule.
    fn savings(&self, conversation: Option<ConversationId>) -> Outcome<Vec<Savings>>;

    /// The calls of one conversation or of all that were answered from an earlier one.
    fn cache_savings(&self, conversation: Option<ConversationId>) -> Outcome<CacheSavings>;

    /// How often calls needed a person, in one conversation or in all.
    fn asked_calls(&self, conversation: Option<ConversationId>) -> Outcome<AskedCalls>;

    /// Adds grants beside those that are there; gives back which one now stands for each capability, in the same order.
    fn add_grants(&self, grants: &NewGrants, at_ms: i64) -> Outcome<Vec<GrantRecord>>;
    /// The grants that no call holds, of one plugin or of all, by plugin and number, and the rows that cannot be read.
    fn grants(&self, plugin: Option<&PluginId>) -> Outcome<ListedGrants>;
    /// The grants that count for a call of exactly this plugin in this conversation at `now_ms`.
    fn grants_of_call(
        &self,
        plugin: &PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<Vec<GrantRecord>>;
    /// What a plugin of the program may use in a call.
    fn own_grants_of_call(
        &self,
        plugin: &PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<OwnGrants> {
        Ok(OwnGrants {
            has_defaults: self.has_defaults(plugin)?,
            granted: self.grants_of_call(plugin, pin, conversation, now_ms)?,
        })
    }
    /// Revokes grants of a plugin, held ones too; says how many.
    fn revoke_grants(&self, plugin: &PluginId, which: &Revoke) -> Outcome<usize>;
    /// Lets the grants of `from` (`None`: of every pin) count for `to`; says how many those were.
    fn rebind_grants(
        &self,
        plugin: &PluginId,
        from: Option<Pin>,
        to: Pin,
        old: OldGrants,
    ) -> Outcome<usize>;

    /// Whether the default grants of a plugin of the program count.
    fn has_defaults(&self, plugin: &PluginId) -> Outcome<bool>;
    /// Revokes the default grants of a plugin; says whether they counted.
    fn revoke_defaults(&self, plugin: &PluginId, at_ms: i64) -> Outcome<bool>;
    /// Lets the default grants of a plugin count again; says whether they did not.
    fn restore_defaults(&self, plugin: &PluginId) -> Outcome<bool>;

    /// Keeps when capabilities of a plugin were used, unless a later use is kept already.
    fn note_grant_uses(
        &self,
        plugin: &PluginId,
        capabilities: &[String],
        at_ms: i64,
    ) -> Outcome<()>;
    /// All uses that are kept, by plugin and capability.
    fn grant_uses(&self) -> Outcome<GrantUses>;

    /// The vectors of these digests, in their order, as far as they are kept.
    fn vectors(&self, digests: &[Digest], at_ms: i64) -> Outcome<Vec<Option<Vec<f32>>>>;
    /// Keeps vectors, and forgets those that were not used for longest beyond the bound.
    fn keep_vectors(&self, vectors: &[(Digest, Vec<f32>)], at_ms: i64) -> Outcome<()>;

    /// The places of those keys of a space that have no vector; the others count as used.
    fn missing_passages(&self, space: &Digest, keys: &[u128], at_ms: i64) -> Outcome<Vec<u32>>;
    /// Keeps vectors of a space, and forgets those that were not used for longest beyond the bound.
    fn keep_passages(
        &self,
        space: &Digest,
        passages: &[(u128, PassageVector)],
        at_ms: i64,
    ) -> Outcome<()>;
    /// The places of the keys whose vectors are nearest to one, at most so many.
    fn nearest_passages(
        &self,
        space: &Digest,
        keys: &[u128],
        query: (&PassageVector, usize),
    ) -> Outcome<Vec<(u32, f32)>>;

    /// The last index of plugins of this source.
    fn seen_index(&self, source: &str) -> Outcome<Option<SeenIndex>>;
    /// Keeps an index unless a later one, or another one of the same number, is kept; says whether it did.
    fn keep_seen_index(&self, index: &SeenIndex, at_ms: i64) -> Outcome<bool>;

    /// Adds a token; false when there is one of this name.
    fn add_token(&self, token: &TokenRecord) -> Outcome<bool>;
    /// All tokens by name.
    fn tokens(&self) -> Outcome<Vec<TokenRecord>>;
    /// Deletes a token; says whether there was one.
    fn revoke_token(&self, name: &str) -> Outcome<bool>;

    /// Uses up a seal; false when it was used before.
    fn use_seal(&self, ticket: Uuid, at_ms: i64) -> Outcome<bool>;
    /// Whether a seal was used.
    fn is_seal_used(&self, ticket: Uuid) -> Outcome<bool>;
    /// Takes one call of a bucket that holds and gains a number a minute; else how long to wait, in milliseconds.
    fn take_call(&self, bucket: &CallBucket, at_ms: i64) -> Outcome<Option<u64>>;
    /// Keeps which caller an output belongs to.
    fn own_output(&self, id: OverflowId, caller: &Owner) -> Outcome<()>;
    /// The conversation of an output of this caller.
    fn conversation_of_output(
        &self,
        id: OverflowId,
        caller: &Owner,
    ) -> Outcome<Option<ConversationId>>;
    /// When a conversation was used last, in Unix milliseconds.
    fn conversation_used(&self, id: ConversationId) -> Outcome<Option<i64>>;
    /// Notes that what is offered has changed for every host on this database.
    fn note_offer_change(&self) -> Outcome<()>;
    /// A number that changes with each of these notes.
    fn offer_version(&self) -> Outcome<i64>;

    /// All that is kept of trust.
    fn trust(&self) -> Outcome<TrustState>;
    /// Which state of trust there is: every change of records or of the set of windows has a new one.
    fn trust_version(&self) -> Outcome<i64>;
    /// Sets the trust of everybody in a subject, in place of what was kept of it.
    fn set_trust(&self, subject: &TrustSubject, level: TrustLevel, at_ms: i64) -> Outcome<()>;
    /// Forgets a subject, its windows too; says how many records that were.
    fn reset_trust(&self, subject: &TrustSubject) -> Outcome<usize>;
    /// Counts an execution in the windows of its tool and owner, and blocks what has become critical.
    fn note_outcome(&self, note: &OutcomeNote) -> Outcome<Vec<TrustAlert>>;

    /// Counts what rules on trial would have decided.
    fn count_observed(&self, observed: &[ObservedDecision], at_ms: i64) -> Outcome<()>;
    /// The counts since a moment, to the hour, the most frequent first.
    fn observed_counts(&self, since_ms: i64) -> Outcome<Vec<ObservedCount>>;
    /// The sums over the recorded calls of a plugin.
    fn reputation(&self, plugin: &PluginId) -> Outcome<Reputation>;

    /// Adds a request, or renews the one for the same call of the same conversation; gives back the id it waits under.
    fn put_request(&self, request: &ApprovalRequest, caller: &Owner) -> Outcome<ApprovalId>;
    /// The request `id` when it still waits at `now_ms`.
    fn request(&self, id: ApprovalId, now_ms: i64) -> Outcome<Option<ApprovalRequest>>;
    /// The requests that wait at `now_ms`, of one conversation or of all, newest first.
    fn requests(
        &self,
        conversation: Option<ConversationId>,
        now_ms: i64,
    ) -> Outcome<Vec<ApprovalRequest>>;
    /// Deletes a request; says whether there was one.
    fn delete_request(&self, id: ApprovalId) -> Outcome<bool>;
    /// Turns a request that waits at `at_ms` into an approval.
    fn approve(
        &self,
        id: ApprovalId,
        lifetime: Lifetime,
        agreement: &Agreement,
        at_ms: i64,
    ) -> Outcome<Option<StoredApproval>>;
    /// Adds an approval of a call of `conversation`, in place of the request for it and of the approvals it makes pointless.
    fn put_approval(&self, approval: &StoredApproval, conversation: ConversationId) -> Outcome<()>;
    /// The approval for a call at `now_ms`, the one that holds longest first.
    fn approval(
        &self,
        tool: &ToolName,
        digest: Digest,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<Option<StoredApproval>>;
    /// The approvals of single objects for calls of `tool` at `now_ms`.
    fn object_approvals(
        &self,
        tool: &ToolName,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<Vec<StoredApproval>>;
    /// The approvals of rules for calls of `tool`.
    fn rule_approvals(
        &self,
        tool: &ToolName,
        conversation: ConversationId,
    ) -> Outcome<Vec<StoredApproval>>;
    /// The approvals that hold at `now_ms`, newest first.
    fn approvals(&self, now_ms: i64) -> Outcome<Vec<StoredApproval>>;
    /// Deletes an approval; says whether there was one.
    fn delete_approval(&self, id: ApprovalId) -> Outcome<bool>;
    /// Deletes the requests and approvals of a conversation; says how many.
    fn forget_approvals(&self, conversation: ConversationId) -> Outcome<usize>;

    /// Takes `rights` and records the begin of a call, if it is to be recorded. `None`: the call has a row already.
    fn begin_call(
        &self,
        begin: Option<&BeginRecord>,
        rights: &SingleUseRights,
        at_ms: i64,
    ) -> Outcome<Option<CallBegin>>;
    /// Lets held grants count again and records the end of a call, if it is to be recorded. False: there is no row without an end.
    fn finish_call(&self, finish: Option<&Finish>, unused: &[GrantRecord]) -> Outcome<bool>;
    /// The audit rows that pass `filter`, in the order of their begin.
    fn audit(&self, filter: &AuditFilter) -> Outcome<Vec<AuditRecord>>;
    /// The audit row of one call.
    fn audit_record(&self, call: CallId) -> Outcome<Option<AuditRecord>>;

    /// A number that changes when sequences do.
    fn sequences_version(&self) -> Outcome<i64>;
    /// All sequences, by number.
    fn sequences(&self) -> Outcome<Vec<StoredSequence>>;
    /// Counts how a sequence ended; its number when it is learned by that.
    fn observe_sequence(&self, observed: &SequenceObservation) -> Outcome<Option<i64>>;
    /// Learns a sequence whatever became of it before; its number.
    fn revoke_sequence(&self, words: &[String], call: CallId, at_ms: i64) -> Outcome<i64>;
    /// Lets a learned sequence happen again; says whether there was one.
    fn forgive_sequence(&self, id: i64, at_ms: i64) -> Outcome<bool>;
    /// What a conversation remembers: at most `n_calls` calls.
    fn conversation_past(
        &self,
        conversation: ConversationId,
        n_calls: u32,
    ) -> Outcome<ConversationPast>;
    /// Remembers the words of a call of a conversation, which is begun when there is none, and forgets those before the last `n_calls`.
    fn remember_call(
        &self,
        conversation: ConversationId,
        call: (CallId, &str),
        n_calls: u32,
        at_ms: i64,
    ) -> Outcome<()>;
    /// Keeps labels of what a conversation read or of one of its outputs, each once.
    fn keep_labels(
        &self,
        conversation: ConversationId,
        output: Option<OverflowId>,
        labels: &[Label],
        at_ms: i64,
    ) -> Outcome<()>;
    /// Keeps what a person let go to a destination, in place of what was let go there before.
    fn keep_release(
        &self,
        conversation: ConversationId,
        release: (&str, &[Label]),
        at_ms: i64,
    ) -> Outcome<()>;

    /// The name of the key that vouches for the newest records; `None` when the chain has not begun.
    fn chain_key(&self) -> Outcome<Option<String>>;
    /// Chains the calls of this connection from now on; the chain begins when there is none. Gives back the newest mark.
    fn begin_chain(&self, keys: &AuditKeys, begin: &ChainBegin) -> Outcome<ChainMark>;
    /// Lets the newest of `keys` vouch for what comes. Gives back the newest mark.
    fn rekey_chain(&self, keys: &AuditKeys, begin: &ChainBegin) -> Outcome<ChainMark>;
    /// The newest event of the chain.
    fn chain_head(&self) -> Outcome<Option<ChainHead>>;
    /// The newest event, when a checkpoint of it is due; it counts as handed out then.
    fn take_checkpoint(&self, due: &CheckpointDue) -> Outcome<Option<ChainHead>>;
    /// Makes a checkpoint of event `n` due again, unless another was taken since.
    fn give_back_checkpoint(&self, n: i64) -> Outcome<()>;

    /// Tells the other hosts that something changed, once this is committed.
    fn announce(&self, process: Uuid, topic: &str) -> Outcome<()>;
    /// Says that a process of this host runs, where others cannot look for it.
    fn keep_process(&self, process: &HostProcess) -> Outcome<()>;
    /// Says what replica a process that runs is; whether one of another host is of the same name.
    fn keep_replica(&self, process: &HostProcess, replica: &str) -> Outcome<bool>;
    /// The processes that said so lately; `None` where all of them can look for each other.
    fn running_processes(&self) -> Outcome<Option<Vec<HostProcess>>>;

    /// What the time is, for what is to be swept.
    fn sweep_time(&self, clock: SweepClock) -> Outcome<SweepTime>;
    /// Deletes up to `n_max` things of each kind that are past their time; says what went.
    fn sweep(&self, past: &Past, n_max: u32) -> Outcome<SweepReport>;
}

/// An output to store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewOutput<'a> {
    pub(crate) id: OverflowId,
    pub(crate) conversation: ConversationId,
    pub(crate) content: &'a [u8],
    pub(crate) rules: Option<&'a str>,
    pub(crate) at_ms: i64,
}

/// Grants to add.
#[derive(Debug, Clone)]
pub(crate) struct NewGrants {
    pub(crate) plugin: PluginId,
    pub(crate) pin: Pin,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) lifetime: GrantLifetime,
    pub(crate) mode: Option<Mode>,
}
