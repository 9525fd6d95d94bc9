//! The granted directories and the working directory, and how a path given by a model becomes a place in them.
//!
//! Nothing here protects anything: the host checks every object really reached. This is for good messages, for
//! finding the right granted directory, and for showing paths the way the model writes them.

use zeph_plugin::ToolError;

use crate::sys::{self, Root};
use crate::text;

/// What a call may touch.
#[derive(Debug)]
pub struct Area {
    /// Absolute, without a trailing slash.
    cwd: String,
    /// Longest path first, so that the innermost one is found first.
    roots: Vec<Root>,
}

/// A path under a granted directory. It need not exist.
#[derive(Debug, Clone)]
pub struct AreaPath<'a> {
    area: &'a Area,
    root: &'a Root,
    /// Below the root; empty for the root itself.
    relative: String,
}

impl Area {
    /// The directories granted to this call.
    pub fn granted() -> Self {
        Self::new(sys::working_directory(), Root::granted())
    }

    /// An area of `roots`; the working directory is the first of them when `cwd` is not known.
    pub fn new(cwd: Option<String>, mut roots: Vec<Root>) -> Self {
        let cwd = cwd.or_else(|| roots.first().map(|root| root.path().to_owned()));
        roots.sort_by_key(|root| std::cmp::Reverse(root.path().len()));
        Self {
            cwd: absolute(&components(&cwd.unwrap_or_default())),
            roots,
        }
    }

    /// The place that `path` names, relative paths taken from the working directory.
    ///
    /// Errors: `invalid_parameters` for what is no path; `policy_blocked` when it lies in no granted directory.
    pub fn place(&self, path: &str) -> Result<AreaPath<'_>, ToolError> {
        if path.is_empty() {
            return Err(ToolError::invalid_parameters("the path is empty"));
        }
        if path.contains('\0') {
            return Err(ToolError::invalid_parameters(
                "a path cannot contain a NUL character",
            ));
        }
        if path == "~" || path.starts_with("~/") {
            return Err(ToolError::invalid_parameters(format!(
                "`{}`: `~` is not expanded, write the path in full",
                text::name(path)
            )));
        }
        let full = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{}/{path}", self.cwd),
        };
        let parts = components(&full);
        self.find(&parts)
            .or_else(|| self.find(&collapsed(&parts)))
            .ok_or_else(|| self.outside(path))
    }

    /// `absolute` as a model would write it: relative when it lies below the working directory.
    pub fn shown(&self, absolute: &str) -> String {
        match absolute.strip_prefix(&self.cwd) {
            Some("") => ".".to_owned(),
            Some(rest) if rest.starts_with('/') && self.cwd != "/" => rest[1..].to_owned(),
            _ => absolute.to_owned(),
        }
    }

    /// Whether a granted directory is `place` or lies below it.
    pub fn holds_root(&self, place: &AreaPath<'_>) -> bool {
        let top = collapsed(&components(&place.absolute())).join("/");
        self.roots.iter().any(|root| {
            let root = components(root.path()).join("/");
            root == top || top.is_empty() || root.starts_with(&format!("{top}/"))
        })
    }

    fn find(&self, parts: &[&str]) -> Option<AreaPath<'_>> {
        let real = |root: &'_ Root| vec![root.path().to_owned()];
        let others = |root: &'_ Root| root.others().to_vec();
        self.find_by(parts, real)
            .or_else(|| self.find_by(parts, others))
    }

    /// The place by those paths of the roots that `paths` gives.
    fn find_by(
        &self,
        parts: &[&str],
        paths: impl Fn(&Root) -> Vec<String>,
    ) -> Option<AreaPath<'_>> {
        self.roots.iter().find_map(|root| {
            let paths = paths(root);
            let mut rests = paths.iter().filter_map(|path| {
                let rest = parts.strip_prefix(&components(path)[..])?;
                (!climbs_out(rest)).then(|| rest.join("/"))
            });
            Some(AreaPath {
                area: self,
                root,
                relative: rests.next()?,
            })
        })
    }

    fn outside(&self, path: &str) -> ToolError {
        let roots: Vec<String> = self
            .roots
            .iter()
            .map(|root| format!("`{}`", root.path()))
            .collect();
        let path = text::name(path);
        ToolError::denied(match roots.is_empty() {
            true => format!("`{path}` may not be touched: no directory is granted"),
            false => format!(
                "`{path}` is outside the allowed directories: {}",
                roots.join(", ")
            ),
        })
    }
}

impl<'a> AreaPath<'a> {
    /// The granted directory it lies in.
    pub fn root(&self) -> &'a Root {
        self.root
    }

    /// The path below the granted directory, `.` for that directory itself.
    pub fn relative(&self) -> &str {
        match self.relative.as_str() {
            "" => ".",
            relative => relative,
        }
    }

    /// The whole path.
    pub fn absolute(&self) -> String {
        match (self.relative.as_str(), self.root.path()) {
            ("", root) => root.to_owned(),
            (relative, "/") => format!("/{relative}"),
            (relative, root) => format!("{root}/{relative}"),
        }
    }

    /// The path as a model would write it, for text.
    pub fn shown(&self) -> String {
        text::name(&self.spelled())
    }

    /// The path as a model would write it, for programs: whatever its names hold.
    pub fn spelled(&self) -> String {
        self.area.shown(&self.absolute())
    }

    /// Whether it is a granted directory.
    pub fn is_root(&self) -> bool {
        collapsed(&components(&self.relative)).is_empty()
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &str {
        self.relative.rsplit('/').next().unwrap_or_default()
    }

    /// The directory it lies in; none for the root.
    pub fn parent(&self) -> Option<Self> {
        let relative = match self.relative.rsplit_once('/') {
            Some((parent, _)) => parent.to_owned(),
            None if self.relative.is_empty() => return None,
            None => String::new(),
        };
        Some(Self {
            relative,
            ..self.clone()
        })
    }

    /// `path` below it. `path` is a name or several joined by `/`, as the host lists them.
    pub fn child(&self, path: &str) -> Self {
        let relative = match self.relative.as_str() {
            "" => path.to_owned(),
            relative => format!("{relative}/{path}"),
        };
        Self {
            relative,
            ..self.clone()
        }
    }

    /// What a symbolic link at this place with the text `target` points to.
    ///
    /// Errors: as [`Area::place`].
    pub fn link_target(&self, target: &str) -> Result<Self, ToolError> {
        match self.parent() {
            Some(parent) if !target.starts_with('/') => {
                self.area.place(&format!("{}/{target}", parent.absolute()))
            }
            _ => self.area.place(target),
        }
    }

    /// Whether both name one object, links not followed.
    pub fn is_same(&self, other: &Self) -> bool {
        self.root
            .is_same(self.relative(), other.root, other.relative())
    }

    /// Whether `self` lies below `other`, going by the names alone.
    pub fn is_below(&self, other: &Self) -> bool {
        let (inner, outer) = (self.absolute(), other.absolute());
        let (inner, outer) = (
            collapsed(&components(&inner)).join("/"),
            collapsed(&components(&outer)).join("/"),
        );
        inner
            .strip_prefix(&outer)
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The parts of a path without `.` and doubled slashes. `..` stays: only the file system knows what it means.
fn components(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect()
}

/// `parts` with each `..` taken back together with the part before it.
fn collapsed<'p>(parts: &[&'p str]) -> Vec<&'p str> {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match *part {
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    kept
}

fn climbs_out(parts: &[&str]) -> bool {
    let mut depth = 0_usize;
    for part in parts {
        match (*part, depth) {
            ("..", 0) => return true,
            ("..", _) => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn absolute(parts: &[&str]) -> String {
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests;
