//! The store through its public border: every operation, two hosts on one file, and every bad file and place.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approvals;
mod audit;
mod audit_file;
mod bad_file;
mod bad_place;
mod call;
mod conversation;
mod grants;
mod savings;
mod setup;
mod sweep;
mod tokens;
mod two_hosts;
