//! The patterns of `deny_read` and `allow_read`, and the verdict they give on a real path.
//!
//! Pure but for one thing: the literal beginning of a pattern is made canonical when it is compiled, because patterns are
//! matched against real paths and `/var/run/x` would otherwise never match where `/var/run` is a link to `/run`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use zeph_core::globs::{LazyGlobs, LetterCase, check};

use super::error::FsPolicyError;
use super::rulings::{RulingSet, Rulings};

/// What is known of a path: whether a deny or an allow pattern matched it or one of its ancestors.
///
/// Both are inherited downwards, so a walk carries the shade of a directory to its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shade {
    deny: bool,
    allow: bool,
    ruled: RulingSet,
}

impl Shade {
    /// Whether the object is to be as if it were not there. Deny first, then the exceptions; rules of a call by themselves.
    pub(super) fn hides(self) -> bool {
        self.deny && !self.allow || self.ruled.hides()
    }
}

/// The compiled patterns of a grant.
#[derive(Debug)]
pub(super) struct Patterns {
    /// Compiled when a path is met that they may hide.
    deny: Arc<LazyGlobs>,
    allow: Arc<LazyGlobs>,
    /// Absolute forms of the deny patterns that start with fixed names, cut into their components: where a hidden file
    /// may lie that has a second name inside a root.
    places: Vec<Vec<String>>,
    /// The names that each of them starts with.
    beginnings: Arc<[Vec<String>]>,
    /// Whether some pattern may match at any depth of any root.
    anywhere: bool,
    /// What rules hide for one call.
    rulings: Arc<Rulings>,
}

impl Patterns {
    /// Compiles `deny` and `allow`; relative patterns are taken from each of `roots`.
    pub(super) fn compile(
        deny: &[String],
        allow: &[String],
        roots: &[&Path],
    ) -> Result<Self, FsPolicyError> {
        let denied = absolute_forms(deny, roots)?;
        let allowed = absolute_forms(allow, roots)?;
        let (places, floating): (Vec<_>, Vec<_>) =
            denied.iter().partition(|form| form.glob.starts_with('/'));
        let places: Vec<_> = places.iter().map(|form| components(&form.glob)).collect();
        let anywhere = !floating.is_empty();
        Ok(Self {
            deny: compile(denied)?,
            allow: compile(allowed)?,
            beginnings: places.iter().map(|place| beginning(place)).collect(),
            places,
            anywhere,
            rulings: Arc::default(),
        })
    }

    /// Adds the paths that `rulings` hide.
    pub(super) fn with(&self, rulings: &Arc<Rulings>) -> Self {
        Self {
            deny: Arc::clone(&self.deny),
            allow: Arc::clone(&self.allow),
            places: self.places.clone(),
            beginnings: Arc::clone(&self.beginnings),
            // Their folders are known in lower case only.
            anywhere: self.anywhere || !rulings.is_empty(),
            rulings: Arc::clone(rulings),
        }
    }

    /// Whether both, being of one operator's policy, hide equal names.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rulings, &other.rulings)
    }

    /// Whether nothing is ever hidden.
    pub(super) fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.rulings.is_empty()
    }

    /// Whether a pattern without a fixed beginning exists.
    pub(super) fn match_anywhere(&self) -> bool {
        self.anywhere
    }

    /// The deny patterns with a fixed beginning, as components.
    pub(super) fn places(&self) -> &[Vec<String>] {
        &self.places
    }

    /// The names right below the directory `dir` that patterns may hide, or something below them: told by the fixed beginnings of the
    /// patterns alone, which costs far less than to match every name.
    pub(super) fn hideable(&self, dir: &Path, shade: Shade) -> Hideable {
        if !self.compares() || shade != Shade::default() {
            return Hideable::Any;
        }
        let dir: Vec<&[u8]> = names(dir).collect();
        let mut found = Vec::new();
        for beginning in self.beginnings.iter() {
            if is_apart(beginning, dir.iter().copied()) {
                continue;
            }
            match beginning.get(dir.len()) {
                Some(name) => found.push(name.clone()),
                None => return Hideable::Any,
            }
        }
        Hideable::Names(found)
    }

    /// Whether no pattern can hide `path`, an ancestor of it, or anything below it.
    fn is_clear(&self, path: &Path) -> bool {
        let mut beginnings = self.beginnings.iter();
        self.compares() && beginnings.all(|beginning| is_apart(beginning, names(path)))
    }

    /// Whether the beginnings tell anything. Where case does not count, they would have to be compared as the file system does.
    fn compares(&self) -> bool {
        !self.anywhere && !cfg!(target_os = "macos")
    }

    /// The verdict on an absolute real path, its ancestors included.
    pub(super) fn shade(&self, path: &Path) -> Shade {
        if self.is_empty() || self.is_clear(path) {
            return Shade::default();
        }
        let bytes = path.as_os_str().as_bytes();
        let ends = bytes
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at);
        let prefixes = ends
            .chain([bytes.len()])
            .map(|end| Path::new(OsStr::from_bytes(&bytes[..end])));
        prefixes.fold(Shade::default(), |shade, prefix| self.below(shade, prefix))
    }

    /// The verdict on `path`, given the shade of its parent.
    pub(super) fn below(&self, parent: Shade, path: &Path) -> Shade {
        if self.is_empty() || !parent.deny && self.is_clear(path) {
            return parent;
        }
        Shade {
            deny: parent.deny || self.deny.is_match(path, true),
            allow: parent.allow || self.allow.is_match(path, false),
            ruled: self.rulings.below(parent.ruled, path),
        }
    }
}

/// What patterns may hide right below a directory.
#[derive(Debug)]
pub(super) enum Hideable {
    Any,
    Names(Vec<String>),
}

impl Hideable {
    /// Whether they may hide the name, or something below it.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Names(names) => names.iter().any(|known| known == name),
        }
    }
}

/// Whether the names of a path part from the beginning of a pattern, so that the pattern matches neither above nor below it.
fn is_apart<'a>(beginning: &[String], names: impl Iterator<Item = &'a [u8]>) -> bool {
    names
        .zip(beginning)
        .any(|(name, known)| name != known.as_bytes())
}

fn names(path: &Path) -> impl Iterator<Item = &[u8]> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    names.filter(|name| !name.is_empty())
}

/// The plain names that a pattern starts with.
fn beginning(place: &[String]) -> Vec<String> {
    place
        .iter()
        .take_while(|name| !has_glob(name))
        .cloned()
        .collect()
}

/// A pattern in the form that is matched against absolute paths.
struct Form<'a> {
    glob: String,
    written: &'a str,
}

fn compile(forms: Vec<Form<'_>>) -> Result<Arc<LazyGlobs>, FsPolicyError> {
    for form in &forms {
        check(&form.glob).map_err(|source| FsPolicyError::Pattern {
            pattern: form.written.to_owned(),
            source,
        })?;
    }
    let case = match cfg!(target_os = "macos") {
        true => LetterCase::Ignored,
        false => LetterCase::Counts,
    };
    let texts = forms.into_iter().map(|form| form.glob).collect();
    Ok(Arc::new(LazyGlobs::new(texts, case)))
}

fn absolute_forms<'a>(
    patterns: &'a [String],
    roots: &[&Path],
) -> Result<Vec<Form<'a>>, FsPolicyError> {
    let mut forms = Vec::new();
    let mut followed = Followed::new();
    for written in patterns {
        let globs = match tidy(written)? {
            AnchoredGlob::Absolute(glob) => with_canonical(glob, &mut followed),
            AnchoredGlob::AnyDepth(glob) => vec![glob],
            AnchoredGlob::FromRoots(glob) => roots
                .iter()
                .flat_map(|root| {
                    with_canonical(format!("{}/{glob}", below_root(root)), &mut followed)
                })
                .collect(),
        };
        forms.extend(globs.into_iter().map(|glob| Form { glob, written }));
    }
    Ok(forms)
}

/// A pattern by where it starts.
enum AnchoredGlob {
    Absolute(String),
    FromRoots(String),
    AnyDepth(String),
}

/// Brings a pattern to the shape of a real path (no empty or `.` component, no slash at the end) and refuses one that
/// could never match, because it would look like protection and be none.
fn tidy(written: &str) -> Result<AnchoredGlob, FsPolicyError> {
    let dead = |reason| {
        Err(FsPolicyError::DeadPattern {
            pattern: written.to_owned(),
            reason,
        })
    };
    let names: Vec<_> = written
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.is_empty() {
        return dead("it names nothing");
    }
    if names[0] == "~" {
        return dead("`~` was not expanded");
    }
    if names.contains(&"..") {
        return dead("real paths hold no `..`");
    }
    if written.starts_with("{/") {
        return dead("alternatives must not be absolute");
    }
    let text = names.join("/");
    if written.starts_with('/') {
        return Ok(AnchoredGlob::Absolute(format!("/{text}")));
    }
    if names[0] == "**" {
        return Ok(AnchoredGlob::AnyDepth(text));
    }
    let anchored = names.len() > 1 || written.starts_with("./");
    Ok(if anchored {
        AnchoredGlob::FromRoots(text)
    } else {
        AnchoredGlob::AnyDepth(format!("**/{text}"))
    })
}

/// The root's path with glob characters made literal, without a slash at the end.
fn below_root(root: &Path) -> String {
    let text = root.to_string_lossy();
    globset::escape(text.trim_end_matches('/'))
}

/// Where the beginnings of patterns lead, by their spelling: to hash a path takes it apart. Most have one in common.
type Followed = HashMap<OsString, Option<PathBuf>>;

/// The pattern itself, and once more with its literal beginning resolved when that differs.
fn with_canonical(pattern: String, followed: &mut Followed) -> Vec<String> {
    let names = components(&pattern);
    let literal = names.iter().take_while(|name| !has_glob(name)).count();
    for keep in (1..=literal).rev() {
        let prefix = Path::new("/").join(names[..keep].join("/"));
        let real = match followed.get(prefix.as_os_str()) {
            Some(known) => known.clone(),
            None => {
                let real = real(&prefix);
                followed.insert(prefix.clone().into(), real.clone());
                real
            }
        };
        let Some(real) = real else {
            continue;
        };
        if real == prefix {
            break;
        }
        let mut resolved = below_root(&real);
        for name in &names[keep..] {
            resolved.push('/');
            resolved.push_str(name);
        }
        return vec![pattern, resolved];
    }
    vec![pattern]
}

/// The object's own path. Of what is missing the system tells so at once; to resolve it takes a call for each part.
fn real(path: &Path) -> Option<PathBuf> {
    path.symlink_metadata().ok()?;
    path.canonicalize().ok()
}

/// The components of an absolute pattern. A `/` inside braces or brackets does not occur in a usable pattern: the parts are
/// then no globs on their own, and the search for hidden files gives up on them and refuses.
fn components(pattern: &str) -> Vec<String> {
    pattern
        .split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether a component holds anything but a plain name.
pub(super) fn has_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// The normal form of an absolute path without asking the disk: no `.`, no `..`.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

#[cfg(test)]
mod tests;
