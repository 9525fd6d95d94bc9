//! What outlives a call: conversations, the full text of shortened outputs, the grants of plugins, what a person agreed to, and
//! the record of every call.
//!
//! This is the only crate that knows SQL, and no SQL leaves it: callers see operations on [`Store`] and lines of an
//! [`AuditFile`]. In reading order: where the data is (`place`, `open`, `schema`, `set_aside`), who writes it
//! (`writer`, `checkpoint`, `store`), and what is written (`conversation`, `overflow`, `savings`, `grants`, `defaults`, `approvals`,
//! `audit`, `call`). The clock is always an argument.
//! Texts of this crate may name paths of the host: they are for operators, never for a model.

mod approvals;
mod audit;
mod call;
mod checkpoint;
mod conversation;
mod defaults;
mod error;
mod grants;
mod open;
mod overflow;
mod place;
mod savings;
mod schema;
mod set_aside;
mod store;
mod writer;

pub use approvals::call::BoundCall;
pub use approvals::{Approval, ApprovalLifetime, ApprovalRequest, Asking, ShownCall};
pub use audit::file::AuditFile;
pub use audit::record::{
    AuditResult, Begin, ClaimSource, Ending, Event, Failed, Finish, HostProcess, Record,
};
pub use audit::table::AuditFilter;
pub use call::{CallBegin, SingleUseRights};
pub use conversation::Conversation;
pub use defaults::OwnGrants;
pub use error::{Source, StoreError};
pub use grants::{GrantRecord, Revoke, UnreadableGrant};
pub use open::{Location, Opened, StoreOptions};
pub use overflow::Swept;
pub use savings::{FilteredOutput, Fit, Savings};
pub use store::Store;
