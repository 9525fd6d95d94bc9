//! How PostgreSQL does what `operations` says.
//!
//! Other hosts change the same rows at the same time, so what reads and then changes something is one statement, or stands behind a lock of
//! the transaction. In reading order: where the server is (`url`, `tls`), one connection of one thread (`connection`, `transaction`, `value`,
//! `fault`), who uses them (`writer`, `kept`, `readers`, `listener`), the tables (`schema`), and the operations by area.

use std::time::Duration;

use uuid::Uuid;
use zeph_core::id::{
    ApprovalId, CallId, ConversationId, Digest, OverflowId, Pin, PluginId, ToolName,
};
use zeph_core::lifetime::Lifetime;
use zeph_core::policy::{Label, TrustLevel, TrustSubject};

use crate::approvals::{Agreement, ApprovalRequest, StoredApproval};
use crate::audit::chain::{ChainHead, ChainMark};
use crate::audit::checkpoint::CheckpointDue;
use crate::audit::earlier::ChainBegin;
use crate::audit::filter::AuditFilter;
use crate::audit::record::{AuditRecord, BeginRecord, Finish, HostProcess};
use crate::audit::seal::SealedAudit;
use crate::call::{CallBegin, SingleUseRights};
use crate::caller::Owner;
use crate::conversation::Conversation;
use crate::defaults::OwnGrants;
use crate::goals::{Goal, GoalState, TaskGraph};
use crate::grant_uses::GrantUses;
use crate::grants::{GrantRecord, ListedGrants, OldGrants, Revoke};
use crate::indexes::SeenIndex;
use crate::long_tasks::{
    LongTask, LongTaskAsker, LongTaskBounds, LongTaskClaim, LongTaskEnd, LongTaskHold,
    LongTaskNews, LongTaskOwner, NewLongTask,
};
use crate::observed::{ObservedCount, ObservedDecision};
use crate::operations::{NewGrants, NewOutput, Operations, Outcome};
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

use self::transaction::Transaction;

mod approvals;
mod audit;
mod call;
pub(crate) mod chain;
mod clock;
pub(crate) mod connection;
mod conversation;
mod defaults;
mod digest;
mod fault;
mod goals;
mod grant_uses;
mod grants;
mod indexes;
mod listener;
mod long_tasks;
mod observed;
mod order;
mod overflow;
mod passages;
mod pipeline;
mod processes;
mod quota;
mod readers;
mod reputation;
mod savings;
mod schedules;
pub(crate) mod schema;
mod sequences;
mod session;
mod sharing;
mod tls;
mod tokens;
mod transaction;
mod trust;
pub(crate) mod url;
pub(crate) mod value;
mod vectors;
pub(crate) mod writer;

impl Operations for Transaction {
    fn begin_conversation(&self, id: ConversationId, at_ms: i64) -> Outcome<()> {
        conversation::touch(self, id, at_ms, 0)
    }

    fn conversations(&self, limit: u32) -> Outcome<Vec<Conversation>> {
        conversation::listed(self, limit)
    }

    fn delete_conversation(&self, id: ConversationId) -> Outcome<bool> {
        conversation::delete(self, &id.to_string())
    }

    fn begin_session(&self, session: &NewSession, at_ms: i64) -> Outcome<()> {
        session::begin(self, session, at_ms)
    }

    fn append_items(
        &self,
        conversation: ConversationId,
        items: &[NewSessionItem],
        after: i64,
        at_ms: i64,
    ) -> Outcome<AppendEnd> {
        session::append(self, conversation, items, after, at_ms)
    }

    fn session_items(&self, conversation: ConversationId) -> Outcome<SessionItems> {
        session::items(self, conversation)
    }

    fn session_items_after(
        &self,
        conversation: ConversationId,
        after: i64,
    ) -> Outcome<SessionItems> {
        session::items_after(self, conversation, after)
    }

    fn last_item(&self, conversation: ConversationId) -> Outcome<i64> {
        session::last(self, &conversation.to_string())
    }

    fn session(&self, conversation: ConversationId) -> Outcome<Option<SessionRecord>> {
        session::of_conversation(self, conversation)
    }

    fn sessions(&self, directory: Option<&str>, limit: u32) -> Outcome<Vec<SessionRecord>> {
        session::listed(self, directory, limit)
    }

    fn begin_goal(&self, goal: &Goal) -> Outcome<()> {
        goals::begin(self, goal)
    }

    fn active_goal(&self, conversation: ConversationId) -> Outcome<Option<Goal>> {
        goals::active(self, conversation)
    }

    fn goal(&self, conversation: ConversationId, id: Uuid) -> Outcome<Option<Goal>> {
        goals::one(self, conversation, id)
    }

    fn goals(&self, conversation: ConversationId, limit: u32) -> Outcome<Vec<Goal>> {
        goals::listed(self, conversation, limit)
    }

    fn end_goal(
        &self,
        conversation: ConversationId,
        id: Uuid,
        state: GoalState,
        at_ms: i64,
    ) -> Outcome<bool> {
        goals::end(self, conversation, id, state, at_ms)
    }

    fn set_tasks(
        &self,
        conversation: ConversationId,
        id: Uuid,
        tasks: &TaskGraph,
        at_ms: i64,
    ) -> Outcome<bool> {
        goals::set_tasks(self, conversation, id, tasks, at_ms)
    }

    fn put_schedule(
        &self,
        schedule: &NewSchedule,
        bounds: ScheduleBounds,
        at_ms: i64,
    ) -> Outcome<PutSchedule> {
        schedules::put(self, schedule, bounds, at_ms)
    }

    fn cancel_schedule(&self, owner: &ScheduleOwner, name: &str) -> Outcome<bool> {
        schedules::cancel(self, owner, name)
    }

    fn move_schedules(&self, from: &str, to: &str) -> Outcome<u64> {
        schedules::moved(self, from, to)
    }

    fn schedules(&self, owner: Option<&ScheduleOwner>, limit: u32) -> Outcome<Vec<Schedule>> {
        schedules::listed(self, owner, limit)
    }

    fn schedule_runs(&self, schedule: Uuid) -> Outcome<Vec<ScheduleRun>> {
        schedules::runs(self, schedule)
    }

    fn next_schedule(&self, place: (&str, bool), waiting_ms: Option<i64>) -> Outcome<Option<i64>> {
        schedules::next(self, place, waiting_ms)
    }

    fn claim_schedules(&self, claim: &ScheduleClaim) -> Outcome<Vec<Schedule>> {
        schedules::claim(self, claim)
    }

    fn held_schedules(&self, directory: &str) -> Outcome<Vec<Schedule>> {
        schedules::held(self, directory)
    }

    fn begin_run(&self, begin: &RunBegin) -> Outcome<bool> {
        schedules::begin_run(self, begin)
    }

    fn keep_runs(&self, runs: &[RunFence], lease: Duration) -> Outcome<Vec<Uuid>> {
        schedules::keep_runs(self, runs, lease)
    }

    fn finish_run(&self, finish: &RunFinish) -> Outcome<bool> {
        schedules::finish_run(self, finish)
    }

    fn put_long_task(
        &self,
        task: &NewLongTask,
        bounds: LongTaskBounds,
        lease: Duration,
    ) -> Outcome<Option<LongTask>> {
        long_tasks::put(self, task, bounds, lease)
    }

    fn n_long_tasks(&self, owner: &LongTaskOwner) -> Outcome<(u32, u32)> {
        long_tasks::count(self, owner)
    }

    fn long_task(&self, id: Uuid, asker: &LongTaskAsker) -> Outcome<Option<LongTask>> {
        long_tasks::one(self, id, asker)
    }

    fn cancel_long_task(&self, id: Uuid, asker: &LongTaskAsker) -> Outcome<bool> {
        long_tasks::cancel(self, id, asker)
    }

    fn answer_long_task(
        &self,
        id: Uuid,
        asker: &LongTaskAsker,
        answers: &[(String, String)],
    ) -> Outcome<bool> {
        long_tasks::answer(self, id, asker, answers)
    }

    fn keep_long_tasks(
        &self,
        holds: &[LongTaskHold],
        lease: Duration,
    ) -> Outcome<Vec<LongTaskNews>> {
        long_tasks::keep(self, holds, lease)
    }

    fn ask_long_task(&self, hold: LongTaskHold, key: &str, question: &str) -> Outcome<bool> {
        long_tasks::ask(self, hold, key, question)
    }

    fn withdraw_long_task(&self, hold: LongTaskHold, key: &str) -> Outcome<bool> {
        long_tasks::withdraw(self, hold, key)
    }

    fn end_long_task(&self, hold: LongTaskHold, end: &LongTaskEnd) -> Outcome<bool> {
        long_tasks::end(self, hold, end)
    }

    fn release_long_task(&self, hold: LongTaskHold) -> Outcome<bool> {
        long_tasks::release(self, hold)
    }

    fn claim_long_tasks(&self, claim: &LongTaskClaim) -> Outcome<Vec<LongTask>> {
        long_tasks::claim(self, claim)
    }

    fn n_counted(&self, conversation: ConversationId) -> Outcome<u32> {
        quota::counted(self, conversation)
    }

    fn forget_counted(&self, conversation: ConversationId) -> Outcome<()> {
        quota::forget(self, conversation)
    }

    fn put_output(&self, output: &NewOutput<'_>) -> Outcome<()> {
        overflow::put(self, output)
    }

    fn output(&self, conversation: ConversationId, id: OverflowId) -> Outcome<Option<Vec<u8>>> {
        overflow::read(self, conversation, id)
    }

    fn outputs(&self, conversation: ConversationId, limit: u32) -> Outcome<Vec<StoredOutput>> {
        overflow::listed(self, conversation, limit)
    }

    fn count_filtered(
        &self,
        conversation: ConversationId,
        output: &FilteredOutput,
        at_ms: i64,
    ) -> Outcome<()> {
        savings::count_filtered(self, conversation, output, at_ms)
    }

    fn count_read_back(&self, conversation: ConversationId, id: OverflowId) -> Outcome<()> {
        savings::count_read_back(self, conversation, id)
    }

    fn savings(&self, conversation: Option<ConversationId>) -> Outcome<Vec<Savings>> {
        savings::sums(self, conversation)
    }

    fn cache_savings(&self, conversation: Option<ConversationId>) -> Outcome<CacheSavings> {
        savings::of_cache(self, conversation)
    }

    fn asked_calls(&self, conversation: Option<ConversationId>) -> Outcome<AskedCalls> {
        savings::asked(self, conversation)
    }

    fn add_grants(&self, grants: &NewGrants, at_ms: i64) -> Outcome<Vec<GrantRecord>> {
        grants::add_all(self, grants, at_ms)
    }

    fn grants(&self, plugin: Option<&PluginId>) -> Outcome<ListedGrants> {
        grants::listed(self, plugin)
    }

    fn grants_of_call(
        &self,
        plugin: &PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<Vec<GrantRecord>> {
        grants::in_force(self, plugin, pin, conversation, now_ms)
    }

    fn revoke_grants(&self, plugin: &PluginId, which: &Revoke) -> Outcome<usize> {
        grants::revoke(self, plugin, which)
    }

    fn rebind_grants(
        &self,
        plugin: &PluginId,
        from: Option<Pin>,
        to: Pin,
        old: OldGrants,
    ) -> Outcome<usize> {
        grants::rebind(self, plugin, (from, to), old)
    }

    fn own_grants_of_call(
        &self,
        plugin: &PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<OwnGrants> {
        grants::own(self, plugin, pin, (conversation, now_ms))
    }

    fn has_defaults(&self, plugin: &PluginId) -> Outcome<bool> {
        defaults::counts(self, plugin)
    }

    fn revoke_defaults(&self, plugin: &PluginId, at_ms: i64) -> Outcome<bool> {
        defaults::revoke(self, plugin, at_ms)
    }

    fn restore_defaults(&self, plugin: &PluginId) -> Outcome<bool> {
        defaults::restore(self, plugin)
    }

    fn missing_passages(&self, space: &Digest, keys: &[u128], at_ms: i64) -> Outcome<Vec<u32>> {
        passages::missing(self, space, keys, at_ms)
    }

    fn keep_passages(
        &self,
        space: &Digest,
        passages: &[(u128, PassageVector)],
        at_ms: i64,
    ) -> Outcome<()> {
        passages::keep(self, space, passages, at_ms)
    }

    fn nearest_passages(
        &self,
        space: &Digest,
        keys: &[u128],
        query: (&PassageVector, usize),
    ) -> Outcome<Vec<(u32, f32)>> {
        passages::nearest(self, space, keys, query)
    }

    fn seen_index(&self, source: &str) -> Outcome<Option<SeenIndex>> {
        indexes::seen(self, source)
    }

    fn keep_seen_index(&self, index: &SeenIndex, at_ms: i64) -> Outcome<bool> {
        indexes::keep(self, index, at_ms)
    }

    fn vectors(&self, digests: &[Digest], at_ms: i64) -> Outcome<Vec<Option<Vec<f32>>>> {
        vectors::all(self, digests, at_ms)
    }

    fn keep_vectors(&self, vectors: &[(Digest, Vec<f32>)], at_ms: i64) -> Outcome<()> {
        vectors::keep(self, vectors, at_ms)
    }

    fn add_token(&self, token: &TokenRecord) -> Outcome<bool> {
        tokens::add(self, token)
    }

    fn tokens(&self) -> Outcome<Vec<TokenRecord>> {
        tokens::all(self)
    }

    fn revoke_token(&self, name: &str) -> Outcome<bool> {
        tokens::revoke(self, name)
    }

    fn use_seal(&self, ticket: Uuid, at_ms: i64) -> Outcome<bool> {
        sharing::use_seal(self, ticket, at_ms)
    }

    fn is_seal_used(&self, ticket: Uuid) -> Outcome<bool> {
        sharing::is_seal_used(self, ticket)
    }

    fn take_call(&self, bucket: &CallBucket, at_ms: i64) -> Outcome<Option<u64>> {
        sharing::take_call(self, bucket, at_ms)
    }

    fn own_output(&self, id: OverflowId, caller: &Owner) -> Outcome<()> {
        sharing::own_output(self, id, caller)
    }

    fn conversation_of_output(
        &self,
        id: OverflowId,
        caller: &Owner,
    ) -> Outcome<Option<ConversationId>> {
        sharing::conversation_of_output(self, id, caller)
    }

    fn conversation_used(&self, id: ConversationId) -> Outcome<Option<i64>> {
        sharing::conversation_used(self, id)
    }

    fn note_offer_change(&self) -> Outcome<()> {
        sharing::note_offer_change(self)
    }

    fn offer_version(&self) -> Outcome<i64> {
        sharing::offer_version(self)
    }

    fn trust(&self) -> Outcome<TrustState> {
        trust::all(self)
    }

    fn trust_version(&self) -> Outcome<i64> {
        trust::version(self)
    }

    fn set_trust(&self, subject: &TrustSubject, level: TrustLevel, at_ms: i64) -> Outcome<()> {
        trust::set(self, subject, level, at_ms)
    }

    fn reset_trust(&self, subject: &TrustSubject) -> Outcome<usize> {
        trust::reset(self, subject)
    }

    fn note_outcome(&self, note: &OutcomeNote) -> Outcome<Vec<TrustAlert>> {
        trust::note(self, note)
    }

    fn count_observed(&self, observed: &[ObservedDecision], at_ms: i64) -> Outcome<()> {
        observed::count(self, observed, at_ms)
    }

    fn observed_counts(&self, since_ms: i64) -> Outcome<Vec<ObservedCount>> {
        observed::counts(self, since_ms)
    }

    fn reputation(&self, plugin: &PluginId) -> Outcome<Reputation> {
        reputation::of_plugin(self, plugin)
    }

    fn put_request(&self, request: &ApprovalRequest, caller: &Owner) -> Outcome<ApprovalId> {
        approvals::put_request(self, request, caller)
    }

    fn request(&self, id: ApprovalId, now_ms: i64) -> Outcome<Option<ApprovalRequest>> {
        approvals::waiting(self, id, now_ms)
    }

    fn requests(
        &self,
        conversation: Option<ConversationId>,
        now_ms: i64,
    ) -> Outcome<Vec<ApprovalRequest>> {
        approvals::requests(self, conversation, now_ms)
    }

    fn delete_request(&self, id: ApprovalId) -> Outcome<bool> {
        approvals::delete_request(self, id)
    }

    fn approve(
        &self,
        id: ApprovalId,
        lifetime: Lifetime,
        agreement: &Agreement,
        at_ms: i64,
    ) -> Outcome<Option<StoredApproval>> {
        approvals::approve(self, id, lifetime, agreement, at_ms)
    }

    fn put_approval(&self, approval: &StoredApproval, conversation: ConversationId) -> Outcome<()> {
        approvals::put(self, approval, conversation)
    }

    fn approval(
        &self,
        tool: &ToolName,
        digest: Digest,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<Option<StoredApproval>> {
        approvals::in_force(self, tool, digest, conversation, now_ms)
    }

    fn object_approvals(
        &self,
        tool: &ToolName,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Outcome<Vec<StoredApproval>> {
        approvals::of_objects(self, tool, conversation, now_ms)
    }

    fn rule_approvals(
        &self,
        tool: &ToolName,
        conversation: ConversationId,
    ) -> Outcome<Vec<StoredApproval>> {
        approvals::of_rules(self, tool, conversation)
    }

    fn approvals(&self, now_ms: i64) -> Outcome<Vec<StoredApproval>> {
        approvals::listed(self, now_ms)
    }

    fn delete_approval(&self, id: ApprovalId) -> Outcome<bool> {
        approvals::delete(self, id)
    }

    fn forget_approvals(&self, conversation: ConversationId) -> Outcome<usize> {
        approvals::forget(self, conversation)
    }

    fn note_grant_uses(
        &self,
        plugin: &PluginId,
        capabilities: &[String],
        at_ms: i64,
    ) -> Outcome<()> {
        grant_uses::note(self, plugin, capabilities, at_ms)
    }

    fn grant_uses(&self) -> Outcome<GrantUses> {
        grant_uses::listed(self)
    }

    fn begin_call(
        &self,
        begin: Option<&BeginRecord>,
        rights: &SingleUseRights,
        at_ms: i64,
    ) -> Outcome<Option<CallBegin>> {
        call::begin(self, begin, rights, at_ms)
    }

    fn finish_call(&self, finish: Option<&Finish>, unused: &[GrantRecord]) -> Outcome<bool> {
        call::finish(self, finish, unused)
    }

    fn audit(&self, filter: &AuditFilter) -> Outcome<Vec<AuditRecord>> {
        audit::select(self, filter)
    }

    fn audit_record(&self, call: CallId) -> Outcome<Option<AuditRecord>> {
        audit::of_call(self, call)
    }

    fn sequences_version(&self) -> Outcome<i64> {
        sequences::version(self)
    }

    fn sequences(&self) -> Outcome<Vec<StoredSequence>> {
        sequences::all(self)
    }

    fn observe_sequence(&self, observed: &SequenceObservation) -> Outcome<Option<i64>> {
        sequences::observe(self, observed)
    }

    fn revoke_sequence(&self, words: &[String], call: CallId, at_ms: i64) -> Outcome<i64> {
        sequences::revoke(self, words, call, at_ms)
    }

    fn forgive_sequence(&self, id: i64, at_ms: i64) -> Outcome<bool> {
        sequences::forgive(self, id, at_ms)
    }

    fn conversation_past(
        &self,
        conversation: ConversationId,
        n_calls: u32,
    ) -> Outcome<ConversationPast> {
        sequences::past(self, conversation, n_calls)
    }

    fn remember_call(
        &self,
        conversation: ConversationId,
        call: (CallId, &str),
        n_calls: u32,
        at_ms: i64,
    ) -> Outcome<()> {
        sequences::remember(self, conversation, call, n_calls, at_ms)
    }

    fn keep_labels(
        &self,
        conversation: ConversationId,
        output: Option<OverflowId>,
        labels: &[Label],
        at_ms: i64,
    ) -> Outcome<()> {
        sequences::keep_labels(self, conversation, output, labels, at_ms)
    }

    fn keep_release(
        &self,
        conversation: ConversationId,
        release: (&str, &[Label]),
        at_ms: i64,
    ) -> Outcome<()> {
        sequences::keep_release(self, conversation, release, at_ms)
    }

    fn chain_key(&self) -> Outcome<Option<String>> {
        chain::key(self)
    }

    fn begin_chain(&self, keys: &AuditKeys, begin: &ChainBegin) -> Outcome<ChainMark> {
        SealedAudit::begin_chain(self, keys, begin)
    }

    fn rekey_chain(&self, keys: &AuditKeys, begin: &ChainBegin) -> Outcome<ChainMark> {
        SealedAudit::rekey_chain(self, keys, begin)
    }

    fn chain_head(&self) -> Outcome<Option<ChainHead>> {
        chain::head(self)
    }

    fn take_checkpoint(&self, due: &CheckpointDue) -> Outcome<Option<ChainHead>> {
        chain::checkpoint::take(self, due)
    }

    fn give_back_checkpoint(&self, n: i64) -> Outcome<()> {
        chain::checkpoint::give_back(self, n)
    }

    fn keep_process(&self, process: &HostProcess) -> Outcome<()> {
        processes::keep(self, process)
    }

    fn keep_replica(&self, process: &HostProcess, replica: &str) -> Outcome<bool> {
        processes::keep_replica(self, process, replica)
    }

    fn running_processes(&self) -> Outcome<Option<Vec<HostProcess>>> {
        processes::running(self).map(Some)
    }

    fn announce(&self, process: Uuid, topic: &str) -> Outcome<()> {
        const SQL: &str =
            "SELECT pg_notify('zeph_host', current_schema() || ':' || $1::text || ':' || $2::text)";
        self.query(SQL, &[&process.to_string(), &topic]).map(drop)
    }

    fn sweep_time(&self, clock: SweepClock) -> Outcome<SweepTime> {
        clock::sweep_time(self, clock)
    }

    fn sweep(&self, past: &Past, n_max: u32) -> Outcome<SweepReport> {
        let audit = audit::sweep(self, past, n_max)?;
        let mut swept = SweepReport {
            n_audit: audit.n_removed,
            n_carried: audit.n_carried,
            ..SweepReport::default()
        };
        if !clock::is_any_past(self, past)? {
            return Ok(swept);
        }
        swept.n_grants = grants::sweep(self, past.at_ms, n_max)?;
        swept.n_approvals = approvals::sweep(self, past.at_ms, n_max)?;
        if let Some(before_ms) = past.audit_ms {
            observed::sweep(self, before_ms, n_max)?;
        }
        if let Some(before_ms) = past.outputs_ms {
            (swept.n_parts, swept.n_overflow) = overflow::sweep(self, before_ms, n_max)?;
        }
        swept.n_conversations = conversation::sweep(self, past, n_max)?;
        Ok(swept)
    }
}
