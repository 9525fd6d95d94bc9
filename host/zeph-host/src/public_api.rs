//! Compares the public interface of the crate with the one that is kept in `public-api.txt`, so that it never changes by accident.
//!
//! The listing is made from the sources, as rustfmt lays them out: every name that `lib.rs` gives out, with its definition and the public
//! functions of its own. It does not see what macros make and what derived traits come to, but it says which are derived.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const KEPT: &str = include_str!("../public-api.txt");

/// How a definition may begin, after `pub`.
const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "fn "];

/// Names whose definitions macros make.
const MADE: [&str; 3] = ["CallId", "ConversationId", "OverflowId"];

/// What is found of one name.
#[derive(Default)]
struct Listed {
    definition: Vec<String>,
    functions: BTreeSet<String>,
}

/// With `ZEPH_BLESS=1` the kept listing is written anew.
#[test]
fn the_public_interface_is_the_kept_one() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = listing(here);
    if std::env::vars().any(|(name, _)| name == "ZEPH_BLESS") {
        fs::write(here.join("public-api.txt"), &made).unwrap();
    } else {
        assert!(
            made == KEPT,
            "the interface has changed: read what ZEPH_BLESS=1 makes of public-api.txt\n{made}"
        );
    }
}

fn listing(here: &Path) -> String {
    let names = exported(&fs::read_to_string(here.join("src/lib.rs")).unwrap());
    assert!(names.len() > 40, "{names:?}");
    let mut found: BTreeMap<String, Listed> = BTreeMap::new();
    let mut files = Vec::new();
    for room in fs::read_dir(here.join("..")).unwrap() {
        sources(&room.unwrap().path().join("src"), &mut files);
    }
    files.sort();
    let origins: BTreeMap<&String, &String> =
        names.iter().map(|(name, room)| (name, room)).collect();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let room = room_of(here, file);
        let is_meant = |name: &str| origins.get(&name.to_owned()).is_some_and(|of| **of == room);
        read(&text, &is_meant, &mut found);
    }
    let mut listing = String::new();
    for (name, room) in &names {
        let mut listed = found.remove(name).unwrap_or_default();
        if listed.definition.is_empty() {
            assert!(
                MADE.contains(&name.as_str()),
                "`{name}` of {room} is defined nowhere"
            );
            listed
                .definition
                .push(format!("{name}, which a macro makes"));
        }
        listing.push_str(&listed.definition.join("\n"));
        for function in listed.functions {
            listing.push_str(&format!("\n    {name}: {function}"));
        }
        listing.push_str("\n\n");
    }
    listing
}

/// The names of `pub use`, with the crate each is of.
fn exported(lib: &str) -> BTreeSet<(String, String)> {
    let uses = lib.split("\npub use ").skip(1);
    let uses = uses.filter_map(|text| text.split(';').next());
    let names = uses.flat_map(|text| {
        let room = match text.starts_with("zeph_") {
            true => text
                .split("::")
                .next()
                .unwrap_or_default()
                .replace('_', "-"),
            false => "zeph-host".to_owned(),
        };
        let names = text.rsplit_once("::").map_or(text, |(_, last)| last);
        let names = match text.split_once('{') {
            Some((_, list)) => list.trim_end().trim_end_matches('}'),
            None => names,
        };
        let names = names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let names = names.map(|name| (name.to_owned(), room.clone()));
        names.collect::<Vec<_>>()
    });
    names.collect()
}

/// The sources below `folder`, but for tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" || name == "public_api" {
            continue;
        }
        match path.is_dir() {
            true => sources(&path, files),
            false if path.extension().is_some_and(|end| end == "rs") => files.push(path),
            false => {}
        }
    }
}

/// The crate a file is of.
fn room_of(here: &Path, file: &Path) -> String {
    let below = file.strip_prefix(here.join("..")).unwrap();
    below
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy()
        .into_owned()
}

/// Adds what a file says of the names that are meant.
fn read(text: &str, is_meant: &dyn Fn(&str) -> bool, found: &mut BTreeMap<String, Listed>) {
    let lines: Vec<&str> = text.lines().collect();
    // A type of the same name that is nobody else's.
    let inner: BTreeSet<&str> = lines.iter().filter_map(|line| kept_inside(line)).collect();
    let is_meant = |name: &str| is_meant(name) && !inner.contains(name);
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = defined(line).filter(|name| is_meant(name)) {
            let listed = found.entry(name.to_owned()).or_default();
            listed.definition = [attributes(&lines[..at]), body(&lines[at..])].concat();
        }
        if let Some(name) = of_trait(line).filter(|name| is_meant(name)) {
            let listed = found.entry(name.to_owned()).or_default();
            listed
                .functions
                .insert(line.trim_end_matches([' ', '{']).to_owned());
        }
        if let Some(name) = implemented(line).filter(|name| is_meant(name)) {
            let listed = found.entry(name.to_owned()).or_default();
            listed.functions.extend(functions(&lines[at..]));
        }
    }
}

/// The name that a line at the left edge begins to define in public.
fn defined(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
    word(rest)
}

/// The name of a type that a line at the left edge begins to define, and that is not public.
fn kept_inside(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "type "];
    word(kinds.iter().find_map(|kind| rest.strip_prefix(kind))?)
}

/// The type whose own functions, those of no trait, begin at this line.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ")?.1,
        None => rest.trim_start(),
    };
    let is_of_trait = rest.contains(" for ");
    word(rest).filter(|_| !is_of_trait)
}

/// The type for which this line begins to implement a trait.
fn of_trait(line: &str) -> Option<&str> {
    let (_, implementor) = line.strip_prefix("impl")?.rsplit_once(" for ")?;
    word(implementor)
}

fn word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let word = &text[..end.unwrap_or(text.len())];
    (!word.is_empty()).then_some(word)
}

/// What stands above a definition and belongs to the interface.
fn attributes(before: &[&str]) -> Vec<String> {
    let above = before.iter().rev();
    let above = above.take_while(|line| !line.is_empty());
    let kept = ["#[derive", "#[non_exhaustive", "#[must_use"];
    let mut above: Vec<String> = above
        .filter(|line| kept.iter().any(|one| line.starts_with(one)))
        .map(|line| (*line).to_owned())
        .collect();
    above.reverse();
    above
}

/// A definition from its first line: public fields, variants, the functions of a trait; of a function its head.
fn body(lines: &[&str]) -> Vec<String> {
    let is_struct = lines[0].starts_with("pub struct");
    let end = lines
        .iter()
        .position(|line| *line == "}" || line.ends_with(';') && !line.starts_with(' '));
    let inner = &lines[..=end.unwrap_or(0)];
    if !inner[0].ends_with('{') {
        return vec![inner[0].to_owned()];
    }
    let mut kept = Vec::new();
    let mut depth = 0;
    for line in inner {
        let text = line.trim();
        let is_remark = text.starts_with("//") || text.starts_with("#[");
        let is_hidden = is_struct && line.starts_with("    ") && !text.starts_with("pub ");
        // The default of a function of a trait is not the interface.
        if !is_remark && !is_hidden && depth == 0 && !text.is_empty() {
            kept.push(line.trim_end_matches([',', '{', ' ']).to_owned());
        }
        let is_function = text.starts_with("fn ") && text.ends_with('{');
        match depth {
            0 if is_function => depth = 1,
            1 if *line == "    }" => depth = 0,
            _ => {}
        }
    }
    kept.retain(|line| line.trim() != "}");
    kept
}

/// The public functions of a block that begins at the first line.
fn functions(lines: &[&str]) -> Vec<String> {
    let end = lines.iter().position(|line| *line == "}").unwrap_or(0);
    let mut functions = Vec::new();
    let mut rest = lines[..end].iter();
    while let Some(line) = rest.next() {
        if !line.starts_with("    pub ") || line.starts_with("     ") {
            continue;
        }
        let mut head = line.trim().to_owned();
        while !(head.ends_with('{') || head.ends_with(';')) {
            let Some(next) = rest.next() else {
                break;
            };
            let text = next.trim();
            let is_glued = head.ends_with('(') || text.starts_with(')');
            head.push_str(if is_glued { "" } else { " " });
            head.push_str(text);
        }
        let head = head.trim_end_matches(['{', ';', ' ']);
        functions.push(head.replace(",)", ")"));
    }
    functions
}
