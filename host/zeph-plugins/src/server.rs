//! What an MCP server said about itself when it was accepted, and what it says now.
//!
//! Definitions of servers are read by models as those of plugins are, and are pinned in the same file: at first sight, and then until a
//! person has seen the difference. Pure, but for the lock file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use zeph_core::id::{Digest, ServerName, ToolName};
use zeph_core::tool::{Backend, Tool};

use crate::definitions::{canonical_json, canonical_tool};
use crate::lock::{Lock, LockError, LockFile};

/// Most bytes of the canonical form of one server's definitions.
pub const SERVER_DEFINITIONS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Version of the canonical form, part of what is hashed.
const FORM: u32 = 1;

/// Everything a server says that a model or a person may read: its tools, how it wants to be used, its prompts and resource templates.
#[derive(Debug, Clone, Default)]
pub struct ServerDefinitions {
    instructions: Option<String>,
    tools: Vec<Tool>,
    prompts: Vec<NamedDefinition>,
    templates: Vec<NamedDefinition>,
    /// What else it sent with its tools, such as icons, by the names it gave them.
    others: Map<String, Value>,
}

/// A prompt or a resource template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDefinition {
    /// The prompt's name, or the template's URI.
    pub name: String,
    /// The whole of it.
    pub definition: Value,
}

/// A server as it was accepted, or as it is now.
#[derive(Debug, Clone)]
pub struct LockedServer {
    /// Its name in the configuration.
    pub name: ServerName,
    /// The words of its command line, or its address; without known secrets.
    pub launch: Vec<String>,
    /// What was installed for it, such as a package with its version and digest; empty when nothing was.
    pub install: BTreeMap<String, String>,
    /// When it was accepted, in Unix milliseconds; kept to the second.
    pub accepted_at_ms: i64,
    /// The digest of the definitions.
    pub digest: Digest,
    /// What it says about itself.
    pub definitions: ServerDefinitions,
}

/// How a server compares with its pin.
#[derive(Debug, Clone)]
pub enum ServerSight {
    /// It was seen for the first time, and is pinned as it is.
    Pinned,
    /// It is what was accepted, or a part of it.
    Same,
    /// It is not: it may not be used before it is approved.
    Changed(Box<LockedServer>),
}

/// An acceptance that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// Something else was accepted in the meantime.
    #[error("`{0}` was approved by another process in the meantime; look at it again")]
    Meanwhile(ServerName),
    /// The lock file.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl ServerDefinitions {
    /// Puts definitions in order.
    ///
    /// Shape: sorted by name (`Tool::name`), then by the server's own name. Of several with one name of the server's, the first counts; the
    ///        others are returned beside.
    pub fn new(
        instructions: Option<String>,
        mut tools: Vec<Tool>,
        mut prompts: Vec<NamedDefinition>,
        mut templates: Vec<NamedDefinition>,
    ) -> (Self, Vec<Tool>) {
        tools.sort_by(|one, other| key(one).cmp(&key(other)));
        let mut kept: Vec<Tool> = Vec::with_capacity(tools.len());
        let mut twice = Vec::new();
        for tool in tools {
            match kept.last().is_some_and(|last| key(last) == key(&tool)) {
                true => twice.push(tool),
                false => kept.push(tool),
            }
        }
        for described in [&mut prompts, &mut templates] {
            described.sort_by(|one, other| one.name.cmp(&other.name));
            described.dedup_by(|other, one| one.name == other.name);
        }
        let definitions = Self {
            instructions: instructions.filter(|text| !text.is_empty()),
            tools: kept,
            prompts,
            templates,
            others: Map::new(),
        };
        (definitions, twice)
    }

    /// The same with what else it sent with its tools, by the names it gave them.
    #[must_use]
    pub fn with_others(self, others: Map<String, Value>) -> Self {
        Self { others, ..self }
    }

    /// What else it sent with its tools, by the names it gave them.
    pub fn others(&self) -> &Map<String, Value> {
        &self.others
    }

    /// How the server wants to be used.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The tools, sorted by name.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The prompts, sorted by name.
    pub fn prompts(&self) -> &[NamedDefinition] {
        &self.prompts
    }

    /// The resource templates, sorted by URI.
    pub fn templates(&self) -> &[NamedDefinition] {
        &self.templates
    }

    /// Whether `now` says nothing that is not said here. Fewer tools are nothing that a person has to look at, and a server whose tools come
    /// and go is what was accepted as long as each of them was.
    fn covers(&self, now: &Self) -> bool {
        let known: Vec<Value> = self.tools.iter().map(own_tool).collect();
        let has_tool = |tool: &Tool| known.contains(&own_tool(tool));
        let mut others = now.others.iter();
        (now.instructions.is_none() || now.instructions == self.instructions)
            && now.tools.iter().all(has_tool)
            && now.prompts.iter().all(|one| self.prompts.contains(one))
            && now.templates.iter().all(|one| self.templates.contains(one))
            && others.all(|(tool, other)| self.others.get(tool) == Some(other))
    }

    /// Bytes of the canonical form.
    pub fn n_bytes(&self) -> usize {
        self.canonical().len()
    }

    /// The SHA-256 of the canonical form.
    ///
    /// Shape: `{"form":1,"instructions":…,"others":{…},"prompts":[…],"templates":[…],"tools":[…]}` as JSON without spaces, the keys of every object in
    ///        the order of their bytes, each list sorted by name.
    pub fn digest(&self) -> Digest {
        zeph_engine::digest(self.canonical().as_bytes())
    }

    fn canonical(&self) -> String {
        let named = |list: &[NamedDefinition]| -> Vec<Value> {
            let pair = |one: &NamedDefinition| json!([one.name, one.definition]);
            list.iter().map(pair).collect()
        };
        canonical_json(&json!({
            "form": FORM,
            "instructions": self.instructions,
            "tools": self.tools.iter().map(own_tool).collect::<Vec<_>>(),
            "prompts": named(&self.prompts),
            "templates": named(&self.templates),
            "others": self.others,
        }))
    }
}

/// What tools are sorted by.
fn key(tool: &Tool) -> (&ToolName, &str) {
    (&tool.name, own_name(tool))
}

/// A tool with the server's own name: what it is offered by can stay the same when that changes.
fn own_tool(tool: &Tool) -> Value {
    json!([own_name(tool), canonical_tool(tool)])
}

/// What its server calls a tool.
pub fn own_name(tool: &Tool) -> &str {
    match &tool.backend {
        Backend::Mcp(named) => &named.tool,
        _ => tool.name.as_str(),
    }
}

impl LockedServer {
    /// Whether `now` is this server, and says nothing that was not accepted.
    fn accepts(&self, now: &Self) -> bool {
        let is_same_launch =
            self.name == now.name && self.launch == now.launch && self.install == now.install;
        let says_no_more = self.digest == now.digest || self.definitions.covers(&now.definitions);
        is_same_launch && says_no_more
    }

    /// Whether both are the same server, whenever they were accepted.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            name,
            launch,
            install,
            accepted_at_ms: _,
            digest,
            definitions: _,
        } = self;
        *name == other.name
            && *launch == other.launch
            && *install == other.install
            && *digest == other.digest
    }
}

/// Compares `now` with what was accepted, and pins it when nothing was. Blocks.
///
/// Errors: the file cannot be used, or a new server cannot be written into it: such a server may not be used.
pub fn look(lock: &Path, now: &LockedServer) -> Result<ServerSight, LockError> {
    let sight = |accepted: &LockedServer| match accepted.accepts(now) {
        true => ServerSight::Same,
        false => ServerSight::Changed(Box::new(accepted.clone())),
    };
    if let Some(accepted) = Lock::read(lock)?.server(&now.name) {
        return Ok(sight(accepted));
    }
    make_folder(lock)?;
    LockFile::edit(lock, |lock| match lock.server(&now.name) {
        // Another host was faster.
        Some(accepted) => Ok(sight(accepted)),
        None => {
            lock.put_server(now.clone());
            Ok(ServerSight::Pinned)
        }
    })
}

/// Pins `now` in the place of `old`, which is what was compared with it. Blocks.
///
/// Errors: [`AcceptError`]; then nothing is changed.
pub fn accept(lock: &Path, old: &LockedServer, now: LockedServer) -> Result<(), AcceptError> {
    LockFile::edit(lock, |lock| match lock.server(&now.name) {
        Some(accepted) if accepted.is_same(old) => {
            lock.put_server(now);
            Ok(())
        }
        _ => Err(AcceptError::Meanwhile(now.name.clone())),
    })
}

/// Forgets what was accepted of a server: the next one of its name is a new one. Says whether there was one. Blocks.
///
/// Errors: the file cannot be used; then nothing is changed.
pub fn forget(lock: &Path, name: &ServerName) -> Result<bool, LockError> {
    if Lock::read(lock)?.server(name).is_none() {
        return Ok(false);
    }
    LockFile::edit(lock, |lock| Ok(lock.remove_server(name).is_some()))
}

/// The folder of the user's configuration need not exist before something is written there.
fn make_folder(lock: &Path) -> Result<(), LockError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = lock
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder.filter(|folder| !folder.exists()) else {
        return Ok(());
    };
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(|source| LockError::File {
        operation: "make the folder of",
        path: lock.to_owned(),
        source,
    })
}

#[cfg(test)]
pub(crate) mod tests;
