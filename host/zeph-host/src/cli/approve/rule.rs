//! `zeph-host approve --rule`: a rule for the configuration in place of an approval of one call.
//!
//! A rule is put before the operator's own rules for its tool, because the first one that matches decides; nothing else of the
//! file is touched. What the file would mean afterwards is checked before it takes the place of the old one.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;
use zeph_config::Config;
use zeph_store::ApprovalRequest;

use crate::cli::args::Approve;
use crate::cli::ask::{Answer, ask};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::cli::page::print_json;
use crate::run::page::Page;

/// Runs the command.
pub(super) fn run(
    context: &Context,
    options: &Approve,
    request: &ApprovalRequest,
) -> Result<Exit, CliError> {
    let rules = &request.rules;
    if rules.is_empty() {
        return Err(
            CliError::user("there is no rule for calls like this one").hint(
                "approve the call itself with `--always`, or write a rule for `tools.permissions`",
            ),
        );
    }
    let blocks: Vec<(String, String)> = rules.iter().map(|rule| block(rule)).collect();
    let text: Vec<&str> = blocks.iter().map(|(_, block)| block.as_str()).collect();
    let text = text.join("\n");
    let is_first = has_no_rules(context);
    let file = match options.write {
        true => Some(file(context)?),
        false => None,
    };
    let is_json = options.json.json;
    if file.is_some() && !is_json {
        out::data(&text)?;
    }
    let agreed = file.filter(|file| agreed(file, options));
    if let Some(file) = &agreed {
        write(context, file, &blocks)?;
    }
    let is_refused = options.write && agreed.is_none();
    if !is_json && is_first && !is_refused {
        out::note(
            "rules in `tools.permissions` take the place of `tools.shell.blocked_commands` and \
             `tools.shell.confirm_patterns`, and what no rule matches asks",
        );
    }
    match (is_json, &agreed) {
        (true, _) => print_json(&json!({ "rules": rules, "toml": text, "written": agreed }))?,
        (false, None) if is_refused => {}
        (false, None) => out::data(&text)?,
        (false, Some(file)) => Page::new()
            .line(0, &format!("written to {}", file.display()))
            .print()?,
    }
    Ok(match is_refused {
        true => Exit::Confirm,
        false => Exit::Success,
    })
}

/// The operator's file, which need not exist.
fn file(context: &Context) -> Result<PathBuf, CliError> {
    let file = zeph_config::user_file(&context.surroundings, &context.flags);
    let file = file.ok_or_else(|| CliError::user("there is no place for a configuration file"))?;
    Ok(file.path)
}

/// Whether the rules may be added to `file`; if not, that is said. A reader of JSON has not seen them yet.
fn agreed(file: &Path, options: &Approve) -> bool {
    let question = format!("Add this to `{}`?", file.display());
    let answer = match options.json.json && !options.yes {
        true => Answer::Nobody,
        false => ask(&question, options.yes),
    };
    if answer != Answer::Yes {
        out::note("nothing was written; `--yes` writes without asking");
    }
    answer == Answer::Yes
}

/// Whether the operator's file has no such rules of its own, so that the first one changes more than it says.
fn has_no_rules(context: &Context) -> bool {
    let file = zeph_config::user_file(&context.surroundings, &context.flags);
    let text = file.and_then(|file| fs::read_to_string(file.path).ok());
    text.is_none_or(|text| !text.contains("tools.permissions"))
}

/// The tool of `TOOL:PATTERN`, and the rule as lines of a configuration file.
fn block(rule: &str) -> (String, String) {
    let (tool, pattern) = rule.split_once(':').unwrap_or((rule, "*"));
    let pattern = toml::Value::String(pattern.to_owned());
    let block = format!("[[tools.permissions.{tool}]]\npattern = {pattern}\naction = \"allow\"\n");
    (tool.to_owned(), block)
}

/// `text` with `block` before the first rule for `tool`, or at its end.
fn with_rule(text: &str, tool: &str, block: &str) -> String {
    let header = format!("[[tools.permissions.{tool}]]");
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let bare: String = line
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect();
        let is_header = bare.split('#').next() == Some(header.as_str());
        // Within a string of several lines, what stands before it is no whole file.
        let is_whole = || toml::from_str::<toml::Table>(&text[..position]).is_ok();
        if is_header && is_whole() {
            return format!("{}{block}\n{}", &text[..position], &text[position..]);
        }
        position += line.len();
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{block}")
}

/// Puts the rules into `file`, which is made when it is not there.
fn write(context: &Context, file: &Path, blocks: &[(String, String)]) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::internal(format!("`{}` cannot be changed", file.display())).because(error)
    };
    // A link stays one: what it leads to is replaced.
    let file: PathBuf = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file
        .parent()
        .ok_or_else(|| CliError::internal("the configuration file lies in no folder"))?;
    let old = match fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut new = old.clone().unwrap_or_default();
    for (tool, block) in blocks.iter().rev() {
        new = with_rule(&new, tool, block);
    }
    let mut draft = tempfile::Builder::new()
        .prefix(".config-")
        .suffix(".toml")
        .tempfile_in(folder)
        .map_err(failed)?;
    draft.write_all(new.as_bytes()).map_err(failed)?;
    draft.as_file().sync_all().map_err(failed)?;
    Config::check_file(&context.surroundings, draft.path()).map_err(|errors| {
        CliError::from(errors).hint("nothing was written: the file would not be right")
    })?;
    if let Ok(metadata) = fs::metadata(&file) {
        draft
            .as_file()
            .set_permissions(metadata.permissions())
            .map_err(failed)?;
    }
    let now = fs::read_to_string(&file).ok();
    if now != old {
        return Err(CliError::user(
            "the configuration file has just been changed; try again",
        ));
    }
    draft
        .persist(&file)
        .map_err(|error| failed(error.error))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::{block, with_rule};

    #[test]
    fn a_rule_becomes_lines_of_a_file() {
        for (rule, expect) in [
            (
                "bash:rm *",
                "[[tools.permissions.bash]]\npattern = \"rm *\"\naction = \"allow\"\n",
            ),
            (
                "write",
                "[[tools.permissions.write]]\npattern = \"*\"\naction = \"allow\"\n",
            ),
            (
                r#"bash:echo "a:b" \*"#,
                "[[tools.permissions.bash]]\npattern = 'echo \"a:b\" \\*'\naction = \"allow\"\n",
            ),
        ] {
            assert_eq!(block(rule).1, expect);
            let parsed: toml::Table = toml::from_str(expect).unwrap();
            assert!(parsed.contains_key("tools"));
        }
    }

    #[test]
    fn a_rule_goes_before_those_of_its_tool_and_changes_nothing_else() {
        let block = "B\n";
        let table = [
            ("", "B\n"),
            (
                "# mine\n[tools]\nenabled = true",
                "# mine\n[tools]\nenabled = true\n\nB\n",
            ),
            ("[tools]\n", "[tools]\n\nB\n"),
            (
                "# a\n[[ tools.permissions.bash ]] # last\npattern = \"*\"\n",
                "# a\nB\n\n[[ tools.permissions.bash ]] # last\npattern = \"*\"\n",
            ),
            (
                "[x]\nabout = \"\"\"\n[[tools.permissions.bash]]\n\"\"\"\n[[tools.permissions.bash]]\n",
                "[x]\nabout = \"\"\"\n[[tools.permissions.bash]]\n\"\"\"\nB\n\n[[tools.permissions.bash]]\n",
            ),
            (
                "[[tools.permissions.write]]\npattern = \"*\"\n",
                "[[tools.permissions.write]]\npattern = \"*\"\n\nB\n",
            ),
        ];
        for (text, expect) in table {
            assert_eq!(with_rule(text, "bash", block), expect, "{text:?}");
        }
    }
}
