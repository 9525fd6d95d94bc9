//! The words that stand in the audit table for values of enums; the same words as in JSON.

use rusqlite::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeph_core::category::{ErrorCategory, ErrorDomain, ErrorPhase};

use crate::audit::record::{AuditResult, ClaimSource};

/// A value as JSON, for a column of text.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A column of JSON; nothing when it is null, or was written by a program that knows more than this one.
pub(crate) fn from_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The columns of a result: its kind, and the text some kinds carry.
pub(crate) fn result_columns(result: &AuditResult) -> (&'static str, Option<&str>) {
    match result {
        AuditResult::Success => ("success", None),
        AuditResult::Blocked { reason } => ("blocked", Some(reason)),
        AuditResult::Error { message } => ("error", Some(message)),
        AuditResult::Timeout => ("timeout", None),
        AuditResult::Cancelled => ("cancelled", None),
    }
}

/// The result of these columns; none for an unknown kind.
pub(crate) fn result_from(label: &str, detail: String) -> Option<AuditResult> {
    match label {
        "success" => Some(AuditResult::Success),
        "blocked" => Some(AuditResult::Blocked { reason: detail }),
        "error" => Some(AuditResult::Error { message: detail }),
        "timeout" => Some(AuditResult::Timeout),
        "cancelled" => Some(AuditResult::Cancelled),
        _ => None,
    }
}

/// The category of this name.
pub(crate) fn category_from(label: &str) -> Option<ErrorCategory> {
    ErrorCategory::ALL
        .into_iter()
        .find(|category| category.label() == label)
}

/// The name of a domain, as in JSON.
pub(crate) fn domain_label(domain: ErrorDomain) -> &'static str {
    match domain {
        ErrorDomain::Planning => "planning",
        ErrorDomain::Reflection => "reflection",
        ErrorDomain::Action => "action",
        ErrorDomain::System => "system",
    }
}

/// The name of a phase, as in JSON.
pub(crate) fn phase_label(phase: ErrorPhase) -> &'static str {
    match phase {
        ErrorPhase::Setup => "setup",
        ErrorPhase::ParamHandling => "param_handling",
        ErrorPhase::Execution => "execution",
        ErrorPhase::ResultInterpretation => "result_interpretation",
    }
}

/// The phase of this name.
pub(crate) fn phase_from(label: &str) -> Option<ErrorPhase> {
    const ALL: [ErrorPhase; 4] = [
        ErrorPhase::Setup,
        ErrorPhase::ParamHandling,
        ErrorPhase::Execution,
        ErrorPhase::ResultInterpretation,
    ];
    ALL.into_iter().find(|phase| phase_label(*phase) == label)
}

/// The name of a claim's source, as in JSON.
pub(crate) fn source_label(source: ClaimSource) -> &'static str {
    match source {
        ClaimSource::Shell => "shell",
        ClaimSource::FileSystem => "file_system",
        ClaimSource::WebScrape => "web_scrape",
        ClaimSource::WebSearch => "web_search",
        ClaimSource::Mcp => "mcp",
        ClaimSource::A2a => "a2a",
        ClaimSource::CodeSearch => "code_search",
        ClaimSource::Diagnostics => "diagnostics",
        ClaimSource::Memory => "memory",
        ClaimSource::Moderation => "moderation",
    }
}

/// The source of this name.
pub(crate) fn source_from(label: &str) -> Option<ClaimSource> {
    ClaimSource::ALL
        .into_iter()
        .find(|source| source_label(*source) == label)
}
