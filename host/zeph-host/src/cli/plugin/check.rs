//! `zeph-host plugin check`: looks at a component without any configuration. All it leaves behind is the compiled form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zeph_config::{Config, Flags, Surroundings};
use zeph_core::tool::Tool;
use zeph_engine::{ComponentKind, Inspection, Metadata};
use zeph_plugins::manage::check::{self, Checked, Depth, ToolListing, Trial};
use zeph_plugins::manage::portable::Portability;
use zeph_plugins::manage::source;

use super::add;
use super::display::{self, Page};
use crate::cli::args::PluginCheck;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::host::StartError;
use crate::run::catalog;

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginCheck) -> Result<Exit, CliError> {
    let from = context.surroundings.working_directory.join(&options.file);
    let source = source::component(&from)?;
    let file = &source.file;
    let bytes = add::read(file)?;
    let limits = built_in(context)?.limits;
    let depth = match options.no_run {
        true => Depth::Read,
        false => Depth::Ask,
    };
    let tell = super::progress(context);
    let trial = Trial {
        depth,
        limits,
        cache_dir: cache_dir(context)?,
        tell,
    };
    let checked = context::block_on(async {
        let checked = check::check(&source, bytes, trial).await;
        Ok(checked.map_err(StartError::Engine)?)
    })?;
    match options.json.json {
        true => display::print_json(&as_json(file, &checked)),
        false => as_page(file, &checked).print(),
    }?;
    Ok(match checked.is_fine() {
        true => Exit::Success,
        false => Exit::Failure,
    })
}

/// Where `add` will look for the compiled form; a configuration that is broken is no business of a check.
pub(super) fn cache_dir(context: &Context) -> Result<Option<PathBuf>, CliError> {
    let config = match Config::load(&context.surroundings, &context.flags) {
        Ok(loaded) => loaded.config,
        Err(_) => built_in(context)?,
    };
    Ok(config.engine.cache_dir)
}

/// The configuration without files and variables, so that the result for a component is the same on every machine.
pub(super) fn built_in(context: &Context) -> Result<Config, CliError> {
    let surroundings = Surroundings {
        env: BTreeMap::new(),
        config_home: None,
        ..context.surroundings.clone()
    };
    let flags = Flags {
        set: context.flags.set.clone(),
        no_project: true,
        ..Flags::default()
    };
    Ok(Config::load(&surroundings, &flags)?.config)
}

fn as_page(file: &Path, checked: &Checked) -> Page {
    let mut page = Page::new();
    page.field("file", Some(&file.to_string_lossy()));
    page.field("size", Some(&display::size(checked.n_bytes as u64)));
    page.field("digest", Some(&checked.digest.to_string()));
    if let Some(inspection) = &checked.inspection {
        facts(&mut page, inspection);
        wants(&mut page, checked);
    }
    tools(&mut page, checked);
    verdict(&mut page, checked);
    page
}

fn facts(page: &mut Page, inspection: &Inspection) {
    page.field("kind", Some(&kind(&inspection.kind)));
    let Metadata {
        name,
        version,
        description,
        authors,
        licenses,
        homepage,
        source,
        made_with,
    } = &inspection.metadata;
    page.field("name", name.as_deref())
        .field("version", version.as_deref())
        .field("about", description.as_deref())
        .field("authors", authors.as_deref())
        .field("licenses", licenses.as_deref())
        .field("homepage", homepage.as_deref())
        .field("source", source.as_deref());
    let joined = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
    page.field("made with", joined(made_with).as_deref());
    page.head("IMPORTS");
    if inspection.imports.is_empty() {
        page.line(1, "nothing");
    }
    for import in &inspection.imports {
        let version = import.version.as_ref().map(|version| format!("@{version}"));
        let name = format!("{}{}", import.name, version.unwrap_or_default());
        match import.is_known {
            true => page.dim(1, &name),
            false => page.line(1, &format!("{name}: this host does not have it")),
        };
    }
}

fn kind(kind: &ComponentKind) -> String {
    match kind {
        ComponentKind::ToolPlugin { version } => format!("tool plugin (zeph:plugin {version})"),
        ComponentKind::FilterPlugin { version } => {
            format!("filter strategies (zeph:filter {version})")
        }
        ComponentKind::Plain => "plain component: each of its functions becomes a tool".to_owned(),
        ComponentKind::Neither => "nothing that has tools".to_owned(),
    }
}

fn wants(page: &mut Page, checked: &Checked) {
    page.head("WANTS");
    let has_manifest = checked
        .inspection
        .as_ref()
        .is_some_and(|read| read.manifest.is_some());
    match checked.wants().is_empty() {
        true if has_manifest || is_filter(checked) => {
            page.line(1, "nothing: it can be granted nothing")
        }
        true => page.line(
            1,
            "nothing, and it has no manifest: `plugin add --manifest FILE` or `plugin grant` write one for it",
        ),
        false => &mut *page,
    };
    for want in checked.wants() {
        page.name(1, &want.capability.to_string(), "");
        page.line(2, &format!("it says: {}", want.reason));
    }
}

fn tools(page: &mut Page, checked: &Checked) {
    let good = match &checked.asked {
        ToolListing::Good(good) => good,
        ToolListing::No | ToolListing::Refused => {
            page.head("TOOLS").line(1, "not known").dim(1, ran(checked));
            return;
        }
    };
    match good.plugin.strategies().is_empty() {
        true => page.head("TOOLS"),
        false => page.head("FILTER STRATEGIES"),
    };
    page.dim(1, ran(checked));
    for strategy in good.plugin.strategies() {
        page.name(1, &strategy.name, "");
        page.text(2, &strategy.description);
        page.dim(2, &strategy.options);
    }
    for (tool, (_, found)) in good.plugin.tools().iter().zip(&checked.tools) {
        self::tool(page, tool, found);
    }
    if !good.about.skipped.is_empty() {
        page.head("FUNCTIONS THAT ARE NO TOOLS");
    }
    for (name, reason) in &good.about.skipped {
        page.line(1, &format!("{name}: {reason}"));
    }
}

/// What was run of it.
fn ran(checked: &Checked) -> &'static str {
    match &checked.asked {
        ToolListing::No => "nothing of it was run",
        _ if is_plain(checked) => "it was compiled, and nothing of it was run",
        _ if is_filter(checked) => {
            "it was asked for its strategies (`list-strategies`), and nothing else of it was run"
        }
        _ => {
            "it was asked for its tools (`list-tools`) with nothing granted, and nothing else of it was run"
        }
    }
}

fn is_filter(checked: &Checked) -> bool {
    let read = checked.inspection.as_ref();
    read.is_some_and(|read| matches!(read.kind, ComponentKind::FilterPlugin { .. }))
}

fn is_plain(checked: &Checked) -> bool {
    let read = checked.inspection.as_ref();
    read.is_some_and(|read| read.kind == ComponentKind::Plain)
}

fn tool(page: &mut Page, tool: &Tool, found: &Portability) {
    page.name(1, tool.name.as_str(), catalog::effect(tool));
    page.text(2, &tool.description);
    page.dim(2, &tool.parameters.compact());
    for problem in &found.problems {
        page.line(2, &format!("to fix: {problem}"));
    }
    for advice in &found.advice {
        page.dim(2, &format!("better: {advice}"));
    }
}

fn verdict(page: &mut Page, checked: &Checked) {
    if checked.is_fine() {
        page.head(match checked.asked {
            ToolListing::Good(_) => "It can be used.",
            ToolListing::No | ToolListing::Refused => "Nothing in it stands against using it.",
        });
        return;
    }
    page.head("TO FIX");
    for problem in &checked.problems {
        page.line(1, problem);
    }
    for (name, found) in &checked.tools {
        for problem in &found.problems {
            page.line(1, &format!("tool `{name}`: {problem}"));
        }
    }
}

fn as_json(file: &Path, checked: &Checked) -> Value {
    let mut members = display::members(json!({
        "file": file,
        "bytes": checked.n_bytes,
        "digest": checked.digest,
        "is_fine": checked.is_fine(),
        "problems": checked.problems,
        "wants": checked.wants(),
        "was_run": match (&checked.asked, is_plain(checked)) {
            (ToolListing::No, _) | (_, true) => "nothing",
            _ if is_filter(checked) => "list-strategies",
            (ToolListing::Refused | ToolListing::Good(_), false) => "list-tools",
        },
    }));
    if let Some(inspection) = &checked.inspection {
        members.extend(display::members(json!({
            "kind": inspection.kind,
            "imports": inspection.imports,
            "exports": inspection.exports,
            "metadata": inspection.metadata,
        })));
    }
    if let ToolListing::Good(good) = &checked.asked {
        let tools = good.plugin.tools().iter().zip(&checked.tools);
        let tools = tools.map(|(tool, (_, found))| {
            let mut members = display::members(json!(tool));
            members.remove("backend");
            members.extend(display::members(json!(found)));
            Value::Object(members)
        });
        members.insert("tools".to_owned(), tools.collect());
        let strategies = json!(good.plugin.strategies());
        members.insert("strategies".to_owned(), strategies);
        members.insert(
            "skipped".to_owned(),
            display::skipped_json(&good.about.skipped),
        );
    }
    Value::Object(members)
}
