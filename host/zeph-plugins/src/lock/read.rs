//! From the text of a lock file to what it says, or to the line that makes no sense.

mod provenance;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toml::Spanned;
use toml::value::Datetime;
use zeph_core::argument::Parameters;
use zeph_core::capability::Capability;
use zeph_core::failure::one_line;
use zeph_core::id::{Digest, Pin, PluginId, ServerName, ToolName};
use zeph_core::manifest::Want;
use zeph_core::network::{BadHostPattern, HostAccess, HostPattern, Methods};
use zeph_core::schema::Schema;
use zeph_core::secret::SecretUse;
use zeph_core::server::ServerTool;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use self::provenance::{RawNext, RawSigner, RawSource};
use super::{Lock, LockError, LockedPlugin, VERSION};
use crate::definitions::Definitions;
use crate::server::{LockedServer, NamedDefinition, ServerDefinitions, own_name};

/// The file, exactly.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLock {
    version: Spanned<i64>,
    #[serde(default)]
    names: BTreeMap<ToolName, PluginId>,
    #[serde(default)]
    plugin: Vec<RawPlugin>,
    #[serde(default)]
    server: Vec<RawServer>,
}

/// What any version of the file has.
#[derive(Deserialize)]
struct RawVersion {
    version: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlugin {
    name: Spanned<String>,
    file: String,
    wasm: Digest,
    tools: Digest,
    accepted: Spanned<Datetime>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    operator_wants: bool,
    source: Option<Spanned<RawSource>>,
    version: Option<Spanned<String>>,
    signer: Option<Spanned<RawSigner>>,
    next: Option<Spanned<RawNext>>,
    #[serde(default)]
    wants: Vec<Spanned<RawWant>>,
    #[serde(default)]
    tool: Vec<RawTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    name: Spanned<ServerName>,
    launch: Vec<String>,
    #[serde(default)]
    install: BTreeMap<String, String>,
    definitions: Digest,
    accepted: Spanned<Datetime>,
    instructions: Option<String>,
    #[serde(default)]
    tool: Vec<RawTool>,
    #[serde(default)]
    prompt: Vec<RawNamed>,
    #[serde(default)]
    template: Vec<RawNamed>,
    others: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNamed {
    name: String,
    definition: Spanned<String>,
}

/// Flat, so that what is wrong in it has a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWant {
    kind: RawKind,
    path: Option<String>,
    rights: Option<String>,
    name: Option<String>,
    value: Option<u64>,
    host: Option<String>,
    header: Option<String>,
    methods: Option<Methods>,
    #[serde(default)]
    plain_http: bool,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawKind {
    Directory,
    Host,
    Program,
    Variable,
    Limit,
    Secret,
    Embedder,
    Tool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTool {
    name: Spanned<String>,
    title: Option<String>,
    description: String,
    kind: ToolKind,
    annotations: BTreeSet<RawPromise>,
    parameters: Spanned<String>,
    output: Option<Spanned<String>>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
enum RawPromise {
    ReadOnly,
    Destructive,
    Idempotent,
    OpenWorld,
}

/// What is wrong, and at which bytes.
struct LockProblem {
    span: Range<usize>,
    problem: String,
}

/// Reads `text`; `path` is for messages.
pub(super) fn lock(text: &str, path: &Path) -> Result<Lock, LockError> {
    let path = || path.to_owned();
    // Looked at first when something is wrong: what a newer program wrote is no mistake.
    let newer = || {
        let found = toml::from_str::<RawVersion>(text).ok()?.version;
        (found > VERSION).then(|| LockError::Newer {
            path: path(),
            found,
        })
    };
    raw(text).and_then(checked).map_err(|wrong| {
        newer().unwrap_or_else(|| {
            let before = text.as_bytes().get(..wrong.span.start).unwrap_or_default();
            LockError::Broken {
                path: path(),
                line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
                problem: one_line(&wrong.problem, 300),
            }
        })
    })
}

fn raw(text: &str) -> Result<RawLock, LockProblem> {
    let unreadable = |error: toml::de::Error| LockProblem {
        span: error.span().unwrap_or(0..0),
        problem: error.message().to_owned(),
    };
    toml::from_str(text).map_err(|error| conflict(text).unwrap_or_else(|| unreadable(error)))
}

/// Where a merge has left both sides of a conflict, in what cannot be read.
fn conflict(text: &str) -> Option<LockProblem> {
    const MARK: &str = "\n<<<<<<< ";
    let start = text.find(MARK)? + 1;
    Some(LockProblem {
        span: start..start,
        problem: "a merge left a conflict; keep one side, without the lines of `<<<<<<<`, `=======` and `>>>>>>>`"
            .to_owned(),
    })
}

fn checked(raw: RawLock) -> Result<Lock, LockProblem> {
    let RawLock {
        version,
        names,
        plugin,
        server,
    } = raw;
    if !(1..=VERSION).contains(version.get_ref()) {
        let problem = format!("there is no version {}", version.get_ref());
        return Err(wrong(&version, problem));
    }
    let mut lock = Lock {
        names,
        ..Lock::default()
    };
    for raw in plugin {
        let span = raw.name.span();
        let plugin = self::plugin(raw)?;
        if lock.get(&plugin.name).is_some() {
            let problem = format!("`{}` stands here for the second time", plugin.name);
            return Err(LockProblem { span, problem });
        }
        lock.plugins.push(plugin);
    }
    for raw in server {
        let span = raw.name.span();
        let server = self::server(raw)?;
        if lock.server(&server.name).is_some() {
            let problem = format!(
                "the server `{}` stands here for the second time",
                server.name
            );
            return Err(LockProblem { span, problem });
        }
        lock.servers.push(server);
    }
    Ok(lock)
}

fn server(raw: RawServer) -> Result<LockedServer, LockProblem> {
    let RawServer {
        name,
        launch,
        install,
        definitions,
        accepted,
        instructions,
        tool,
        prompt,
        template,
        others,
    } = raw;
    let accepted_at_ms = moment(&accepted)?;
    let tools = tool.into_iter().map(|raw| {
        let named = ServerTool::new(name.get_ref().clone(), raw.name.get_ref().clone());
        self::tool(raw, named.plain_name(), &Backend::Mcp(named.clone()))
    });
    let tools = tools.collect::<Result<_, _>>()?;
    let named = |list: Vec<RawNamed>| list.into_iter().map(named).collect::<Result<_, _>>();
    let said = ServerDefinitions::new(instructions, tools, named(prompt)?, named(template)?);
    if let (_, [twice, ..]) = (&said.0, said.1.as_slice()) {
        let problem = format!("two tools are named `{}`", own_name(twice));
        return Err(wrong(&name, problem));
    }
    let others = match others.as_ref().map(json).transpose()? {
        Some(Value::Object(others)) => others,
        _ => Map::new(),
    };
    Ok(LockedServer {
        name: name.into_inner(),
        launch,
        install,
        accepted_at_ms,
        digest: definitions,
        definitions: said.0.with_others(others),
    })
}

fn named(raw: RawNamed) -> Result<NamedDefinition, LockProblem> {
    Ok(NamedDefinition {
        definition: json(&raw.definition)?,
        name: raw.name,
    })
}

fn plugin(raw: RawPlugin) -> Result<LockedPlugin, LockProblem> {
    let RawPlugin {
        name,
        file,
        wasm,
        tools,
        accepted,
        disabled,
        operator_wants,
        source,
        version,
        signer,
        next,
        wants,
        tool,
    } = raw;
    let accepted_at_ms = moment(&accepted)?;
    let provenance = provenance::provenance(source, version, signer)?;
    let next = next.map(provenance::next).transpose()?;
    let wants = wants.into_iter().map(want).collect::<Result<_, _>>()?;
    let id = PluginId(name.get_ref().clone());
    let backend = Backend::Wasm(id.clone());
    let listed = tool.into_iter().map(|raw| {
        let own = ToolName::new(raw.name.get_ref().as_str());
        let own = own.map_err(|error| wrong(&raw.name, error.to_string()))?;
        self::tool(raw, own, &backend)
    });
    let definitions = Definitions::recorded(wants, listed.collect::<Result<_, _>>()?)
        .map_err(|error| wrong(&name, format!("`{id}`: {error}")))?;
    Ok(LockedPlugin {
        name: id,
        file,
        pin: Pin { wasm, tools },
        accepted_at_ms,
        disabled,
        operator_wants,
        provenance,
        next,
        definitions,
    })
}

/// The tool, which the host knows as `name`.
fn tool(raw: RawTool, name: ToolName, backend: &Backend) -> Result<Tool, LockProblem> {
    let RawTool {
        name: _,
        title,
        description,
        kind,
        annotations,
        parameters,
        output,
    } = raw;
    let schema = Parameters::new(json(&parameters)?);
    Ok(Tool {
        name,
        title,
        description,
        parameters: schema.map_err(|error| wrong(&parameters, error.to_string()))?,
        output: output.as_ref().map(json).transpose()?.map(Schema::from),
        kind,
        annotations: Annotations {
            read_only: annotations.contains(&RawPromise::ReadOnly),
            destructive: annotations.contains(&RawPromise::Destructive),
            idempotent: annotations.contains(&RawPromise::Idempotent),
            open_world: annotations.contains(&RawPromise::OpenWorld),
        },
        backend: backend.clone(),
    })
}

fn want(raw: Spanned<RawWant>) -> Result<Want, LockProblem> {
    use RawKind::{Directory, Embedder, Host, Limit, Program, Tool, Variable};
    let wrong = |problem: String| wrong(&raw, problem);
    if let Some(capability) = secret(raw.get_ref()).map_err(wrong)? {
        let reason = raw.get_ref().reason.clone();
        return Ok(Want { capability, reason });
    }
    let RawWant {
        kind,
        path,
        rights,
        name,
        value,
        methods,
        plain_http,
        reason,
        ..
    } = raw.get_ref();
    let capability = match (kind, path.clone(), rights, name.clone(), *value) {
        (Directory, Some(path), Some(rights), None, None) => {
            let rights = rights.parse().map_err(|error| wrong(format!("{error}")))?;
            Capability::Directory { path, rights }
        }
        (Host, None, None, Some(name), None) => Capability::Host(HostAccess {
            name: host(&name).map_err(|error| wrong(error.to_string()))?,
            methods: methods.clone(),
            plain_http: *plain_http,
        }),
        (Program | Variable | Limit | Directory | Embedder | Tool, ..)
            if methods.is_some() || *plain_http =>
        {
            return Err(wrong("a request of this kind has other keys".to_owned()));
        }
        (Program, None, None, Some(name), None) => Capability::Program { name },
        (Variable, None, None, Some(name), None) => Capability::Variable { name },
        (Embedder, None, None, Some(name), None) => Capability::Embedder { name },
        (Tool, None, None, Some(name), None) => Capability::Tool { name },
        (Limit, None, None, Some(name), Some(value)) => {
            let name = name.parse().map_err(|error| wrong(format!("{error}")))?;
            Capability::Limit { name, value }
        }
        _ => return Err(wrong("a request of this kind has other keys".to_owned())),
    };
    let reason = reason.clone();
    Ok(Want { capability, reason })
}

/// The hosts of a request. `*:*` of plain HTTP was once written with a port, and is read so.
fn host(text: &str) -> Result<HostPattern, BadHostPattern> {
    match text {
        "*:*:80" => "*:*".parse(),
        text => text.parse(),
    }
}

/// The use of a secret, when it is one. The keys of one belong to nothing else.
fn secret(raw: &RawWant) -> Result<Option<Capability>, String> {
    let other = || Err("a request of this kind has other keys".to_owned());
    match (&raw.kind, &raw.name, &raw.host, &raw.header) {
        (RawKind::Secret, Some(name), Some(host), Some(header)) => {
            let has_others = raw.path.is_some() || raw.rights.is_some() || raw.value.is_some();
            if has_others || raw.plain_http {
                return other();
            }
            let secret = SecretUse::new(name, host, header, raw.methods.clone());
            let secret = secret.map_err(|error| error.to_string())?;
            Ok(Some(Capability::Secret(secret)))
        }
        (RawKind::Secret, ..) | (_, _, Some(_), _) | (_, _, _, Some(_)) => other(),
        _ => Ok(None),
    }
}

fn moment(written: &Spanned<Datetime>) -> Result<i64, LockProblem> {
    let text = written.get_ref().to_string();
    let moment = OffsetDateTime::parse(&text, &Rfc3339).map_err(|_| {
        let problem = format!("`{text}` is not a time such as `2026-11-20T08:00:00Z`");
        wrong(written, problem)
    })?;
    Ok(moment.unix_timestamp() * 1000)
}

fn json(written: &Spanned<String>) -> Result<serde_json::Value, LockProblem> {
    serde_json::from_str(written.get_ref())
        .map_err(|error| wrong(written, format!("this is not valid JSON: {error}")))
}

fn wrong<T>(at: &Spanned<T>, problem: String) -> LockProblem {
    LockProblem {
        span: at.span(),
        problem,
    }
}
