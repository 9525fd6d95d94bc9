//! The agent: a model with the tools of this host. Joins the loop of `zeph-agent` with providers over the egress, the line every call
//! follows, and the store.
//!
//! In reading order: `models` (the providers of the configuration), `tools` (the host's tools for the loop), `shaping` (what
//! is shown of them), `journal` (the stored
//! session), `prompt` (what a model is told at the beginning, and with each turn), `attachment` (`@file`), `begin` (all of it put
//! together), `headless` (one prompt) with `events` (`--json`), and `chat` (a conversation at the terminal) with `markdown`, `wrap` and `card`.
//! A model's session is one of the principal `Model`: whatever the user types in a chat, a call is the model's and asks.

pub(crate) mod approver;
pub(crate) mod attachment;
pub(crate) mod begin;
pub(crate) mod card;
pub(crate) mod chat;
pub(crate) mod events;
pub(crate) mod headless;
pub(crate) mod journal;
pub(crate) mod markdown;
pub(crate) mod models;
pub(crate) mod prompt;
pub(crate) mod shaping;
pub(crate) mod tools;
pub(crate) mod wrap;
