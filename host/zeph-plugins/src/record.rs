//! What is known of a plugin from an earlier look, so that a start neither reads nor runs it.
//!
//! A record stands in the private cache directory and holds for one state of one file: inode, length, times. What it says
//! about the tools is only used if the pin matches. That of a plugin of the program holds for one component, by its digest. An
//! unreadable record counts as missing.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeph_core::argument::Parameters;
use zeph_core::id::{Digest, Pin};
use zeph_core::manifest::Manifest;
use zeph_core::schema::Schema;
use zeph_core::tool::Tool;
use zeph_engine::StrategyDefinition;

use super::folder::FileStamp;

/// What a look at a file found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum RecordVerdict {
    /// A plugin.
    Good(Box<PluginDescription>),
    /// No plugin, for this reason.
    Bad(String),
}

/// A plugin as its file describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PluginDescription {
    /// Of the bytes and of the definitions.
    pub(crate) pin: Pin,
    /// What it wants.
    pub(crate) manifest: Manifest,
    /// Whether the file says what it wants; else the operator may.
    pub(crate) has_manifest: bool,
    /// Its tools under their own names.
    pub(crate) tools: Vec<Tool>,
    /// Its filter strategies under their own names.
    #[serde(default)]
    pub(crate) strategies: Vec<StrategyDefinition>,
    /// What the file says about itself.
    pub(crate) about: ComponentInfo,
}

/// What a component says about itself; every text is the author's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentInfo {
    /// `tool plugin`, `filter strategies` or `plain component`.
    pub kind: String,
    /// Its version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who wrote it.
    pub authors: Option<String>,
    /// Under which terms, as SPDX.
    pub licences: Option<String>,
    /// Where to read more.
    pub homepage: Option<String>,
    /// Functions of a plain component that cannot be offered, each with the reason.
    #[serde(default)]
    pub skipped: Vec<(String, String)>,
}

/// The directory of records; `None` when there is no cache.
#[derive(Debug, Clone)]
pub struct Records {
    dir: Option<PathBuf>,
}

/// The file, exactly.
#[derive(Serialize, Deserialize)]
struct PluginRecord {
    /// Another version of the host may read components differently.
    host: String,
    path: PathBuf,
    stamp: FileStamp,
    verdict: RecordVerdict,
}

/// The file about a plugin of the program, exactly.
#[derive(Serialize, Deserialize)]
struct OwnRecord {
    host: String,
    digest: Digest,
    /// Without their schemas.
    tools: Vec<Tool>,
    /// Those of each tool, which are read when they are first looked at.
    schemas: Vec<KeptSchemas>,
}

/// The schemas of a tool as JSON text.
#[derive(Serialize, Deserialize)]
struct KeptSchemas {
    parameters: String,
    output: Option<String>,
}

/// Changes whenever this build would judge or describe a component differently.
const HOST: &str = concat!(env!("CARGO_PKG_VERSION"), " 5");

impl Records {
    /// The records below the cache directory. One that others may write into is not used.
    pub fn new(cache_dir: Option<&Path>) -> Self {
        let dir = cache_dir.map(|cache| cache.join("plugins"));
        Self {
            dir: dir.filter(|dir| is_usable(dir)),
        }
    }

    /// What was found when `path` had `stamp`.
    pub(crate) fn recall(&self, path: &Path, stamp: &FileStamp) -> Option<RecordVerdict> {
        let text = fs::read(self.file(path)?).ok()?;
        let record: PluginRecord = serde_json::from_slice(&text).ok()?;
        let holds = record.host == HOST && record.path == path && record.stamp == *stamp;
        holds.then_some(record.verdict)
    }

    /// Keeps what was found. Failing only costs the next start some time.
    pub(crate) fn keep(&self, path: &Path, stamp: &FileStamp, verdict: &RecordVerdict) {
        let Some(file) = self.file(path) else {
            return;
        };
        let record = PluginRecord {
            host: HOST.to_owned(),
            path: path.to_owned(),
            stamp: stamp.clone(),
            verdict: verdict.clone(),
        };
        write(&file, &record);
    }

    /// The tools of the component with this digest, which is part of the program.
    pub fn recall_own(&self, digest: Digest) -> Option<Vec<Tool>> {
        let text = fs::read(self.own_file(digest)?).ok()?;
        let record: OwnRecord = serde_json::from_slice(&text).ok()?;
        let is_whole = record.tools.len() == record.schemas.len();
        let holds = record.host == HOST && record.digest == digest && is_whole;
        let kept = record.tools.into_iter().zip(record.schemas);
        holds.then(|| kept.map(|(tool, schemas)| schemas.of(tool)).collect())
    }

    /// Keeps the tools of a component that is part of the program. Failing only costs the next start some time.
    pub fn keep_own(&self, digest: Digest, tools: &[Tool]) {
        let Some(file) = self.own_file(digest) else {
            return;
        };
        let record = OwnRecord {
            host: HOST.to_owned(),
            digest,
            tools: tools.iter().map(without_schemas).collect(),
            schemas: tools.iter().map(KeptSchemas::new).collect(),
        };
        write(&file, &record);
    }

    fn own_file(&self, digest: Digest) -> Option<PathBuf> {
        let name = format!("own-{}.json", digest.hex());
        Some(self.dir.as_ref()?.join(name))
    }

    /// Drops what is known of `path`.
    pub fn forget(&self, path: &Path) {
        if let Some(file) = self.file(path) {
            // What is left of a file that is gone is never asked for.
            drop(fs::remove_file(file));
        }
    }

    fn file(&self, path: &Path) -> Option<PathBuf> {
        let name = zeph_engine::digest(path.as_os_str().as_encoded_bytes()).hex();
        Some(self.dir.as_ref()?.join(name).with_extension("json"))
    }
}

impl KeptSchemas {
    fn new(tool: &Tool) -> Self {
        Self {
            parameters: tool.parameters.schema().to_string(),
            output: tool.output.as_deref().map(Value::to_string),
        }
    }

    /// The tool with them.
    fn of(self, tool: Tool) -> Tool {
        Tool {
            parameters: Parameters::trusted(Schema::of_text(self.parameters)),
            output: self.output.map(Schema::of_text),
            ..tool
        }
    }
}

fn without_schemas(tool: &Tool) -> Tool {
    Tool {
        parameters: Parameters::trusted(Schema::later(|| json!({"type": "object"}))),
        output: None,
        ..tool.clone()
    }
}

fn is_usable(dir: &Path) -> bool {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir);
    let meta = made.and_then(|()| fs::metadata(dir));
    meta.is_ok_and(|meta| {
        meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
    })
}

fn write(file: &Path, record: &impl Serialize) {
    let kept = serde_json::to_vec(record)
        .map_err(std::io::Error::from)
        .and_then(|text| replace(file, &text));
    if let Err(error) = kept {
        tracing::debug!(file = %file.display(), %error, "what a plugin holds cannot be kept");
    }
}

fn replace(file: &Path, text: &[u8]) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
    temporary.write_all(text)?;
    temporary.persist(file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use zeph_core::tool::Tool;

    use super::{OwnRecord, Records};

    fn tools() -> Vec<Tool> {
        let tool = serde_json::json!({
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            "output": {"type": "object", "required": ["\"seen\""]},
            "kind": "other",
            "annotations": {"read_only": true, "destructive": false, "idempotent": true, "open_world": false},
            "backend": {"wasm": "own"},
        });
        serde_json::from_value::<Tool>(tool).into_iter().collect()
    }

    #[test]
    fn the_tools_of_an_own_plugin_are_remembered_for_one_component_and_one_host() {
        let cache = tempfile::tempdir().unwrap();
        let records = Records::new(Some(cache.path()));
        let (one, other) = (zeph_engine::digest(b"one"), zeph_engine::digest(b"other"));
        assert!(records.recall_own(one).is_none());
        records.keep_own(one, &tools());
        let recalled = records.recall_own(one).unwrap();
        assert_eq!(
            serde_json::to_value(recalled).unwrap(),
            serde_json::to_value(tools()).unwrap()
        );
        assert!(records.recall_own(other).is_none());

        // A record under the name of another component, and one of another version of the host.
        let place = |digest| records.own_file(digest).unwrap();
        fs::copy(place(one), place(other)).unwrap();
        assert!(records.recall_own(other).is_none());
        let text = fs::read(place(one)).unwrap();
        let mut record: OwnRecord = serde_json::from_slice(&text).unwrap();
        record.host.push('x');
        fs::write(place(one), serde_json::to_vec(&record).unwrap()).unwrap();
        assert!(records.recall_own(one).is_none());
        fs::write(place(one), "{").unwrap();
        assert!(records.recall_own(one).is_none());
    }

    #[test]
    fn a_schema_that_was_damaged_lets_no_call_through() {
        let cache = tempfile::tempdir().unwrap();
        let records = Records::new(Some(cache.path()));
        let digest = zeph_engine::digest(b"one");
        records.keep_own(digest, &tools());
        let place = records.own_file(digest).unwrap();
        let mut record: OwnRecord = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
        let called = |records: &Records| {
            let tools = records.recall_own(digest)?;
            Some(tools.first()?.parameters.read(json!({"path": "a"})).is_ok())
        };
        assert_eq!(called(&records), Some(true));
        record.schemas[0].parameters.truncate(20);
        fs::write(&place, serde_json::to_vec(&record).unwrap()).unwrap();
        assert_eq!(called(&records), Some(false));
        record.schemas.clear();
        fs::write(&place, serde_json::to_vec(&record).unwrap()).unwrap();
        assert_eq!(called(&records), None);
    }
}
