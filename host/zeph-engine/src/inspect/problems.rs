//! Why this host cannot use a component, as sentences for its author.

use super::names::{Export, Import, InterfaceName, line_of};
use super::{ComponentKind, FILTER_VERSION, PLUGIN_VERSION, STRATEGIES, TOOLS, host};

/// Most imports that are complained about one by one.
const IMPORTS_MAX: usize = 8;

/// Most exports that are named.
const EXPORTS_MAX: usize = 8;

/// What is wrong with the imports.
///
/// A component that was built for another version says so with each of its imports, which is reported once per version.
pub(super) fn of_imports(imports: &[Import]) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let mut n_left_out = 0;
    for import in imports.iter().filter(|import| !import.is_known) {
        let problem = of_import(import.name());
        if problems.contains(&problem) {
            continue;
        }
        match problems.len() < IMPORTS_MAX {
            true => problems.push(problem),
            false => n_left_out += 1,
        }
    }
    if n_left_out > 0 {
        problems.push(format!(
            "{n_left_out} more of its imports are not known here"
        ));
    }
    problems
}

fn of_import(name: InterfaceName<'_>) -> String {
    let shown = name.shown();
    let line = name.version.and_then(line_of);
    let version = name.version.unwrap_or_default();
    match name.package() {
        Some("zeph:plugin") => match line {
            Some(line) if line != host::PLUGIN => of_version("zeph:plugin", line, host::PLUGIN),
            Some(_) => format!(
                "it imports `{shown}`, which this host does not have; a later zeph-host may"
            ),
            None => of_unreleased(&shown, "zeph:plugin", host::PLUGIN),
        },
        Some(package) if InterfaceName::is_of_wasi(package) => match line {
            Some(line) if line > host::WASI => format!(
                "it is built for WASI {}.{}, this host speaks {}; rebuild it for WASI {} (Rust: `--target wasm32-wasip2`)",
                line.0,
                line.1,
                shown_line(host::WASI),
                shown_line(host::WASI)
            ),
            None if version.starts_with("0.2.0-") || host::find(name).is_some() => {
                of_unreleased(&shown, "WASI", host::WASI)
            }
            _ => format!(
                "it imports `{shown}`, which this host does not have and no grant can give it"
            ),
        },
        _ => format!(
            "it imports `{shown}`, which this host does not have: a plugin can import `wasi:*` {} and `zeph:plugin` {}; what it \
             needs besides has to be composed into it",
            shown_line(host::WASI),
            shown_line(host::PLUGIN)
        ),
    }
}

/// What is wrong with what it exports.
pub(super) fn of_kind(kind: &ComponentKind, exports: &[Export]) -> Option<String> {
    match kind {
        ComponentKind::Plain => None,
        ComponentKind::ToolPlugin { .. }
            if exports.iter().any(|export| export.name == STRATEGIES) =>
        {
            Some(format!(
                "it exports `{TOOLS}` and `{STRATEGIES}`: tools hold grants, strategies see every output; make two components of it"
            ))
        }
        ComponentKind::ToolPlugin { version } => of_interface(version, &OF_TOOLS, exports),
        ComponentKind::FilterPlugin { version } => of_interface(version, &OF_STRATEGIES, exports),
        ComponentKind::Neither => Some(of_exports(exports)),
    }
}

/// An interface of ours that a component may export.
struct ExpectedInterface {
    package: &'static str,
    interface: &'static str,
    version: &'static str,
    line: (u64, u64),
}

const OF_TOOLS: ExpectedInterface = ExpectedInterface {
    package: "zeph:plugin",
    interface: TOOLS,
    version: PLUGIN_VERSION,
    line: host::PLUGIN,
};

const OF_STRATEGIES: ExpectedInterface = ExpectedInterface {
    package: "zeph:filter",
    interface: STRATEGIES,
    version: FILTER_VERSION,
    line: host::FILTER,
};

fn of_interface(version: &str, wanted: &ExpectedInterface, exports: &[Export]) -> Option<String> {
    let ExpectedInterface {
        package,
        interface,
        version: ours,
        line,
    } = *wanted;
    match line_of(version) {
        Some(theirs) if theirs == line => of_functions(interface, exports),
        Some(theirs) => Some(of_version(package, theirs, line)),
        None => {
            let shown = InterfaceName {
                path: interface,
                version: Some(version).filter(|version| !version.is_empty()),
            };
            let shown = shown.shown();
            Some(format!(
                "it exports `{shown}`: this host needs `{interface}@{ours}`"
            ))
        }
    }
}

fn of_functions(interface: &str, exports: &[Export]) -> Option<String> {
    let lacks = exports.iter().flat_map(|export| &export.lacks);
    let lacks: Vec<String> = lacks.map(|name| format!("`{name}`")).collect();
    (!lacks.is_empty()).then(|| format!("its `{interface}` lacks {}", lacks.join(" and ")))
}

fn of_exports(exports: &[Export]) -> String {
    let wanted = format!(
        "a plugin exports `{TOOLS}@{PLUGIN_VERSION}`, or functions of its own as plain tools"
    );
    if exports.is_empty() {
        return format!("it exports nothing: {wanted}; or the file is incomplete");
    }
    if exports.iter().any(|export| export.name == "wasi:cli/run") {
        return format!("it is a command (`wasi:cli/run`): {wanted}");
    }
    let named = exports
        .iter()
        .take(EXPORTS_MAX)
        .map(|export| format!("`{}`", export.name));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match exports.len() > EXPORTS_MAX {
        true => " and more",
        false => "",
    };
    format!("it exports {named}{more}: {wanted}")
}

fn of_version(package: &str, (major, minor): (u64, u64), line: (u64, u64)) -> String {
    let ours = shown_line(line);
    let advice = match (major, minor) > line {
        true => format!("rebuild it with the `wit` of {ours}, or use a later zeph-host"),
        false => format!("rebuild it with the `wit` of {ours}"),
    };
    format!("it is built for {package} {major}.{minor}, this host speaks {ours}; {advice}")
}

fn of_unreleased(shown: &str, what: &str, line: (u64, u64)) -> String {
    let line = shown_line(line);
    format!("it imports `{shown}`, not a released version; rebuild it for {what} {line}")
}

fn shown_line((major, minor): (u64, u64)) -> String {
    format!("{major}.{minor}")
}
