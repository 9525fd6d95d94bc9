//! What outlives a call: conversations and their goals, work for later, the full text of shortened outputs, the grants of plugins, what a person agreed to, the
//! tokens of the MCP endpoint, and the record of every call.
//!
//! This is the only crate that knows SQL, and no SQL leaves it: callers see operations on [`Store`] and lines of an
//! [`AuditFile`]. In reading order: what is kept (`conversation`, `session`, `goals`, `schedules`, `long_tasks`, `overflow`, `savings`, `grants`, `grant_uses`, `defaults`, `approvals`,
//! `audit`, `call`, `quota`, `hold`, `processes`, `tokens`, `sharing`, `sequences`, `trust`, `observed`, `reputation`, `vectors`, `passages`, `indexes`, `sweep`, and `secrets` and `logins` in files beside it), what a database has to be able to do for that
//! (`operations`), who queues it (`store`), and how SQLite does it
//! (`sqlite`). The clock is always an argument.
//! Texts of this crate may name paths of the host: they are for operators, never for a model.

mod approvals;
mod audit;
mod batch;
mod call;
mod caller;
mod changes;
mod conversation;
mod copy;
mod defaults;
mod error;
mod goals;
mod grant_uses;
mod grants;
mod hold;
mod indexes;
mod kept;
mod lines;
mod logins;
mod long_tasks;
mod observed;
mod open;
mod operations;
mod overflow;
mod passages;
mod place;
mod postgres;
mod processes;
mod quota;
mod reputation;
mod savings;
mod schedules;
mod secrets;
mod sequences;
mod session;
mod sharing;
mod sqlite;
mod store;
mod sweep;
mod sweeper;
mod tokens;
mod trust;
mod vectors;

pub use approvals::call::{BoundCall, canonical, rule_scope};
pub use approvals::{
    AgreedBy, AgreedRules, Agreement, ApprovalAsker, ApprovalReason, ApprovalRequest,
    RefusedObjects, ShownCall, StoredApproval,
};
pub use audit::chain::{ChainHead, ChainReport, ForgottenChain};
pub use audit::checkpoint::{
    CheckpointDue, CheckpointEvery, CheckpointReport, Checkpoints, FileHead,
};
pub use audit::earlier::{
    BegunChain, ChainRemoval, EarlierChain, HOST_CHARS_MAX, RemovalStatement,
};
pub use audit::file::AuditFile;
pub use audit::file::verify::{FileReport, TakenOver, verify_file};
pub use audit::filter::AuditFilter;
pub use audit::problem::{AuditPlace, AuditProblem, AuditProblemKind};
pub use audit::record::{
    AuditEvent, AuditRecord, AuditResult, BeginFacts, BeginRecord, ClaimSource, Ending, Failed,
    Finish, HostProcess, TokenUse,
};
pub use call::{CallBegin, SingleUseRights};
pub use caller::Owner;
pub use changes::{Change, Changes};
pub use conversation::Conversation;
pub use copy::{CopyKeys, CopyOptions, CopyReport, RecordsHost};
pub use defaults::OwnGrants;
pub use error::{ErrorSource, StoreError};
pub use goals::{
    GOAL_TASKS_MAX, Goal, GoalSource, GoalState, GoalTask, NewGoal, TASK_TITLE_CHARS_MAX,
    TaskGraph, TaskState,
};
pub use grant_uses::{GrantUse, GrantUses};
pub use grants::{GrantRecord, OldGrants, Revoke, UnreadableGrant};
pub use hold::WorkHold;
pub use indexes::SeenIndex;
pub use logins::{LoginFolder, LoginHold, StoredLogin};
pub use long_tasks::{
    LongTask, LongTaskAsker, LongTaskBounds, LongTaskClaim, LongTaskEnd, LongTaskHold,
    LongTaskNews, LongTaskOwner, LongTaskState, NewLongTask,
};
pub use observed::{ObservedCount, ObservedDecision};
pub use open::{Location, OpenedStore, StoreOpening, StoreOptions, WhenDamaged};
pub use overflow::StoredOutput;
pub use passages::{PASSAGE_NUMBERS_MAX, PASSAGES_MAX, PassageVector};
pub use place::host_id;
pub use postgres::url::ServerUrl;
pub use processes::PROCESS_LEASE;
pub use quota::QuotaUse;
pub use reputation::Reputation;
pub use savings::{AskedCalls, CacheSavings, FilteredOutput, RuleCoverage, Savings};
pub use schedules::{
    NewSchedule, PutSchedule, RunBegin, RunFence, RunFinish, RunHold, RunState, SCHEDULE_RUNS_KEPT,
    Schedule, ScheduleBounds, ScheduleClaim, ScheduleOwner, ScheduleRun,
};
pub use secrets::audit_keys::{AuditKeyFolder, AuditKeySource, AuditKeys};
pub use secrets::seal_keys::{SEAL_KEY_BYTES, SealKeyError, SealKeyFile, SealKeyStamp};
pub use secrets::{
    Keyring, KeyringError, ReachableSecrets, SecretFolder, SecretPlace, SecretRecord, SecretSet,
    SecretsError, SecretsStamp, StoredSecret,
};
pub use sequences::{
    ConversationPast, LEARNED_MAX, SequenceObservation, SequenceState, StoredSequence,
};
pub use session::{AppendEnd, NewSession, NewSessionItem, SessionItems, SessionRecord};
pub use sharing::CallBucket;
pub use store::Store;
pub use sweep::{Retention, SweepReport};
pub use tokens::TokenRecord;
pub use trust::{OutcomeNote, TrustAlert, TrustRecord, TrustState};
pub use vectors::{VECTOR_BYTES_MAX, VECTORS_MAX};
