//! Paths that are named within directories that tools may change. A tool can put a symbolic link there, and the next session would
//! follow it: such a name has to stay within what it is named in.

use std::path::{Path, PathBuf};

use zeph_core::failure::one_line;
use zeph_core::path::normal;

use super::super::origin::path_text;
use super::super::raw::RawTools;
use super::Compiling;

/// A directory that tools or commands may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Container {
    /// As the configuration names it.
    named: PathBuf,
    /// What it is now.
    real: PathBuf,
}

impl Compiling<'_> {
    /// Finds what file tools and commands may change: from here on, what is named within has to lie within.
    pub(super) fn find_containers(&mut self, tools: &RawTools) {
        let here = [".".to_owned()];
        let or_here = |texts: &[String]| match texts {
            [] => here.to_vec(),
            texts => texts.to_vec(),
        };
        let mut texts = or_here(&tools.file.allowed_paths);
        texts.extend(or_here(&tools.shell.allowed_paths));
        texts.extend_from_slice(&tools.sandbox.allow_write);
        let named: Vec<Container> = texts
            .iter()
            .filter_map(|text| self.container(text))
            .collect();
        let outermost = named.iter().filter(|one| !holds(&named, &one.named));
        // A path may also be named by what a link leads to.
        let also = outermost.map(|one| Container {
            named: one.real.clone(),
            real: one.real.clone(),
        });
        self.containers = also.chain(named.iter().cloned()).collect();
    }

    fn container(&self, text: &str) -> Option<Container> {
        let text = text.strip_suffix("/**").unwrap_or(text);
        let named = normal(&self.base().absolute(text).ok()?);
        let real = std::fs::canonicalize(&named).ok()?;
        Some(Container { named, real })
    }

    /// What is wrong with a path that leads out of the directories it is named in.
    pub(super) fn leads_out(&self, text: &str) -> Option<String> {
        let Container { named, real } = self.container(text)?;
        self.is_led_out(&named, &real).then(|| {
            format!(
                "`{}` leads through a symbolic link to {}, out of the directory it is named in; name the real path if it is meant",
                one_line(text, 200),
                path_text(&real)
            )
        })
    }

    /// Whether `real`, which `named` leads to, lies outside of all that no tool can have replaced, though `named` lies within.
    pub(super) fn is_led_out(&self, named: &Path, real: &Path) -> bool {
        let containers = &self.containers;
        let mut outermost = containers
            .iter()
            .filter(|one| !holds(containers, &one.named));
        holds(containers, named) && !outermost.any(|one| real.starts_with(&one.real))
    }
}

/// Whether one of the directories holds `path`, and is not `path` itself.
fn holds(containers: &[Container], path: &Path) -> bool {
    containers
        .iter()
        .any(|one| path != one.named && path.starts_with(&one.named))
}
