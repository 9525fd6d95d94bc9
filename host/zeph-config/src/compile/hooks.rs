//! `[hooks]`.

use std::time::Duration;

use globset::Glob;

use super::super::raw::{RawHook, RawHooks};
use super::super::rules::{HookCommand, HookSettings};
use super::Compiling;
use crate::paths::unbraced;

impl Compiling<'_> {
    /// The commands; `timeout` is for those that name none.
    pub(super) fn hooks(&mut self, raw: &RawHooks, timeout: Duration) -> HookSettings {
        HookSettings {
            file_changed: self.list("hooks.file_changed", &raw.file_changed, timeout),
            cwd_changed: self.list("hooks.cwd_changed", &raw.cwd_changed, timeout),
        }
    }

    fn list(&mut self, key: &str, raw: &[RawHook], timeout: Duration) -> Vec<HookCommand> {
        let mut hooks = Vec::new();
        for (idx, hook) in raw.iter().enumerate() {
            if hook.command.trim().is_empty() {
                let message = "an empty command would do nothing";
                self.merged.problem_in(key, idx, "command", message);
            }
            let mut paths = Vec::new();
            for text in &hook.paths {
                match self.spelt(text) {
                    Ok(globs) => paths.extend(globs),
                    Err(message) => self.merged.problem_in(key, idx, "paths", &message),
                }
            }
            hooks.push(HookCommand {
                command: hook.command.clone(),
                paths,
                timeout: match hook.timeout_secs {
                    0 => timeout,
                    some => Duration::from_secs(some.into()),
                },
                fail_closed: hook.fail_closed,
            });
        }
        hooks
    }

    /// The globs over absolute paths of a pattern, in all spellings; a relative one starts in the working directory.
    fn spelt(&self, text: &str) -> Result<Vec<String>, String> {
        if text.trim().is_empty() {
            return Err("an empty pattern matches nothing".to_owned());
        }
        let mut globs = Vec::new();
        for text in unbraced(text)? {
            match text {
                text if text.starts_with('*') => globs.push(text),
                text if text.starts_with(['/', '~']) || text.starts_with("./") => {
                    globs.extend(self.base().deny(&text)?);
                }
                text => globs.extend(self.base().deny(&format!("./{text}"))?),
            }
        }
        for glob in &globs {
            Glob::new(glob).map_err(|error| format!("is not a pattern: {}", error.kind()))?;
        }
        Ok(globs)
    }
}
