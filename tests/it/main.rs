//! Whole-product tests. One file per subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod asks;
mod audit;
mod cache;
mod changes;
mod commands;
mod completions;
mod diagnostics;
mod documents;
mod dropin;
mod egress;
mod faults;
mod files;
mod filters;
mod guard;
mod guest;
mod hostile;
mod hosts;
#[path = "../left_out.rs"]
mod left_out;
mod limits;
mod lines;
mod mcp;
mod mcp_approvals;
mod mcp_client;
mod mcp_conversations;
mod mcp_ends;
mod mcp_faults;
mod mcp_http;
mod mcp_http_client;
mod mcp_http_oauth;
mod mcp_stdio;
mod mcp_tasks;
mod overflow;
mod own_plugins;
mod plain;
mod plugin_cli;
mod plugin_dev;
mod product;
mod programs;
mod raised;
mod readme;
mod refused;
mod result_cache;
mod retries;
mod rules;
mod running;
mod secrets;
mod shell;
mod site;
mod strategies;
mod terminal;
mod toolchain;
mod toolchains;
mod workspace;
