//! Candidates out of the store: sessions, conversations, pending calls, scheduled tasks and tokens.
//!
//! A store that is not there is not made for a completion, and one on a server is not asked.

use clap_complete::engine::CompletionCandidate;
use zeph_config::{Config, StoreLocation};
use zeph_store::Store;

use super::super::context;
use super::{candidates, config};
use crate::agent::begin;
use crate::clock::now_ms;
use crate::scheduler;

/// Newest entries that are offered.
const LIMIT: u32 = 100;

pub(super) fn sessions() -> Vec<CompletionCandidate> {
    of_store(async |store, config| {
        let directory = begin::directory(&config);
        let sessions = store.list_sessions(Some(directory), LIMIT).await.ok()?;
        let named = sessions.into_iter();
        Some(candidates(
            named.map(|one| (one.conversation.to_string(), one.title)),
        ))
    })
}

pub(super) fn conversations() -> Vec<CompletionCandidate> {
    of_store(async |store, _| {
        let conversations = store.list_conversations(LIMIT).await.ok()?;
        let calls = |n: u64| format!("{n} {}", if n == 1 { "call" } else { "calls" });
        let named = conversations.into_iter();
        Some(candidates(
            named.map(|one| (one.id.to_string(), calls(one.n_calls))),
        ))
    })
}

pub(super) fn pending() -> Vec<CompletionCandidate> {
    of_store(async |store, _| {
        let requests = store.list_requests(None, now_ms()).await.ok()?;
        let named = requests.into_iter();
        Some(candidates(
            named.map(|one| (one.id.to_string(), one.call.tool.to_string())),
        ))
    })
}

pub(super) fn tasks() -> Vec<CompletionCandidate> {
    of_store(async |store, config| {
        let here = scheduler::directory(&config);
        let mut tasks = store.schedules(None, LIMIT).await.ok()?;
        tasks.retain(|task| task.what.owner.directory == here);
        let named = tasks.into_iter();
        Some(candidates(
            named.map(|task| (task.what.name, String::new())),
        ))
    })
}

pub(super) fn tokens() -> Vec<CompletionCandidate> {
    of_store(async |store, _| {
        let tokens = store.list_tokens().await.ok()?;
        let named = tokens.into_iter();
        Some(candidates(named.map(|token| (token.name, String::new()))))
    })
}

/// What is found in the store of this machine, if there is one.
fn of_store(
    find: impl AsyncFnOnce(Store, Config) -> Option<Vec<CompletionCandidate>>,
) -> Vec<CompletionCandidate> {
    let found = || {
        let (context, config) = config()?;
        match &config.store {
            StoreLocation::File(path) if path.exists() => {}
            _ => return None,
        }
        let store = context.store(&config).ok()?;
        context::block_on(async { Ok(find(store, config).await) }).ok()?
    };
    found().unwrap_or_default()
}
