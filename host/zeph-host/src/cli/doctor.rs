//! `zeph-host doctor`: what this machine offers the host, and how to get what is missing. Looks, and changes nothing.
//!
//! `zeph-shell` describes the layers of the jail; this shows them together with other requirements of the host. Whether layers
//! hold is tried by `selftest`.

mod disk;
mod places;
mod registries;
mod servers;
mod users;

use serde::Serialize;
use serde_json::json;
use zeph_config::{Config, ConfigErrors, Flags, LoadedConfig};

pub(super) use self::places::{unusable, unwritable};
use super::args::Doctor;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::out;
use super::page::print_json;
use crate::run::page::Page;
use crate::run::render::{BOLD, DIM, RED, YELLOW};

/// Columns of the words for states and of the names.
const STATE_COLUMNS: usize = 10;
const NAME_COLUMNS: usize = 22;

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckState {
    /// As it should be.
    Ok,
    /// It works, with less.
    Degraded,
    /// It is not there.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct DoctorCheck {
    /// What it belongs to.
    group: &'static str,
    name: String,
    state: CheckState,
    /// Whether the host is of little use without it.
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    how_to_get: Option<String>,
}

impl DoctorCheck {
    pub(super) fn new(
        group: &'static str,
        name: &str,
        state: CheckState,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            group,
            name: name.to_owned(),
            state,
            required: false,
            version: None,
            detail: detail.into(),
            how_to_get: None,
        }
    }

    /// The host is of little use without it.
    pub(super) fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(super) fn how_to_get(mut self, how: impl Into<String>) -> Self {
        self.how_to_get = Some(how.into());
        self
    }
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &Doctor) -> Result<Exit, CliError> {
    if options.registries {
        return registries::run(context);
    }
    let mut checks = Vec::new();
    match Config::load(&context.surroundings, &context.flags) {
        Ok(loaded) => {
            checks.push(configuration(context, &loaded));
            checks.extend(of_config(context, &loaded.config));
        }
        Err(errors) => {
            checks.extend(mistakes(errors));
            if let Some((config, of)) = remaining(context) {
                let detail = format!("what follows is checked with {of}");
                checks.push(DoctorCheck::new(
                    "configuration",
                    "the rest",
                    CheckState::Degraded,
                    detail,
                ));
                checks.extend(of_config(context, &config));
            }
        }
    }
    checks.push(places::editors());
    let is_ok = !checks.iter().any(is_fatal);
    match options.json.json {
        true => print_json(&json!({ "ok": is_ok, "checks": checks })),
        false => page(&checks, out::width()).print(),
    }?;
    Ok(match is_ok {
        true => Exit::Success,
        false => Exit::Failure,
    })
}

fn is_fatal(check: &DoctorCheck) -> bool {
    check.required && check.state == CheckState::Missing
}

/// Where the configuration comes from.
fn configuration(context: &Context, loaded: &LoadedConfig) -> DoctorCheck {
    let mut files: Vec<String> = Vec::new();
    for origin in loaded.origins.iter().flat_map(|setting| &setting.origins) {
        let name = match origin {
            zeph_config::ValueOrigin::BuiltIn { .. } => continue,
            zeph_config::ValueOrigin::User { path, .. }
            | zeph_config::ValueOrigin::Project { path, .. } => path.display().to_string(),
            other => other.to_string(),
        };
        if !files.contains(&name) {
            files.push(name);
        }
    }
    let user = zeph_config::user_file(&context.surroundings, &context.flags);
    let detail = match (files.is_empty(), user) {
        (false, _) => format!("from {}", files.join(", ")),
        (true, Some(file)) => format!("built-in; your own goes to {}", file.path.display()),
        (true, None) => "built-in".to_owned(),
    };
    match loaded.warnings.as_slice() {
        [] => DoctorCheck::new("configuration", "files", CheckState::Ok, detail),
        warnings => DoctorCheck::new(
            "configuration",
            "files",
            CheckState::Degraded,
            format!("{detail}; {}", warnings.join("; ")),
        ),
    }
}

/// What can be said of a configuration. Needs no host: what would stop its start is what is to be found.
fn of_config(context: &Context, config: &Config) -> Vec<DoctorCheck> {
    let mut checks = places::store(context, config);
    checks.push(places::cache(config));
    checks.extend(places::audit(config));
    checks.extend(places::trust(config));
    checks.extend(places::plugins(config));
    checks.extend(servers::of_config(config));
    // Whatever the sandbox offers, it offers to the user that commands run as.
    let (user, config) = users::of_config(config);
    checks.extend(user);
    checks.extend(places::jail(&crate::shell::jail(&config)));
    checks
}

fn mistakes(errors: ConfigErrors) -> Vec<DoctorCheck> {
    let mistake = |problem: zeph_config::Problem| {
        let detail = problem.to_string();
        DoctorCheck::new("configuration", "mistake", CheckState::Missing, detail)
            .required()
            .how_to_get("correct it; `zeph-host config check` says when it is right")
    };
    errors.problems.into_iter().map(mistake).collect()
}

/// The most of the configuration that can be read, and what that is.
fn remaining(context: &Context) -> Option<(Config, &'static str)> {
    let mut surroundings = context.surroundings.clone();
    let without_project = Flags {
        no_project: true,
        ..context.flags.clone()
    };
    if let Ok(loaded) = Config::load(&surroundings, &without_project) {
        return Some((loaded.config, "your settings, without those of the project"));
    }
    let only_file = Flags {
        set: Vec::new(),
        roots: Vec::new(),
        ..without_project
    };
    surroundings
        .env
        .retain(|name, _| name == zeph_config::CONFIG_VARIABLE);
    if let Ok(loaded) = Config::load(&surroundings, &only_file) {
        return Some((loaded.config, "your file, without variables and flags"));
    }
    surroundings.env.clear();
    surroundings.config_home = None;
    let nothing = Flags {
        config: None,
        ..only_file
    };
    let loaded = Config::load(&surroundings, &nothing).ok()?;
    Some((loaded.config, "the built-in settings"))
}

fn page(checks: &[DoctorCheck], width: Option<usize>) -> Page {
    let mut page = Page::of_width(width);
    let mut group = "";
    for check in checks {
        if check.group != group {
            group = check.group;
            page.head(group);
        }
        let (word, style) = match check.state {
            CheckState::Ok => ("ok", BOLD),
            CheckState::Degraded => ("degraded", YELLOW),
            CheckState::Missing => ("MISSING", RED),
        };
        let version = check
            .version
            .as_ref()
            .map(|version| format!(" ({version})"));
        let text = format!(
            "{word:<STATE_COLUMNS$}{:<NAME_COLUMNS$}{}{}",
            check.name,
            check.detail,
            version.unwrap_or_default()
        );
        match check.state {
            CheckState::Ok => page.line(1, &text),
            CheckState::Degraded | CheckState::Missing => page.styled(1, style, &text),
        };
        if let Some(how) = &check.how_to_get {
            page.styled(3, DIM, how);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{CheckState, DoctorCheck, is_fatal, page};

    #[test]
    fn only_what_is_required_and_missing_is_fatal() {
        let check = |state| DoctorCheck::new("jail", "bwrap", state, "x");
        for (check, expect) in [
            (check(CheckState::Missing), false),
            (check(CheckState::Missing).required(), true),
            (check(CheckState::Degraded).required(), false),
            (check(CheckState::Ok).required(), false),
        ] {
            assert_eq!(is_fatal(&check), expect, "{check:?}");
        }
    }

    #[test]
    fn each_line_says_how_to_get_what_is_missing() {
        let checks = [
            DoctorCheck::new("store", "database", CheckState::Ok, "fine"),
            DoctorCheck::new("jail", "bwrap", CheckState::Missing, "not found\u{1b}[2J")
                .how_to_get("apt-get install bubblewrap"),
        ];
        let page = page(&checks, None);
        let text = anstream::adapter::strip_str(page.as_str()).to_string();
        assert!(text.contains("MISSING   bwrap"), "{text}");
        assert!(text.contains("apt-get install bubblewrap"), "{text}");
        assert!(
            text.contains("\\u{1b}[2J") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
