//! The manifest of a plugin: the capabilities it requests, and the upper bound of what it can be granted.
//!
//! The text is the author's `plugin.toml`, carried inside the component as the custom section [`SECTION`]. It grants nothing: a
//! plugin has the capabilities that its manifest requests and its operator granted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::capability::{ANY_NAME, Capability, FsRights, LimitName};
use crate::network::{HostAccess, HostPattern, Methods};
use crate::program;
use crate::secret::SecretUse;
use crate::text::is_deceptive;

/// The custom section of a component, or of a core module in it, that holds the manifest.
pub const SECTION: &str = "zeph:manifest";

/// Maximum size of a manifest in bytes: more than anyone would read before granting.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of capabilities a manifest requests.
pub const WANTS_MAX: usize = 64;

/// Maximum length of a reason in characters: one sentence.
pub const REASON_CHARS_MAX: usize = 200;

/// Maximum length of a requested path or name in characters.
const NAME_CHARS_MAX: usize = 256;

/// A requested capability with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// The capability. A directory is as the author wrote it: `.` for the directories the host was given, `~/…` or absolute.
    #[serde(flatten)]
    pub capability: Capability,
    /// The author's reason, in one line.
    pub reason: String,
}

/// All requested capabilities, in the author's order. The default requests none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Manifest {
    /// The requests.
    pub wants: Vec<Want>,
}

/// An invalid manifest. The plugin is not loaded, because its requests are unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadManifest(String);

/// The file, exactly.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManifest {
    #[serde(default)]
    directory: Vec<RawDirectory>,
    #[serde(default)]
    host: Vec<RawHost>,
    #[serde(default)]
    program: Vec<RawProgram>,
    #[serde(default)]
    variable: Vec<RawName>,
    #[serde(default)]
    limit: Vec<RawLimit>,
    #[serde(default)]
    secret: Vec<RawSecret>,
    #[serde(default)]
    embedder: Vec<RawName>,
    #[serde(default)]
    tool: Vec<RawName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDirectory {
    path: String,
    rights: BTreeSet<RawRight>,
    reason: String,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum RawRight {
    Read,
    Write,
    Create,
    Delete,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    name: String,
    methods: Option<Methods>,
    #[serde(default)]
    plain_http: bool,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawName {
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProgram {
    name: String,
    /// The lists of arguments it may get, each as one text. Without any: whatever arguments.
    #[serde(default)]
    args: Vec<String>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimit {
    name: LimitName,
    value: u64,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSecret {
    name: String,
    host: String,
    header: String,
    methods: Option<Methods>,
    reason: String,
}

impl Manifest {
    /// Reads the text of a `plugin.toml`.
    ///
    /// Shape:  tables `[[directory]]` (`path`, `rights`, `reason`), `[[host]]` (`name`, `reason`, perhaps `methods`, `plain_http`),
    ///         `[[program]]` (`name`, `reason`, perhaps `args`), `[[variable]]` (`name`, `reason`), `[[limit]]` (`name`, `value`,
    ///         `reason`), `[[secret]]` (`name`, `host`, `header`, `reason`, perhaps `methods`), `[[embedder]]` and `[[tool]]` (`name`,
    ///         `reason`); any may be absent.
    /// Errors: [`BadManifest`] in one line: invalid TOML, an unknown or duplicate key, a missing reason, a limit exceeded.
    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        if text.len() > MANIFEST_BYTES_MAX {
            let n_bytes = text.len();
            let problem = format!("it has {n_bytes} bytes; the limit is {MANIFEST_BYTES_MAX}");
            return Err(BadManifest(problem));
        }
        let raw: RawManifest = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            BadManifest(format!("line {line}: {}", error.message().trim()))
        })?;
        let manifest = Self { wants: wants(raw)? };
        manifest.check()?;
        Ok(manifest)
    }

    /// Makes a manifest of these requests, with the checks of a manifest in a file.
    ///
    /// Errors: [`BadManifest`] in one line.
    pub fn of(wants: Vec<Want>) -> Result<Self, BadManifest> {
        let manifest = Self { wants };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), BadManifest> {
        if self.wants.len() > WANTS_MAX {
            let n_wants = self.wants.len();
            return Err(BadManifest(format!(
                "it requests {n_wants} capabilities; the limit is {WANTS_MAX}"
            )));
        }
        for (idx, want) in self.wants.iter().enumerate() {
            let subject = want.capability.to_string();
            let bad = |problem: &str| Err(BadManifest(format!("`{subject}`: {problem}")));
            if !is_plain(&want.reason, REASON_CHARS_MAX) || want.reason.trim().is_empty() {
                return bad("its reason has to be one line of 1 to 200 characters");
            }
            if let Some(problem) = problem(&want.capability) {
                return bad(problem);
            }
            let same = |other: &Want| other.capability.subject() == want.capability.subject();
            if self.wants[..idx].iter().any(same) {
                return bad("it is wanted twice");
            }
        }
        Ok(())
    }
}

/// Errors: [`BadManifest`] for a host that is none.
fn wants(raw: RawManifest) -> Result<Vec<Want>, BadManifest> {
    let RawManifest {
        directory,
        host,
        program,
        variable,
        limit,
        secret,
        embedder,
        tool,
    } = raw;
    let directories = directory.into_iter().map(|raw| Want {
        capability: Capability::Directory {
            path: raw.path,
            rights: FsRights {
                read: raw.rights.contains(&RawRight::Read),
                write: raw.rights.contains(&RawRight::Write),
                create: raw.rights.contains(&RawRight::Create),
                delete: raw.rights.contains(&RawRight::Delete),
            },
        },
        reason: raw.reason,
    });
    let named = |raw: Vec<RawName>, capability: fn(String) -> Capability| {
        raw.into_iter().map(move |raw| Want {
            capability: capability(raw.name),
            reason: raw.reason,
        })
    };
    let limits = limit.into_iter().map(|raw| Want {
        capability: Capability::Limit {
            name: raw.name,
            value: raw.value,
        },
        reason: raw.reason,
    });
    let hosts: Result<Vec<_>, _> = host.into_iter().map(host_want).collect();
    let secrets: Result<Vec<_>, _> = secret.into_iter().map(secret_want).collect();
    Ok(directories
        .chain(hosts?)
        .chain(program.into_iter().flat_map(programs))
        .chain(named(variable, |name| Capability::Variable { name }))
        .chain(limits)
        .chain(secrets?)
        .chain(named(embedder, |name| Capability::Embedder { name }))
        .chain(named(tool, |name| Capability::Tool { name }))
        .collect())
}

fn host_want(raw: RawHost) -> Result<Want, BadManifest> {
    let RawHost {
        name,
        methods,
        plain_http,
        reason,
    } = raw;
    let pattern = HostPattern::parse(&name, HostAccess::default_port(plain_http));
    let name = pattern.map_err(|problem| {
        let name = crate::failure::one_line(&name, 100);
        BadManifest(format!("`host {name}`: {problem}"))
    })?;
    let access = HostAccess {
        name,
        methods,
        plain_http,
    };
    let capability = Capability::Host(access);
    Ok(Want { capability, reason })
}

fn secret_want(raw: RawSecret) -> Result<Want, BadManifest> {
    let used = SecretUse::new(&raw.name, &raw.host, &raw.header, raw.methods);
    let used = used.map_err(|problem| {
        let name = crate::failure::one_line(&raw.name, 100);
        BadManifest(format!("`secret {name}`: {problem}"))
    })?;
    Ok(Want {
        capability: Capability::Secret(used),
        reason: raw.reason,
    })
}

/// One request for each list of arguments.
fn programs(raw: RawProgram) -> Vec<Want> {
    let RawProgram { name, args, reason } = raw;
    let want = |name: String| Want {
        capability: Capability::Program { name },
        reason: reason.clone(),
    };
    match args.is_empty() {
        true => vec![want(name)],
        false => args
            .iter()
            .map(|args| want(format!("{name} {args}")))
            .collect(),
    }
}

/// Describes what is wrong with a capability, if anything.
pub(crate) fn problem(capability: &Capability) -> Option<&'static str> {
    match capability {
        Capability::Directory { path, rights } => directory_problem(path, *rights),
        // Checked when they were read.
        Capability::Host(_) | Capability::Secret(_) => None,
        Capability::Program { name } => {
            let is_plain = is_plain(name, NAME_CHARS_MAX);
            let too_long = "a program and its arguments are at most 256 visible characters";
            (!is_plain)
                .then_some(too_long)
                .or_else(|| program::problem(name))
        }
        Capability::Variable { name } => {
            (!is_variable(name)).then_some("a variable is a name of `A-Z a-z 0-9 _`")
        }
        Capability::Limit { value, .. } => (*value == 0).then_some("a limit is at least 1"),
        Capability::Embedder { name } => (!is_name(name)).then_some(
            "an embedder is the name of a provider in `llm.providers`, or `*` in a manifest for whichever is granted",
        ),
        Capability::Tool { name } => (!is_tool(name)).then_some(
            "a tool is `SERVER/TOOL`, or `*` in a manifest for whichever is granted",
        ),
    }
}

fn directory_problem(path: &str, rights: FsRights) -> Option<&'static str> {
    let is_rooted = path == "." || path == "~" || path.starts_with("~/") || path.starts_with('/');
    if !is_rooted || !is_plain(path, NAME_CHARS_MAX) || path.split('/').any(|name| name == "..") {
        return Some(
            "a directory is `.` (the directories the host was given), `~/…` or absolute, without `..`",
        );
    }
    (rights == FsRights::default())
        .then_some("it names no right of `read`, `write`, `create`, `delete`")
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && is_plain(name, NAME_CHARS_MAX)
}

fn is_tool(name: &str) -> bool {
    let both = name.split_once('/');
    let is_named = both.is_some_and(|(server, tool)| is_name(server) && is_name(tool));
    is_plain(name, NAME_CHARS_MAX) && (name == ANY_NAME || is_named)
}

fn is_variable(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// One line without anything that could steer a terminal or deceive the eye.
fn is_plain(text: &str, chars_max: usize) -> bool {
    text.chars().count() <= chars_max && !text.chars().any(is_deceptive)
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
