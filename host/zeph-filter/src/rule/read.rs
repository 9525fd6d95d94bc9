//! Rule files: TOML, one bad rule never costs the others.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use zeph_strategies::{PATTERN_CHARS_MAX, create, find, line_ends};

use super::{Action, FOREIGN, Matcher, Origin, Pattern, Rule};
use crate::command::FORMAT_FLAGS;
use crate::load::Warning;

/// Largest rule file, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Longest name of a rule, in bytes: it appears in reports of one line.
const NAME_BYTES_MAX: usize = 64;

/// What a compiled expression may come to, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A rule file that was read.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) rules: Vec<Rule>,
    /// Names of rules that are switched off.
    pub(crate) disabled: Vec<String>,
    /// Those of them that are meant for rules elsewhere: nothing but the name is said.
    pub(crate) disabled_elsewhere: Vec<String>,
    pub(crate) cases: Vec<RawCase>,
    pub(crate) warnings: Vec<Warning>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: String,
    #[serde(default = "enabled")]
    enabled: bool,
    #[serde(rename = "match")]
    matches: Option<RawMatch>,
    strategy: Option<toml::Table>,
    unless_flags: Option<Vec<String>>,
}

fn enabled() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMatch {
    exact: Option<String>,
    prefix: Option<String>,
    regex: Option<String>,
}

/// One `[[tests]]` entry: an output, and what must remain of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCase {
    pub(crate) name: String,
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) exit_code: i32,
    pub(crate) input: Option<String>,
    pub(crate) input_file: Option<String>,
    pub(crate) expect: Option<String>,
    #[serde(default)]
    pub(crate) contains: Vec<String>,
    #[serde(default)]
    pub(crate) lacks: Vec<String>,
    pub(crate) saved_min: Option<f64>,
}

/// Reads a rule file.
///
/// Errors: in the result's warnings; what is wrong is omitted, the rest is used.
/// Limits: 1 MiB, 512 characters per expression.
pub(crate) fn read(name: &str, text: &str, origin: &Origin) -> File {
    let mut file = File::default();
    if text.len() > FILE_BYTES_MAX {
        let reason = format!(
            "it has {} bytes, {FILE_BYTES_MAX} are allowed; the built-in rules are used",
            text.len()
        );
        file.warnings.push(Warning::of_file(name, reason));
        return file;
    }
    let table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => {
            let reason = format!(
                "it is not TOML: {}; the built-in rules are used",
                place(text, &error)
            );
            file.warnings.push(Warning::of_file(name, reason));
            return file;
        }
    };
    for (key, value) in table {
        match (key.as_str(), value) {
            ("rules", toml::Value::Array(rules)) => read_rules(name, rules, origin, &mut file),
            ("tests", toml::Value::Array(cases)) => read_cases(name, cases, &mut file),
            ("rules" | "tests", _) => file.warnings.push(Warning::of_file(
                name,
                format!("`{key}` is written `[[{key}]]`"),
            )),
            _ => file.warnings.push(Warning::of_file(
                name,
                format!("there is no key `{key}`; known are `rules` and `tests`"),
            )),
        }
    }
    file
}

/// The rules of a file that came with the program. Its tests, most of the file, are not looked at.
pub(crate) fn read_builtin(name: &str, text: &str) -> Vec<Rule> {
    let tests = line_ends(text.as_bytes()).find(|end| text[end + 1..].starts_with("[[tests]]"));
    let rules = &text[..tests.unwrap_or(text.len())];
    read(name, rules, &Origin::Builtin).rules
}

fn place(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1;
    format!("line {line}: {}", error.message())
}

fn read_rules(file_name: &str, rules: Vec<toml::Value>, origin: &Origin, file: &mut File) {
    for (rule_idx, value) in rules.into_iter().enumerate() {
        let name = value.get("name").and_then(toml::Value::as_str);
        let name = name.map_or_else(|| format!("number {}", rule_idx + 1), str::to_owned);
        let is_known =
            file.rules.iter().any(|rule| rule.name == name) || file.disabled.contains(&name);
        let is_bare = value.get("match").is_none() && value.get("strategy").is_none();
        let rule = if is_known {
            Err("there is a rule of this name before it".to_owned())
        } else {
            value
                .try_into()
                .map_err(|error: toml::de::Error| error.message().trim().to_owned())
                .and_then(|raw| rule(raw, origin))
        };
        match rule {
            Ok(Some(rule)) => file.rules.push(rule),
            Ok(None) => {
                file.disabled.push(name.clone());
                file.disabled_elsewhere.extend(is_bare.then_some(name));
            }
            Err(reason) => file.warnings.push(Warning {
                file: file_name.to_owned(),
                rule: Some(name),
                reason,
            }),
        }
    }
}

fn read_cases(file_name: &str, cases: Vec<toml::Value>, file: &mut File) {
    for value in cases {
        match value.try_into() {
            Ok(case) => file.cases.push(case),
            Err(error) => {
                let reason = format!("a test is not usable: {}", error.message().trim());
                file.warnings.push(Warning::of_file(file_name, reason));
            }
        }
    }
}

/// `None` for a rule that is switched off: it needs neither a match nor a strategy.
fn rule(raw: RawRule, origin: &Origin) -> Result<Option<Rule>, String> {
    let RawRule {
        name,
        enabled,
        matches,
        strategy,
        unless_flags,
    } = raw;
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} printable bytes"));
    }
    if !enabled {
        return Ok(None);
    }
    let (matcher, wanted) = matcher(matches.ok_or("`match` is missing")?, origin)?;
    let action = action(strategy.ok_or("`strategy` is missing")?, origin)?;
    let is_wanted = |flag: &&&str| wanted.contains(**flag);
    let standard = || {
        FORMAT_FLAGS
            .iter()
            .filter(|flag| !is_wanted(flag))
            .map(|flag| (*flag).to_owned())
            .collect()
    };
    let unless_flags = unless_flags.unwrap_or_else(standard);
    Ok(Some(Rule {
        name,
        origin: origin.clone(),
        matcher,
        unless_flags,
        action,
    }))
}

/// The matcher, and its text.
fn matcher(raw: RawMatch, origin: &Origin) -> Result<(Matcher, String), String> {
    let RawMatch {
        exact,
        prefix,
        regex,
    } = raw;
    let mut texts = [&exact, &prefix, &regex].into_iter().flatten().cloned();
    let (Some(text), None) = (texts.next(), texts.next()) else {
        return Err("`match` needs exactly one of `exact`, `prefix` and `regex`".to_owned());
    };
    let n_chars = text.chars().count();
    if text.is_empty() || n_chars > PATTERN_CHARS_MAX {
        return Err(format!(
            "what `match` says has {n_chars} characters, 1 to {PATTERN_CHARS_MAX} are allowed"
        ));
    }
    drop(texts);
    let matcher = match (exact, prefix) {
        (Some(exact), _) => Matcher::Exact(exact),
        (None, Some(prefix)) => Matcher::Prefix(prefix),
        (None, None) => Matcher::Regex(pattern(&text, origin)?),
    };
    Ok((matcher, text))
}

fn pattern(text: &str, origin: &Origin) -> Result<Pattern, String> {
    let regex = match origin {
        Origin::Builtin => None,
        Origin::User(_) => Some(compile(text)?),
    };
    Ok(Pattern::new(text, regex))
}

fn compile(text: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(text)
        .size_limit(COMPILED_BYTES_MAX)
        .build();
    regex.map_err(|error| {
        let message = error.to_string();
        let last = message.lines().next_back().unwrap_or_default();
        format!(
            "`match.regex` does not compile: {}",
            last.trim_start_matches("error: ")
        )
    })
}

fn action(mut table: toml::Table, origin: &Origin) -> Result<Action, String> {
    let Some(toml::Value::String(kind)) = table.remove("type") else {
        return Err("`strategy.type` is missing".to_owned());
    };
    let options = serde_json::to_string(&table)
        .map_err(|error| format!("`strategy` cannot be told as JSON: {error}"))?;
    if let Some(name) = kind.strip_prefix(FOREIGN) {
        if name.is_empty() {
            return Err(format!("`{FOREIGN}` is followed by the name of a strategy"));
        }
        return Ok(Action::Foreign {
            name: name.to_owned(),
            options,
        });
    }
    let Some(definition) = find(&kind) else {
        let known: Vec<_> = zeph_strategies::STRATEGIES
            .iter()
            .map(|definition| definition.name)
            .collect();
        return Err(format!(
            "there is no strategy `{kind}`; there are {}, and `{FOREIGN}NAME`",
            known.join(", ")
        ));
    };
    // Built-in rules are known to be right: their expressions are compiled when they are first needed.
    if *origin == Origin::Builtin {
        return Ok(Action::Native {
            definition,
            options,
            made: OnceLock::new(),
        });
    }
    let strategy = create(&kind, &options).map_err(|error| format!("`strategy`: {error}"))?;
    Ok(Action::Native {
        definition,
        options,
        made: OnceLock::from(Some(strategy)),
    })
}
