//! Every operation of the store, on every database: what a second database has to pass.

pub(crate) mod approvals;
mod audit;
pub(crate) mod call;
pub(crate) mod chain;
mod changes;
mod conversation;
mod goals;
mod grant_uses;
pub(crate) mod grants;
mod indexes;
mod long_tasks;
pub(crate) mod long_texts;
mod passages;
mod quota;
mod savings;
mod schedules;
mod sequences;
mod session;
mod sharing;
mod sweep;
mod tokens;
mod trust;
mod vectors;
