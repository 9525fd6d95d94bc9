//! Whole-product tests. One file per subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod acp;
mod agent;
mod asks;
mod audit;
mod cache;
mod changes;
mod commands;
mod compiling;
mod completions;
mod diagnostics;
mod documents;
mod dropin;
mod egress;
mod escapes;
mod faults;
mod files;
mod filters;
mod goals;
mod governance;
mod guard;
mod guest;
mod hostile;
mod hosts;
mod kills;
#[path = "../left_out.rs"]
mod left_out;
mod library;
mod limits;
mod lines;
mod mcp;
mod mcp_approvals;
mod mcp_choice;
mod mcp_client;
mod mcp_conversations;
mod mcp_ends;
mod mcp_eras;
mod mcp_faults;
mod mcp_http;
mod mcp_http_client;
mod mcp_http_oauth;
mod mcp_login;
mod mcp_reach;
mod mcp_servers;
mod mcp_stdio;
mod mcp_tasks;
mod mcp_wrap;
mod overflow;
mod own_plugins;
mod peers;
mod plain;
mod plugin_cli;
mod plugin_dev;
#[expect(
    clippy::disallowed_methods,
    dead_code,
    reason = "it is written for another suite, and starts programs"
)]
#[path = "../../host/zeph-store/tests/it/server.rs"]
mod postgres;
mod product;
mod programs;
mod raised;
mod readme;
mod records;
mod refused;
mod replicas;
mod result_cache;
mod retries;
mod rules;
mod running;
mod scheduler;
mod scrape;
mod search;
mod secrets;
mod shell;
mod site;
mod store_cli;
mod strategies;
mod terminal;
mod toolchain;
mod toolchains;
mod traces;
mod trust;
mod truth;
mod users;
mod workspace;
