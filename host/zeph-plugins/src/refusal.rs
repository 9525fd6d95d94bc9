//! From what a guest tried in vain to what people can do about it: which right is missing, and the command that grants it.

use std::borrow::Cow;
use std::path::Path;

use zeph_config::Config;
use zeph_core::capability::{Capability, FsRights};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::{Pin, PluginId};
use zeph_core::network::{HostAccess, PrivateHost};
use zeph_core::program;
use zeph_engine::MissingGrant;
use zeph_store::GrantRecord;

use super::rights::Rights;
use super::set::VettedPlugin;

/// What a person could grant so that the call would get further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequest {
    /// To which plugin.
    pub plugin: PluginId,
    /// Exactly which.
    pub pin: Pin,
    /// What, with absolute paths.
    pub capabilities: Vec<Capability>,
}

/// Why a call got less than it wanted.
#[derive(Debug)]
pub struct Explanation {
    /// For the caller.
    pub failure: ToolFailure,
    /// What would help, when something can be granted.
    pub request: Option<GrantRequest>,
    /// Whether a grant withholds something of it.
    pub is_withheld: bool,
}

/// Explains the refusals of one call; `None` when there were none.
///
/// Shape: `program` is how the program is called here, for the command that the text names.
pub fn explain(
    good: &VettedPlugin,
    rights: &Rights,
    refused: &[MissingGrant],
    config: &Config,
    program: &str,
) -> Option<Explanation> {
    let mut refused = refused
        .iter()
        .filter(|one| !matches!(one, MissingGrant::Obeyed { .. }))
        .peekable();
    refused.peek()?;
    let plugin = good.plugin.id();
    let mut sentences = Vec::new();
    let mut missing = Vec::new();
    let mut withheld_by: Vec<i64> = Vec::new();
    for refused in refused {
        let verdict = match refused {
            MissingGrant::Directory {
                path,
                rights: right,
            } => directory(path, *right, rights, config),
            MissingGrant::Host { access, closed } => {
                let is_opened = is_opened_plain(&config.egress.private, access);
                host((access, is_opened), closed.as_deref(), rights)
            }
            MissingGrant::Request { reason } => RefusalText {
                sentence: format!("was refused a request: {reason}"),
                ..RefusalText::default()
            },
            MissingGrant::Network => RefusalText {
                sentence: "may not open sockets: plugins reach the network by `wasi:http` alone, at hosts that are granted to them".to_owned(),
                ..RefusalText::default()
            },
            MissingGrant::Program { line } => program_line(line, rights),
            MissingGrant::Service(capability) => service(capability, rights),
            // Told apart from them: no grant would help.
            MissingGrant::Obeyed { .. } => continue,
        };
        sentences.push(verdict.sentence);
        missing.extend(verdict.missing);
        withheld_by.extend(verdict.withheld_by);
    }
    sentences.dedup();
    withheld_by.dedup();
    let is_withheld = !withheld_by.is_empty();
    for id in withheld_by {
        sentences.push(format!(
            "the operator can end that with `{program} plugin revoke {plugin} --id {id}`"
        ));
    }
    if !missing.is_empty() {
        let command = grant_command(program, plugin, &missing);
        sentences.push(format!("the operator can allow it with `{command}`"));
    }
    let message = format!("plugin `{plugin}` {}", sentences.join("; "));
    let failure = ToolFailure::new(ErrorCategory::PolicyBlocked, ErrorPhase::Execution, message);
    let request = (!missing.is_empty()).then(|| GrantRequest {
        plugin: plugin.clone(),
        pin: good.pin,
        capabilities: missing,
    });
    Some(Explanation {
        failure,
        request,
        is_withheld,
    })
}

/// What programs obey without asking and a call tried to change, which the guard of files alone saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObeyedRefusal {
    /// The real paths of the objects.
    pub paths: Vec<String>,
    /// Why the first of them was refused, in a sentence without advice.
    pub reason: String,
    /// Rules for `--allow` that name them.
    pub rules: Vec<String>,
}

impl ObeyedRefusal {
    /// What was refused of such objects, if anything. Relative rules of `tool` start in `directory`.
    pub fn of(tool: &str, refused: &[MissingGrant], directory: &Path) -> Option<Self> {
        let refused = refused.iter().filter_map(|one| match one {
            MissingGrant::Obeyed { path, name } => Some((path, name)),
            _ => None,
        });
        let refused: Vec<_> = refused.collect();
        let below = |path: &str| {
            let path = Path::new(path);
            let below = path.strip_prefix(directory).unwrap_or(path);
            one_line(&below.to_string_lossy(), 200)
        };
        let (first, name) = refused.first()?;
        let rules = refused
            .iter()
            .map(|(path, _)| format!("{tool}:{}", below(path)));
        Some(Self {
            reason: format!(
                "`{}` is what programs obey without asking (`{name}`), and no rule names it",
                below(first)
            ),
            rules: rules.collect(),
            paths: refused.iter().map(|(path, _)| (*path).clone()).collect(),
        })
    }

    /// The failure of a call that it stopped.
    pub fn failure(&self) -> ToolFailure {
        let rules = self
            .rules
            .iter()
            .map(|rule| format!("--allow {}", quoted(rule)));
        let flags = rules.collect::<Vec<_>>().join(" ");
        let message = format!("{}; the operator can allow it with `{flags}`", self.reason);
        ToolFailure::new(
            ErrorCategory::ConfirmationRequired,
            ErrorPhase::Execution,
            message,
        )
    }
}

/// One refusal in words, and what would lift it.
#[derive(Default)]
struct RefusalText {
    sentence: String,
    missing: Option<Capability>,
    /// The grant that withholds it.
    withheld_by: Option<i64>,
}

/// What says that a grant withholds something of `capability`, when one does.
fn withheld(what: &str, capability: &Capability, rights: &Rights) -> Option<RefusalText> {
    let mut withheld = rights.withheld.iter();
    let grant = withheld.find(|grant| grant.capability.intersect(capability).is_some())?;
    Some(RefusalText {
        sentence: format!("may not {what}: `{}` is withheld", grant.capability),
        missing: None,
        withheld_by: Some(grant.id),
    })
}

fn directory(path: &str, refused: FsRights, rights: &Rights, config: &Config) -> RefusalText {
    let cannot = |why: &str| RefusalText {
        sentence: format!("may not {} in `{path}`: {why}", verbs(refused)),
        ..RefusalText::default()
    };
    let in_manifest = rights
        .wanted
        .iter()
        .fold(FsRights::default(), |sum, want| match want {
            Capability::Directory {
                path: wanted,
                rights,
            } if Path::new(path).starts_with(wanted) => sum.union(*rights),
            _ => sum,
        });
    let grantable = refused.intersect(in_manifest);
    if grantable == FsRights::default() {
        return cannot("its manifest does not ask for it, so it cannot be granted");
    }
    let is_granted = rights.granted.iter().any(|grant| match &grant.capability {
        Capability::Directory {
            path: granted,
            rights,
        } => Path::new(path).starts_with(granted) && grantable.intersect(*rights) == grantable,
        _ => false,
    });
    let wanted = Capability::Directory {
        path: path.to_owned(),
        rights: grantable,
    };
    let is_held = is_granted && (grantable.read || !rights.programs.only_reads);
    let is_inside = |grant: &GrantRecord| matches!(&grant.capability, Capability::Directory { path: denied, .. } if Path::new(path).starts_with(denied));
    if is_held || rights.withheld.iter().any(is_inside) {
        let what = format!("{} in `{path}`", verbs(refused));
        if let Some(text) = withheld(&what, &wanted, rights) {
            return text;
        }
    }
    let mut roots = config.file.roots.iter();
    let in_policy = roots.find(|root| Path::new(path).starts_with(&root.path));
    match in_policy {
        None => {
            cannot("it lies outside the allowed directories (`tools.file.allowed_paths`, `--root`)")
        }
        Some(root) if grantable.without(root.rights) != FsRights::default() => {
            cannot("`tools.file.rights` does not allow it to any tool")
        }
        Some(_) if is_granted => cannot("this tool promises to only read"),
        Some(_) => RefusalText {
            sentence: format!(
                "may not {} in `{path}`: it was not granted",
                verbs(grantable)
            ),
            missing: Some(wanted),
            withheld_by: None,
        },
    }
}

/// A program, or its arguments: what the manifest asks for can be granted.
fn program_line(line: &[String], rights: &Rights) -> RefusalText {
    let [program, arguments @ ..] = line else {
        return RefusalText {
            sentence: "may not run a program without a name".to_owned(),
            ..RefusalText::default()
        };
    };
    let shown = quoted_words(line.iter().map(|word| word.as_str().into()));
    let shown = one_line(&shown, 200);
    let allows = |capability: &&Capability| matches!(capability, Capability::Program { name } if program::allows(name, program, arguments));
    let exact = Capability::Program {
        name: line.join(" "),
    };
    let exact = Some(&exact).filter(|_| rights.wants_anything && exact.problem().is_none());
    let wanted = rights.wanted.iter().chain(exact).find(allows);
    let denied = wanted.and_then(|wanted| withheld(&format!("run `{shown}`"), wanted, rights));
    if let Some(text) = denied {
        return text;
    }
    RefusalText {
        sentence: match wanted {
            Some(_) => format!("may not run `{shown}`: it was not granted"),
            None => format!(
                "may not run `{shown}`: its manifest does not ask for these arguments, so they cannot be granted"
            ),
        },
        missing: wanted.cloned(),
        withheld_by: None,
    }
}

/// An embedder or a tool of a server that was not granted.
fn service(capability: &Capability, rights: &Rights) -> RefusalText {
    let shown = one_line(&capability.to_string(), 200);
    let wants = |want: &Capability| want.intersect(capability).is_some();
    let is_wanted = rights.wants_anything || rights.wanted.iter().any(wants);
    let can_be_granted = is_wanted && capability.problem().is_none();
    if let Some(text) = withheld(&format!("use `{shown}`"), capability, rights) {
        return text;
    }
    RefusalText {
        sentence: match can_be_granted {
            true => format!("may not use `{shown}`: it was not granted"),
            false => format!(
                "may not use `{shown}`: its manifest does not ask for it, so it cannot be granted"
            ),
        },
        missing: can_be_granted.then(|| capability.clone()),
        withheld_by: None,
    }
}

/// Whether the operator opened a private host for plain HTTP, which then needs no more than a grant for `https`.
fn is_opened_plain(private: &[PrivateHost], access: &HostAccess) -> bool {
    let is_it = |one: &PrivateHost| {
        Some(&one.host) == access.name.host() && one.ports.contains(&access.name.port())
    };
    access.plain_http && private.iter().any(|one| one.plain_http && is_it(one))
}

/// A request to a host, or by a method there, that no grant of the call covers. With it whether its host is opened for plain HTTP.
fn host(
    (access, is_opened): (&HostAccess, bool),
    closed: Option<&str>,
    rights: &Rights,
) -> RefusalText {
    let covered_by = |capability: &Capability, access: &HostAccess| matches!(capability, Capability::Host(held) if held.covers(access));
    let wants = |access: &HostAccess| {
        let mut wanted = rights.wanted.iter();
        rights.wants_anything || wanted.any(|capability| covered_by(capability, access))
    };
    let over_tls = HostAccess {
        plain_http: false,
        ..access.clone()
    };
    let speaks_tls_only = access.plain_http && !wants(access) && wants(&over_tls);
    let access = match speaks_tls_only && is_opened {
        true => &over_tls,
        false => access,
    };
    let mut granted = rights.granted.iter();
    let is_granted = granted.any(|grant| covered_by(&grant.capability, access));
    let is_wanted = wants(access);
    let why = match (is_wanted, is_granted) {
        (true, false) => "it was not granted",
        (true, true) => "this tool promises to only read",
        (false, _) if speaks_tls_only => {
            "it reaches hosts by `https://` alone, but for private ones that the operator opened for plain HTTP (`plain_http = true` in \
             [[tools.egress.private]])"
        }
        (false, _) => "its manifest does not ask for it, so it cannot be granted",
    };
    let can_be_granted = is_wanted && !is_granted;
    if can_be_granted {
        let capability = Capability::Host(access.clone());
        if let Some(text) = withheld(&format!("reach `{access}`"), &capability, rights) {
            return text;
        }
    }
    let besides = closed.map(|closed| format!(", and {closed}"));
    RefusalText {
        sentence: format!(
            "may not reach `{access}`: {why}{}",
            besides.unwrap_or_default()
        ),
        missing: can_be_granted.then(|| Capability::Host(access.clone())),
        withheld_by: None,
    }
}

fn verbs(rights: FsRights) -> String {
    rights.to_string().replace('+', " and ")
}

/// The command line that grants `capabilities`, ready for a shell.
pub fn grant_command(program: &str, plugin: &PluginId, capabilities: &[Capability]) -> String {
    let mut command = format!("{program} plugin grant {plugin}");
    for capability in capabilities {
        let (flag, value) = match capability {
            Capability::Directory { path, rights } => ("--dir", format!("{path}:{rights}")),
            Capability::Host(access) => ("--host", access.to_string()),
            Capability::Program { name } => ("--program", name.clone()),
            Capability::Variable { name } => ("--variable", name.clone()),
            Capability::Limit { name, value } => ("--limit", format!("{name}={value}")),
            Capability::Secret(secret) => ("--secret", secret.to_string()),
            Capability::Embedder { name } => ("--embedder", name.clone()),
            Capability::Tool { name } => ("--tool", name.clone()),
        };
        command.push_str(&format!(" {flag} {}", quoted(&value)));
    }
    command
}

/// `word` for a POSIX shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:=@,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words as one line for a POSIX shell.
pub fn quoted_words<'w>(words: impl IntoIterator<Item = Cow<'w, str>>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(&word)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use zeph_core::capability::Capability;
    use zeph_core::id::PluginId;

    use super::{grant_command, quoted};

    #[test]
    fn words_for_a_shell() {
        for (word, expect) in [
            ("/work/a-b_c.d:read+write", "/work/a-b_c.d:read+write"),
            ("memory_bytes=1", "memory_bytes=1"),
            ("", "''"),
            ("*.example.com", "'*.example.com'"),
            ("/my files:read", "'/my files:read'"),
            ("it's", r"'it'\''s'"),
            ("$(id)", "'$(id)'"),
            ("a\nb", "'a\nb'"),
        ] {
            assert_eq!(quoted(word), expect);
        }
    }

    #[test]
    fn the_command_says_all_of_it() {
        let capabilities = [
            Capability::Directory {
                path: "/w".to_owned(),
                rights: "read+create".parse().unwrap(),
            },
            Capability::Host("a.b:GET".parse().unwrap()),
        ];
        assert_eq!(
            grant_command("zeph-host", &PluginId("x".to_owned()), &capabilities),
            "zeph-host plugin grant x --dir /w:read+create --host a.b:GET"
        );
    }
}
