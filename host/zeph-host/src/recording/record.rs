//! One line of a record file: what a call really used. No contents, and no secrets that the host knows.
//!
//! The form is kept as a JSON Schema in `schema/record.json`; a test compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the form that this program writes and reads.
pub(crate) const VERSION: u32 = 1;

/// What one call used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A line of the file of `zeph-host run --record`")]
pub(crate) struct CallRecord {
    /// The version of this form: 1.
    pub(crate) version: u32,
    /// The call, as in the audit.
    pub(crate) call_id: String,
    /// When it was asked for, in Unix milliseconds.
    pub(crate) at_ms: i64,
    /// Its conversation.
    pub(crate) conversation_id: String,
    /// The tool, as rules name it; as the caller named it when there is no such tool.
    pub(crate) tool: String,
    /// Who offers the tool; none when the call did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<RecordedOwner>,
    /// How it was decided.
    pub(crate) decision: RecordedDecision,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Whether the conversation had read something from the network before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) untrusted: bool,
    /// SHA-256 of the arguments as compact JSON with sorted keys; none when they hold a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments_sha256: Option<String>,
    /// The stored output that holds the arguments, where they are too long for the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments_id: Option<String>,
    /// The paths that its arguments name, absolute and resolved; of a command, the files that its redirections write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
    /// The files it used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<RecordedFile>,
    /// Rights on directories that it tried to use and did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<RefusedPath>,
    /// The hosts it sent requests to, or was refused at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<RecordedHost>,
    /// Names of the variables that it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) variables: Vec<String>,
    /// The programs that a plugin ran, each as its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) programs: Vec<Vec<String>>,
    /// The providers of embeddings that a plugin used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) embedders: Vec<String>,
    /// The tools of MCP servers that a plugin called, each `SERVER/TOOL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
    /// The simple commands of a command line, each as its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) commands: Vec<Vec<String>>,
    /// The granted directories in which the programs of a command used something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) directories: Vec<RecordedDirectory>,
    /// The limits it ran into, as keys of `[limits]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<String>,
    /// How it ended.
    pub(crate) outcome: RecordedOutcome,
    /// The category of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<String>,
    /// How long it took, in milliseconds.
    pub(crate) duration_ms: u64,
    /// SHA-256 of the text of its result.
    pub(crate) result_sha256: String,
    /// Bytes of that text.
    pub(crate) result_bytes: u64,
    /// Names that were left out because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) omitted: u64,
}

/// Who offers a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedOwner {
    /// What runs it.
    pub(crate) kind: OwnerKind,
    /// The name of the plugin or server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The digest of the component of a plugin, `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
}

/// What runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OwnerKind {
    /// A component.
    Plugin,
    /// The shell.
    Command,
    /// The host itself.
    Builtin,
    /// An MCP server.
    Server,
    /// An executor of the program that embeds the host.
    Executor,
}

/// How a call was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedDecision {
    /// It ran.
    Allow,
    /// It needed an approval that it did not get.
    Ask,
    /// It was denied.
    Deny,
    /// It was no valid call.
    Invalid,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedOutcome {
    /// It succeeded.
    Ok,
    /// It failed.
    Failed,
}

/// A file or directory that a call used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedFile {
    /// The granted directory it lies in.
    pub(crate) root: String,
    /// Its path below that; empty for the directory itself.
    pub(crate) path: String,
    /// Whether it is a directory.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) directory: bool,
    /// What was done with it.
    pub(crate) uses: Vec<FileUseName>,
}

/// What was done with a file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileUseName {
    /// Its description was asked for, or whether it is there.
    Look,
    /// It was opened to be read.
    Read,
    /// It was opened to be changed, or replaced.
    Write,
    /// It was made.
    Create,
    /// It was removed or renamed.
    Delete,
    /// Its entries were listed.
    List,
    /// Temporary files were made in it, and removed.
    Temporary,
}

/// Rights that a call tried to use and did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusedPath {
    /// The directory.
    pub(crate) path: String,
    /// The rights, joined by `+`.
    pub(crate) rights: String,
}

/// A host that a call reached or was refused at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedHost {
    /// The host with its port.
    pub(crate) host: String,
    /// The methods of its requests, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) methods: Vec<String>,
    /// Whether a request went there without TLS.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) plain_http: bool,
    /// Connections or requests that were let out.
    pub(crate) requests: u64,
    /// Those that were refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) refused: u64,
}

/// A directory in which the programs of a command used something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedDirectory {
    /// Its path.
    pub(crate) path: String,
    /// Whether something in it was changed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) write: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::CallRecord;

    /// With `ZEPH_BLESS=1` the kept schema is written anew.
    #[test]
    fn the_kept_schema_is_that_of_the_type() {
        const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/record.json");
        let made = serde_json::to_string_pretty(&schemars::schema_for!(CallRecord)).unwrap() + "\n";
        if std::env::vars().any(|(name, _)| name == "ZEPH_BLESS") {
            std::fs::write(KEPT, &made).unwrap();
        }
        let kept = std::fs::read_to_string(KEPT).unwrap();
        assert_eq!(made, kept, "run it with ZEPH_BLESS=1");
    }
}
