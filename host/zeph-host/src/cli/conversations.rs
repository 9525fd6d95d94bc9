//! `zeph-host conversations`: who owns stored outputs.

use serde_json::{Value, json};
use zeph_store::Conversation;

use super::args::{Conversations, ConversationsCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::{out, time};
use crate::run::table;

/// Most conversations that are listed.
const LIMIT: u32 = 10_000;

/// Runs the command.
pub(super) fn run(context: &Context, options: Conversations) -> Result<Exit, CliError> {
    let config = context.config()?;
    let store = match options.command {
        Some(ConversationsCommand::List { .. }) | None => context.store_to_look(&config)?,
        Some(ConversationsCommand::Delete { .. }) => context.store(&config)?,
    };
    context::block_on(async {
        let json = match options.command {
            Some(ConversationsCommand::Delete { id }) => {
                if !store.delete_conversation(id).await? {
                    return Err(CliError::user(format!("there is no conversation `{id}`"))
                        .hint("`zeph-host conversations` lists them"));
                }
                return Ok(Exit::Success);
            }
            Some(ConversationsCommand::List { json }) => json,
            None => options.json,
        };
        let conversations = store.list_conversations(LIMIT).await?;
        match json.json {
            true => out::json(&conversations.iter().map(as_json).collect::<Vec<Value>>()),
            false => out::styled(&as_table(&conversations)),
        }?;
        Ok(Exit::Success)
    })
}

fn as_json(conversation: &Conversation) -> Value {
    json!({
        "id": conversation.id,
        "started": time::shown(conversation.started_at_ms),
        "last_used": time::shown(conversation.last_used_at_ms),
        "calls": conversation.n_calls,
        "overflow_bytes": conversation.overflow_bytes,
    })
}

fn as_table(conversations: &[Conversation]) -> String {
    let rows: Vec<[String; 5]> = conversations
        .iter()
        .map(|conversation| {
            [
                conversation.id.to_string(),
                time::shown(conversation.started_at_ms),
                time::shown(conversation.last_used_at_ms),
                conversation.n_calls.to_string(),
                conversation.overflow_bytes.to_string(),
            ]
        })
        .collect();
    table::render(
        ["ID", "STARTED", "LAST USED", "CALLS", "STORED BYTES"],
        &rows,
        None,
    )
}
