//! `tools.scoped` as an operator may see it.

use std::path::PathBuf;

use serde::Serialize;

use super::{Scoped, ToolGlob, Tools};
use crate::policy::{CommandPattern, Mode};

/// The effective `[tools.scoped]` settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownScope {
    /// The only tools that are available; `None` if the section lists none.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that are not available.
    pub denied_tools: Vec<String>,
    /// What becomes of a call of a tool that is out of scope.
    pub mode: Mode,
    /// What the arguments of tools may be, by tool.
    pub constraints: Vec<ShownConstraint>,
}

/// The constraint of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownConstraint {
    /// The tool.
    pub tool: String,
    /// Patterns, none of which may match.
    pub deny_patterns: Vec<String>,
    /// The directories that paths have to be in; empty where they do not matter.
    pub allowed_paths: Vec<PathBuf>,
    /// What becomes of a call that violates it.
    pub mode: Mode,
}

impl Scoped {
    /// The settings, for `policy show`.
    pub fn shown(&self) -> ShownScope {
        let texts = |tools: &[ToolGlob]| tools.iter().map(|tool| tool.text.clone()).collect();
        let (allowed_tools, denied_tools) = match &self.tools {
            Tools::Only(tools) => (Some(texts(tools)), Vec::new()),
            Tools::AllBut(tools) => (None, texts(tools)),
        };
        let constraints = self.constraints.iter();
        let constraints = constraints.map(|(tool, constraint)| ShownConstraint {
            tool: tool.text.clone(),
            deny_patterns: constraint
                .deny
                .iter()
                .map(CommandPattern::text)
                .map(str::to_owned)
                .collect(),
            allowed_paths: constraint.allowed_paths.clone(),
            mode: constraint.mode,
        });
        ShownScope {
            allowed_tools,
            denied_tools,
            mode: self.mode,
            constraints: constraints.collect(),
        }
    }
}
