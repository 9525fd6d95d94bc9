//! What an approval is bound to: one call with everything that says what it will do.
//!
//! Two calls are the same when tool, provider, directory and every argument are, but for arguments that are remarks. The texts are for
//! people; what is compared is the digest.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;
use zeph_core::redact::Redactor;
use zeph_core::tool::{Backend, Tool};

use super::{AgreedRules, RefusedObjects, ShownCall};

/// Bytes of the arguments that are kept for showing. A command line or a small file fits; of a longer one its head is
/// shown, and its digest still binds all of it.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// A call a person can agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundCall {
    shown: ShownCall,
}

impl BoundCall {
    /// Binds to `tool` with exactly these checked `arguments`, run in `directory`.
    ///
    /// `owner` is the digest of the component behind a tool of an installed plugin: an approval holds for this component alone, whatever
    /// takes its name later.
    /// Shape: the order of keys and the `description` of a command do not matter, everything else does. `directory` is where the call's relative paths start: the
    /// same words mean something else in another one.
    pub fn new(
        tool: &Tool,
        owner: Option<Digest>,
        arguments: &Map<String, Value>,
        directory: Option<&Path>,
    ) -> Self {
        let mut text = canonical(arguments);
        let arguments_bytes = text.len() as u64;
        let digest = digest(tool, owner, &effective(tool, arguments, &text), directory);
        text.truncate(text.floor_char_boundary(ARGUMENTS_BYTES_MAX));
        let shown = ShownCall {
            tool: tool.name.clone(),
            digest,
            directory: directory.map(|path| path.to_string_lossy().into_owned()),
            arguments: text,
            arguments_bytes,
            objects: None,
            rules: None,
        };
        Self { shown }
    }

    /// The same call with leave to change single objects, by their real paths: another thing to agree to than the call.
    #[must_use]
    pub fn changing(mut self, mut paths: Vec<String>) -> Self {
        paths.sort();
        paths.dedup();
        let call_digest = self.shown.digest;
        self.shown.digest = derived("changing", call_digest, &paths);
        self.shown.objects = Some(RefusedObjects { call_digest, paths });
        self
    }

    /// The rules for `--allow` that would let such calls run, in place of the one call: another thing to agree to.
    ///
    /// `scope` is that of the call's tool ([`rule_scope`]): the rules hold for it alone.
    #[must_use]
    pub fn keeping(mut self, scope: Digest, texts: Vec<String>) -> Self {
        self.shown.digest = derived("keeping", scope, &texts);
        self.shown.rules = Some(AgreedRules { scope, texts });
        self
    }

    /// The same call, shown without any secret; what it is known by stays.
    #[must_use]
    pub fn without_secrets(mut self, redactor: &Redactor) -> Self {
        let mut shown = self.shown.arguments.into_bytes();
        redactor.clean_bytes(&mut shown);
        self.shown.arguments = String::from_utf8_lossy(&shown).into_owned();
        self
    }

    /// What the call is known by.
    pub fn digest(&self) -> Digest {
        self.shown.digest
    }

    /// The call as a person is shown it.
    pub fn shown(&self) -> &ShownCall {
        &self.shown
    }
}

/// The arguments that say what a call does, as canonical JSON; `all` is that of all of them.
fn effective<'a>(tool: &Tool, arguments: &Map<String, Value>, all: &'a str) -> Cow<'a, str> {
    if !arguments.keys().any(|name| is_remark(tool, name)) {
        return Cow::Borrowed(all);
    }
    let mut text = String::new();
    let members = arguments.iter();
    push_members(
        &mut text,
        members.filter(|(name, _)| !is_remark(tool, name)),
    );
    Cow::Owned(text)
}

/// Whether an argument only tells a person what the call is for: the same is done whatever it says, and models word it anew each time.
///
/// The host can say that of its own tools alone. Of those, a tool of the shell does not read its `description`.
fn is_remark(tool: &Tool, argument: &str) -> bool {
    match tool.backend {
        Backend::Shell => argument == "description",
        Backend::Builtin | Backend::Wasm(_) | Backend::Mcp(_) => false,
    }
}

/// What rules that a person agreed to are bound to: one tool of one provider, in one directory, whatever takes its name later.
pub fn rule_scope(tool: &Tool, owner: Option<Digest>, directory: &Path) -> Digest {
    digest(tool, owner, "rules", Some(directory))
}

/// What is agreed to about something with this digest.
fn derived(what: &str, of: Digest, texts: &[String]) -> Digest {
    let mut hash = Sha256::new();
    let of = of.to_string();
    let texts = texts.iter().map(String::as_str);
    for part in [what, of.as_str()].into_iter().chain(texts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Digest::new(hash.finalize().into())
}

/// Each part with its length before it, so that no part can pass for the end of another.
fn digest(tool: &Tool, owner: Option<Digest>, arguments: &str, directory: Option<&Path>) -> Digest {
    let backend = serde_json::to_value(&tool.backend).unwrap_or_default();
    let mut provider = String::new();
    push(&mut provider, &backend);
    let directory = directory.map(|path| path.as_os_str().as_bytes());
    let mut hash = Sha256::new();
    let owner = owner.map(|digest| digest.to_string());
    let name = match owner {
        Some(_) => tool.qualified_name(),
        None => tool.name.to_string(),
    };
    let parts = [
        name.as_bytes(),
        provider.as_bytes(),
        if directory.is_some() { b"in" } else { b"-" },
        directory.unwrap_or_default(),
        arguments.as_bytes(),
    ];
    for part in parts
        .into_iter()
        .chain(owner.as_ref().map(String::as_bytes))
    {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Digest::new(hash.finalize().into())
}

/// Arguments as canonical JSON, the same text for the same arguments: keys sorted by their bytes, no spaces.
pub fn canonical(arguments: &Map<String, Value>) -> String {
    let mut text = String::new();
    push_members(&mut text, arguments.iter());
    text
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Object(members) => push_members(text, members.iter()),
        Value::Array(items) => {
            text.push('[');
            for (idx, item) in items.iter().enumerate() {
                if idx > 0 {
                    text.push(',');
                }
                push(text, item);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn push_members<'a>(text: &mut String, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    let mut members: Vec<(&String, &Value)> = members.collect();
    members.sort_by_key(|(key, _)| *key);
    text.push('{');
    for (idx, (key, value)) in members.into_iter().enumerate() {
        if idx > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        push(text, value);
    }
    text.push('}');
}
