//! `zeph-host filters`: the rules that shorten outputs, and the tests in rule files.

mod why;

use std::fs;
use std::path::{Path, PathBuf};
use zeph_core::text::counted;

use serde_json::{Value, json};
use zeph_config::{Config, RuleFile};
use zeph_filter::{BUILTIN, CaseInputs, CaseOutcome, Filters, Foreign, Origin, Rule, Warning};
use zeph_shell::analysis::analyse;

use super::args::{FiltersArgs, FiltersCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::filter::ready::strategies;
use super::out;
use super::page::print_json;
use crate::filtering::Filtering;
use crate::run::page::Page;
use crate::run::render::{BOLD, RED};
use crate::run::table;

/// Runs the command.
pub(super) fn run(context: &Context, options: FiltersArgs) -> Result<Exit, CliError> {
    match options.command {
        None => list(&loaded(context)?, options.json.json),
        Some(FiltersCommand::List { json }) => list(&loaded(context)?, json.json),
        Some(FiltersCommand::Show { name, json }) => show(&loaded(context)?, &name, json.json),
        Some(FiltersCommand::Test { file, json }) => test(context, &file, json.json),
        Some(FiltersCommand::Verify { json }) => verify(context, json.json),
        Some(FiltersCommand::Why { command, json }) => why::run(context, &command, json.json),
    }
}

fn loaded(context: &Context) -> Result<Filtering, CliError> {
    let (filtering, unused) = Filtering::new(&context.config()?);
    context.notes(&unused);
    Ok(filtering)
}

fn list(filtering: &Filtering, as_json: bool) -> Result<Exit, CliError> {
    let rules = filtering.filters().rules();
    if as_json {
        print_json(&rules.into_iter().map(rule_json).collect())?;
        return Ok(Exit::Success);
    }
    let rows: Vec<[String; 4]> = rules
        .iter()
        .map(|rule| {
            [
                rule.name.clone(),
                rule.strategy(),
                origin(rule).to_owned(),
                rule.matches(),
            ]
        })
        .collect();
    let head = ["NAME", "STRATEGY", "FROM", "MATCHES"];
    out::styled(&table::render(head, &rows, out::width()))?;
    let disabled = filtering.filters().disabled();
    if !disabled.is_empty() {
        out::remark(&format!("switched off: {}", disabled.join(", ")));
    }
    Ok(Exit::Success)
}

fn show(filtering: &Filtering, name: &str, as_json: bool) -> Result<Exit, CliError> {
    let rules = filtering.filters().rules();
    let Some(rule) = rules.into_iter().find(|rule| rule.name == name) else {
        let is_off = filtering.filters().disabled().iter().any(|off| off == name);
        let problem = match is_off {
            true => format!("the rule `{name}` is switched off"),
            false => format!("there is no rule `{name}`"),
        };
        return Err(CliError::user(problem).hint("`zeph-host filters` lists them"));
    };
    if as_json {
        print_json(&rule_json(rule))?;
        return Ok(Exit::Success);
    }
    let mut page = Page::new();
    page.name(0, &rule.name, "")
        .field("matches", Some(&rule.matches()))
        .field("strategy", Some(&rule.strategy()))
        .field("options", Some(rule.options()))
        .field("from", Some(origin(rule)));
    page.print()?;
    Ok(Exit::Success)
}

fn origin(rule: &Rule) -> &str {
    match &rule.origin {
        Origin::Builtin => "built-in",
        Origin::User(file) => file,
    }
}

fn rule_json(rule: &Rule) -> Value {
    let options: Value = serde_json::from_str(rule.options()).unwrap_or_default();
    json!({
        "name": rule.name,
        "strategy": rule.strategy(),
        "matches": rule.matches(),
        "from": origin(rule),
        "options": options,
    })
}

/// The tests in a file, with its rules over the built-in ones.
fn test(context: &Context, file: &Path, as_json: bool) -> Result<Exit, CliError> {
    let text = fs::read_to_string(file).map_err(|error| {
        CliError::user(format!("`{}` cannot be read", file.display())).because(error)
    })?;
    let config = context.config()?;
    let file = NamedFile {
        name: file.display().to_string(),
        text,
        path: file.to_owned(),
    };
    report(&tested(context, &config, file)?, as_json)
}

/// The file in use. What is wrong with it fails here; elsewhere it is only omitted.
fn verify(context: &Context, as_json: bool) -> Result<Exit, CliError> {
    let config = context.config()?;
    let (_, unused) = Filtering::new(&config);
    let file = config.filters.rule_file.as_ref();
    let text = file.map(RuleFile::read);
    let mut tested = match (file, text) {
        (Some(file), Some(Ok(Some(text)))) => {
            let file = NamedFile {
                name: file.path.display().to_string(),
                text,
                path: file.path.clone(),
            };
            tested(context, &config, file)?
        }
        (Some(file), Some(Err(_))) => Tested {
            file: Some(file.path.display().to_string()),
            ..Tested::default()
        },
        _ => Tested::default(),
    };
    for problem in unused {
        if !tested.problems.contains(&problem) {
            tested.problems.push(problem);
        }
    }
    report(&tested, as_json)
}

/// A rule file that was read.
struct NamedFile {
    name: String,
    text: String,
    path: PathBuf,
}

/// How the tests of a file went.
#[derive(Debug, Default)]
struct Tested {
    file: Option<String>,
    n_rules: usize,
    outcomes: Vec<CaseOutcome>,
    problems: Vec<String>,
}

impl Tested {
    fn is_ok(&self) -> bool {
        let is_good = |outcome: &CaseOutcome| outcome.problems.is_empty();
        self.problems.is_empty() && self.outcomes.iter().all(is_good)
    }
}

/// Runs the tests of a file, on a thread of their own: strategies may block.
fn tested(context: &Context, config: &Config, file: NamedFile) -> Result<Tested, CliError> {
    let strategies = strategies(context, config);
    context::block_on(async {
        let work = move || file.tested(&*strategies);
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| CliError::internal("the tests cannot be run").because(error))
    })
}

impl NamedFile {
    fn tested(&self, foreign: &dyn Foreign) -> Tested {
        let file = (self.name.as_str(), self.text.as_str());
        let (filters, mut warnings) = Filters::load(BUILTIN, Some(file));
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let inputs = CaseInputs {
            analyse: &analyse,
            read: &|path| fs::read(folder.join(path)).ok(),
            foreign,
        };
        let (outcomes, of_cases) = filters.verify(file, inputs);
        let is_new = |warning: &Warning| !warnings.contains(warning);
        let of_cases: Vec<Warning> = of_cases.into_iter().filter(is_new).collect();
        warnings.extend(of_cases);
        Tested {
            file: Some(self.name.clone()),
            n_rules: filters.of_user().count(),
            outcomes,
            problems: warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

fn report(tested: &Tested, as_json: bool) -> Result<Exit, CliError> {
    match as_json {
        true => print_json(&tested_json(tested)),
        false => page(tested).print(),
    }?;
    Ok(match tested.is_ok() {
        true => Exit::Success,
        false => Exit::Failure,
    })
}

fn page(tested: &Tested) -> Page {
    let mut page = Page::new();
    for outcome in &tested.outcomes {
        let saved = format!("{:.1}% saved", outcome.saved * 100.0);
        match outcome.problems.is_empty() {
            true => page.line(0, &format!("ok      {} · {saved}", outcome.name)),
            false => page.styled(0, RED, &format!("FAILED  {} · {saved}", outcome.name)),
        };
        for problem in &outcome.problems {
            page.line(4, problem);
        }
    }
    for problem in &tested.problems {
        page.styled(0, RED, problem);
    }
    let n_failed = tested
        .outcomes
        .iter()
        .filter(|outcome| !outcome.problems.is_empty())
        .count();
    let n_passed = tested.outcomes.len() - n_failed;
    let summary = match &tested.file {
        Some(_) => format!(
            "{}, {} passed, {n_failed} failed",
            counted(tested.n_rules, "rule", "rules"),
            counted(n_passed, "test", "tests")
        ),
        None => format!(
            "there is no rule file; {} built-in rules are active",
            BUILTIN.len()
        ),
    };
    page.styled(0, BOLD, &summary);
    page
}

fn tested_json(tested: &Tested) -> Value {
    let outcomes = tested.outcomes.iter().map(|outcome| {
        json!({
            "name": outcome.name,
            "ok": outcome.problems.is_empty(),
            "problems": outcome.problems,
            "saved": outcome.saved,
            "rules": outcome.rules,
            "text": outcome.text,
        })
    });
    json!({
        "ok": tested.is_ok(),
        "file": tested.file,
        "rules": tested.n_rules,
        "tests": outcomes.collect::<Vec<_>>(),
        "problems": tested.problems,
    })
}
