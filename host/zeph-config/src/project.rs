//! How a value of a project file combines with what the operator said: it can only narrow.
//!
//! A project file comes with a repository, so its author wrote it, and it may be hostile. Each key has
//! one rule, declared with its type (`raw`, `x-project`); a key without a rule is refused. Environment and flags are the operator's and are not bound.

mod paths;

use toml::Value;
use zeph_core::failure::one_line;

use self::paths::{add_paths, hide, within, within_paths};
use super::merge::MergedValue;
use super::paths::PathBase;

/// What a project file may do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Turn off what is on.
    TurnOff,
    /// Choose what is stricter.
    Tighten,
    /// Lower a number.
    Lower,
    /// Lower a number whose 0 means unlimited.
    LowerFromUnlimited,
    /// Name directories within the granted ones.
    Within,
    /// Name files and directories within those a jail is given.
    WithinPaths,
    /// Keep some of the items.
    Keep,
    /// Add items that forbid more.
    Add,
    /// Add paths that are kept from commands.
    AddPaths,
    /// Add rules that deny.
    AddDenying,
    /// Add patterns that hide more.
    Hide,
    /// Turn off an MCP server of the operator, or some of its tools.
    NarrowServer,
    /// Nothing, for the reason given.
    Never(&'static str),
}

/// Why a project file may not set a key, by the word that stands behind `never: ` where the key is declared.
const REASONS: [(&str, &str); 11] = [
    (
        "egress",
        "the operator decides what the network is, and how it is reached",
    ),
    ("filters", "the operator decides what a model is shown"),
    ("hooks", "hooks run without approval"),
    ("jail", "the sandbox protects the machine from the project"),
    ("machine", "it is a setting of the machine"),
    (
        "models",
        "the operator decides which models are used, where they are and what they are told",
    ),
    (
        "plugins",
        "the operator decides which plugins are loaded, how they are set and what they hold",
    ),
    ("record", "the audit log must not depend on the project"),
    (
        "rules",
        "the operator decides which rules apply; a project can add rules that deny",
    ),
    (
        "serve",
        "the operator decides what clients are served, and how",
    ),
    (
        "snapshot",
        "snapshots use disk space and undo the operator's work",
    ),
];

/// What becomes of a key that declares no rule.
const UNRULED: Rule = Rule::Never("no rule says that it narrows");

impl Rule {
    /// The rule that a key declares as `x-project`.
    pub(crate) fn declared(word: &str) -> Self {
        match word {
            "turn-off" => Self::TurnOff,
            "tighten" => Self::Tighten,
            "lower" => Self::Lower,
            "lower-from-unlimited" => Self::LowerFromUnlimited,
            "within" => Self::Within,
            "within-paths" => Self::WithinPaths,
            "keep" => Self::Keep,
            "add" => Self::Add,
            "add-paths" => Self::AddPaths,
            "add-denying" => Self::AddDenying,
            "hide" => Self::Hide,
            "narrow-server" => Self::NarrowServer,
            other => never(other),
        }
    }

    /// What a project file may do, as the guide says it.
    #[cfg(test)]
    pub(crate) fn told(self) -> String {
        match self {
            Self::TurnOff => "disable it".to_owned(),
            Self::Tighten => "choose what is stricter".to_owned(),
            Self::Lower => "lower it".to_owned(),
            Self::LowerFromUnlimited => "lower it (0 means unlimited)".to_owned(),
            Self::Within => {
                "name directories within the granted ones, after symlinks and `..` are resolved"
                    .to_owned()
            }
            Self::WithinPaths => "name paths within the granted ones".to_owned(),
            Self::Keep => "remove items".to_owned(),
            Self::Add | Self::Hide => "add patterns".to_owned(),
            Self::AddPaths => "add paths".to_owned(),
            Self::AddDenying => {
                "add deny rules; they apply even if the section is disabled".to_owned()
            }
            Self::NarrowServer => {
                "set `disabled = true`, and add to `denied_tools`, for servers of the operator"
                    .to_owned()
            }
            Self::Never(reason) => format!("nothing: {reason}"),
        }
    }

    /// Whether the verdict depends on what the lower layers say.
    pub(crate) fn has_bound(self) -> bool {
        !matches!(self, Self::Never(_)) && !self.adds()
    }

    /// Whether the value of a project comes after the lower one instead of in its place.
    pub(crate) fn adds(self) -> bool {
        matches!(
            self,
            Self::Hide | Self::Add | Self::AddPaths | Self::AddDenying
        )
    }

    /// What a project is told that may not set a key at all.
    pub(crate) fn refusal(self) -> String {
        match self {
            Self::Never(reason) => format!("a project file may not set this: {reason}"),
            Self::NarrowServer => {
                "a project file may not add an MCP server; it can turn off those of the operator"
                    .to_owned()
            }
            _ => String::new(),
        }
    }

    /// The value after the project had its say.
    ///
    /// Shape: `operator` is what relative paths of lower layers stand for, `project` what those of the project file do;
    /// paths and patterns of the project come back absolute.
    /// Errors: in words, naming the bound; the caller adds where the operator can move it.
    pub(crate) fn combine(
        self,
        lower: &MergedValue,
        asked: &Value,
        operator: PathBase<'_>,
        project: PathBase<'_>,
    ) -> Result<Value, String> {
        match self {
            Self::TurnOff => turn_off(lower, asked),
            Self::Tighten => tighten(lower, asked),
            Self::Lower => lower_number(lower, asked, f64::from),
            Self::LowerFromUnlimited => lower_number(lower, asked, |value| {
                if value == 0.0 { f64::INFINITY } else { value }
            }),
            Self::Within => within(lower, asked, operator, project),
            Self::WithinPaths => within_paths(lower, asked, operator, project),
            Self::Keep => keep(lower, asked),
            Self::Add => Ok(add(lower, texts(asked).into_iter().map(str::to_owned))),
            Self::AddPaths => add_paths(lower, asked, project),
            Self::AddDenying => add_denying(lower, asked),
            Self::Hide => hide(lower, asked, project),
            Self::NarrowServer => narrow_server(lower, asked),
            Self::Never(_) => Err(self.refusal()),
        }
    }
}

/// The rule of a key that declares `never: ` and a reason, or what no rule is called.
fn never(declared: &str) -> Rule {
    let word = declared.strip_prefix("never: ");
    let known = REASONS.iter().find(|(known, _)| Some(*known) == word);
    known.map_or(UNRULED, |(_, reason)| Rule::Never(reason))
}

fn turn_off(lower: &MergedValue, asked: &Value) -> Result<Value, String> {
    if asked.as_bool() == Some(true) && lower.value.as_bool() == Some(false) {
        return Err(format!(
            "a project file may only turn this off, and it is off already ({})",
            lower.said()
        ));
    }
    Ok(asked.clone())
}

/// What a key can be that a project may tighten, the strictest last.
const STRICTNESS: [&str; 3] = ["allow", "ask", "refuse"];

fn tighten(lower: &MergedValue, asked: &Value) -> Result<Value, String> {
    let strictness = |value: &Value| {
        let word = value.as_str();
        STRICTNESS.iter().position(|known| Some(*known) == word)
    };
    match (strictness(&lower.value), strictness(asked)) {
        (Some(bound), Some(wanted)) if wanted >= bound => Ok(asked.clone()),
        _ => Err(format!(
            "a project file may only choose what is stricter: {} is not stricter than {} ({})",
            asked,
            lower.value,
            lower.said()
        )),
    }
}

fn lower_number(lower: &MergedValue, asked: &Value, size: fn(f64) -> f64) -> Result<Value, String> {
    let (Some(bound), Some(value)) = (number(&lower.value), number(asked)) else {
        return Err("found something that is not a number".to_owned());
    };
    if size(value) > size(bound) {
        let said = lower.said();
        return Err(format!(
            "a project file may only lower this: found {value}, the bound is {bound} ({said})"
        ));
    }
    Ok(asked.clone())
}

/// The server of the operator, turned off or with fewer tools.
fn narrow_server(lower: &MergedValue, asked: &Value) -> Result<Value, String> {
    let (Some(server), Some(wanted)) = (lower.value.as_table(), asked.as_table()) else {
        return Err("found something that is not a table".to_owned());
    };
    let mut server = server.clone();
    for (field, value) in wanted {
        let narrowed = match (field.as_str(), value) {
            ("disabled", Value::Boolean(true)) => value.clone(),
            ("denied_tools", Value::Array(tools)) => {
                let known = server.get(field).and_then(Value::as_array);
                let known = known.cloned().unwrap_or_default();
                Value::Array([known, tools.clone()].concat())
            }
            _ => {
                return Err(format!(
                    "a project file may only set `disabled = true` and add to `denied_tools` here, not set `{field}` ({})",
                    lower.said()
                ));
            }
        };
        server.insert(field.clone(), narrowed);
    }
    Ok(Value::Table(server))
}

/// A number as keys have them: none needs more digits than this holds.
#[expect(
    clippy::cast_precision_loss,
    reason = "bounds of keys are far below 2^53"
)]
fn number(value: &Value) -> Option<f64> {
    let whole = value.as_integer().map(|value| value as f64);
    whole.or_else(|| value.as_float())
}

fn keep(lower: &MergedValue, asked: &Value) -> Result<Value, String> {
    let bound = texts(&lower.value);
    match texts(asked).iter().find(|item| !bound.contains(item)) {
        None => Ok(asked.clone()),
        Some(added) => Err(format!(
            "a project file may only leave items out: \"{}\" is not among [{}] ({})",
            one_line(added, 200),
            one_line(&bound.join(", "), 400),
            lower.said()
        )),
    }
}

/// What stands in both lists stays there twice: what a later layer repeats it says for itself.
fn add(lower: &MergedValue, asked: impl Iterator<Item = String>) -> Value {
    let lower = texts(&lower.value).into_iter().map(str::to_owned);
    Value::Array(lower.chain(asked).map(Value::String).collect())
}

/// Rules of a project come before those of lower layers; the compiler keeps them apart by where they stand.
fn add_denying(lower: &MergedValue, asked: &Value) -> Result<Value, String> {
    if let Some(idx) = not_denying(Rule::AddDenying, asked) {
        return Err(format!(
            "a project file may only add rules that deny: [{idx}] does not"
        ));
    }
    let rules = |value: &Value| value.as_array().cloned().unwrap_or_default();
    Ok(Value::Array([rules(asked), rules(&lower.value)].concat()))
}

/// The first of a project's rules that does not deny, where that is what counts.
pub(crate) fn not_denying(rule: Rule, asked: &Value) -> Option<usize> {
    let denies = |rule: &Value| {
        let said = rule.get("effect").or_else(|| rule.get("action"));
        let mode = rule.get("mode").and_then(Value::as_str);
        // One that asks would come before rules of the operator that deny.
        said.and_then(Value::as_str) == Some("deny") && mode.is_none_or(|mode| mode == "deny")
    };
    let rules = asked.as_array().filter(|_| rule == Rule::AddDenying)?;
    rules.iter().position(|rule| !denies(rule))
}

/// The items of a list of strings.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
