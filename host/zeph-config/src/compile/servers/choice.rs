//! What the operator makes of single tools of a server.

use globset::Glob;
use zeph_core::failure::one_line;
use zeph_core::id::ToolName;

use super::{SHOWN_CHARS_MAX, ServerRoom};
use crate::compile::Compiling;
use crate::compile::plugins::json;
use crate::raw::{RawArgumentRule, RawToolChoice};
use crate::servers::{ArgumentRule, ToolChoice};

impl Compiling<'_> {
    pub(super) fn choice(
        &mut self,
        room: &ServerRoom<'_>,
        tool: &str,
        raw: &RawToolChoice,
    ) -> ToolChoice {
        let name = match raw.name.as_str() {
            "" => None,
            name => match ToolName::new(name) {
                Ok(name) => Some(name),
                Err(bad) => {
                    let message = format!("`{}.name`: {bad}", one_line(tool, 100));
                    self.wrong(room, "tools", &message);
                    None
                }
            },
        };
        let rules = raw.arguments.iter();
        let arguments = rules
            .map(|(argument, rule)| (argument.clone(), self.argument(room, tool, rule)))
            .collect();
        ToolChoice {
            name,
            description: (!raw.description.is_empty()).then(|| raw.description.clone()),
            enabled: raw.enabled,
            arguments,
        }
    }

    fn argument(
        &mut self,
        room: &ServerRoom<'_>,
        tool: &str,
        raw: &RawArgumentRule,
    ) -> ArgumentRule {
        for text in raw.allow.iter().chain(&raw.deny) {
            if let Err(error) = Glob::new(text) {
                let message = format!(
                    "`{}`: `{}` is not a pattern: {}",
                    one_line(tool, 100),
                    one_line(text, SHOWN_CHARS_MAX),
                    error.kind()
                );
                self.wrong(room, "tools", &message);
            }
        }
        ArgumentRule {
            fixed: raw.fixed.as_ref().map(json),
            allow: raw.allow.clone(),
            deny: raw.deny.clone(),
        }
    }
}
