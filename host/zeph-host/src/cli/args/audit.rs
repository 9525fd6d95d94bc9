//! The arguments of `zeph-host audit`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use zeph_core::id::ConversationId;

use super::Json;
use crate::cli::help::{AUDIT_EXPORT_EXAMPLES, AUDIT_VERIFY_EXAMPLES, AUDIT_VERIFY_LONG};

/// `zeph-host audit`
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  zeph-host audit tail -n 20 -f\n  zeph-host audit query --tool write --since 2h\n  zeph-host audit query --unfinished --json\n  zeph-host audit verify"
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    #[command(flatten)]
    pub(crate) tail: AuditTail,
}

/// A command of `zeph-host audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Print the newest calls, oldest first
    Tail(AuditTail),
    /// Print the calls that match all given conditions, oldest first
    Query(AuditQuery),
    /// Check that no record was changed, removed, moved or inserted since the host wrote it
    #[command(after_help = AUDIT_VERIFY_EXAMPLES, after_long_help = AUDIT_VERIFY_LONG)]
    Verify(AuditVerify),
    /// Sign what was recorded so far, print that, and send it to `tools.audit.checkpoint_target`
    #[command(
        after_help = "Example:\n  zeph-host audit checkpoint | ssh backup 'cat >>checkpoints.jsonl'"
    )]
    Checkpoint,
    /// Print the calls for another program, or send them to a collector
    #[command(after_help = AUDIT_EXPORT_EXAMPLES)]
    Export(AuditExport),
    /// Continue the log with a new key, because the old one was lost or became known, or an earlier log is gone
    Rekey,
}

/// `zeph-host audit tail`
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct AuditTail {
    /// Number of calls
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 10)]
    pub(crate) lines: u32,
    /// Keep printing calls as they finish
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host audit query`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct AuditQuery {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of tools of this plugin
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Only calls that failed with this category, such as `timeout`
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Only calls started at or after this time: `2h`, `3d`, `2026-11-20` or `2026-11-20T08:00:00Z`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls started before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// Only calls that have not finished: still running, or their host died
    #[arg(long)]
    pub(crate) unfinished: bool,
    /// Print at most this many, the newest
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host audit verify`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct AuditVerify {
    /// Compare the log with checkpoints kept elsewhere: one per line, or the output of `journalctl -t zeph-host -o json`
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Only the records of this host, in a store that several hosts share: their keys are on their machines
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host audit export`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct AuditExport {
    /// Format of the export
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    pub(crate) format: AuditFormat,
    /// Write to this file, which must not exist yet, instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "endpoint")]
    pub(crate) output: Option<PathBuf>,
    /// Send to this OTLP/HTTP endpoint, such as `https://collector.example.com/v1/logs`; only with `--format otlp`
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Only calls started at or after this time: `2h`, `3d`, `2026-11-20` or `2026-11-20T08:00:00Z`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls started before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// One JSON object per call and line, as `audit query --json` prints it
    Jsonl,
    /// One row per call, with a header
    Csv,
    /// Log records of OpenTelemetry, as OTLP/JSON
    Otlp,
}
