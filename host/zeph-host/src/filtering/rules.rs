//! The rules there are: the built-in ones, and the operator's file over them when it may be used.

use zeph_config::{RuleFile, RuleFileTrust};
use zeph_filter::{BUILTIN, Filters};

/// Puts the rules together; with them what is not used, and why.
pub(super) fn load(file: Option<&RuleFile>) -> (Filters, Vec<String>) {
    let mut notices = Vec::new();
    let own = file.and_then(|file| match read(file) {
        Ok(text) => Some((file.path.display().to_string(), text?)),
        Err(why) => {
            notices.push(why);
            None
        }
    });
    let own = own
        .as_ref()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let (filters, warnings) = Filters::load(BUILTIN, own);
    notices.extend(warnings.iter().map(ToString::to_string));
    (filters, notices)
}

/// The text of the operator's file; `None` when there is none.
///
/// Errors: why it is skipped, in one line.
fn read(file: &RuleFile) -> Result<Option<String>, String> {
    let name = file.path.display();
    let text = file
        .read()
        .map_err(|why| format!("{name} {why}; the built-in filter rules are used"))?;
    let Some(text) = text else { return Ok(None) };
    let RuleFileTrust::Sha256(trusted) = &file.trust else {
        return Ok(Some(text));
    };
    let digest = zeph_engine::digest(text.as_bytes()).hex();
    if digest == *trusted {
        return Ok(Some(text));
    }
    let why = match trusted.is_empty() {
        true => {
            "is named by a path that starts at the working directory and is not used; write the whole path, or,"
        }
        false => "is not the one that was trusted and is not used;",
    };
    Err(format!(
        "{name} {why} when you have read it, trust it with this line in [tools.filters]: \
         trusted_sha256 = \"{digest}\""
    ))
}
