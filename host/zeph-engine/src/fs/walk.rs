//! `zeph:plugin/walk`: lists trees in batches under the same rights and patterns as every other file operation.
//!
//! A walk goes from handle to handle: each directory is opened as an entry of the one above it and never through a link, so
//! it stays in the tree it started in, whatever happens to the names meanwhile. It holds the names of the directories on the way down,
//! and handles of the last of them; one that is opened anew must be the same directory still.

mod frame;
mod ignore;
mod options;

use std::path::Path;
use std::sync::Arc;

use wasmtime::component::Resource;
use zeph_core::capability::FsRights;

use self::frame::{Entered, Frame, Trail};
use self::ignore::Rules;
use self::options::WalkFilters;
use super::allowance::Allowance;
use super::error::{Code, Fail};
use super::handle::DirHandle;
use super::path::GuestPath;
use super::policy::{FsPolicy, RootId};
use super::refusal::MissingRights;
use super::resolve::ResolvedObject;
use super::stop::StopSwitch;
use super::touched::{Origin, TouchLog};
use super::uses::{FileUses, UseLog};
use super::{FsCtx, FsCtxView, sys};
use crate::bindings::zeph::plugin::walk::{Entry, Host, HostWalker, Options, WalkError};

/// Directories one inside the other that a walk keeps open; those above are opened anew when it comes back to them. Trees people
/// make are below 50.
const OPEN_MAX: usize = if cfg!(test) { 4 } else { 128 };

/// Most entries one batch holds.
const BATCH_ENTRIES_MAX: u32 = 4096;

/// A tree walk in progress.
#[derive(Debug)]
pub struct Walker {
    policy: Arc<FsPolicy>,
    allowance: Allowance,
    stop: StopSwitch,
    touched: TouchLog,
    uses: UseLog,
    filters: WalkFilters,
    frames: Vec<Frame>,
}

/// Why a walk cannot go on.
#[derive(Debug)]
pub(super) enum Halt {
    /// The guest gets the error.
    Told(WalkError),
    /// The guest gets "denied", and the refusal is recorded.
    Refused(Box<MissingRights>),
    /// The call ends.
    Trap(wasmtime::Error),
}

impl From<WalkError> for Halt {
    fn from(error: WalkError) -> Self {
        Self::Told(error)
    }
}

impl From<Fail> for Halt {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Trap(error) => Self::Trap(error),
            Fail::Refused(refusal) => Self::Refused(refusal),
            // A walk changes nothing, and what else resolves paths as it does asks before.
            Fail::Obeyed(_) => Self::Told(WalkError::Denied),
            Fail::Code(Code::NoEntry) => Self::Told(WalkError::NotFound),
            Fail::Code(Code::NotDirectory) => Self::Told(WalkError::NotADirectory),
            Fail::Code(Code::Quota) => Self::Told(WalkError::Limit),
            Fail::Code(_) => Self::Told(WalkError::Denied),
        }
    }
}

impl Host for FsCtxView<'_> {}

impl HostWalker for FsCtxView<'_> {
    fn open(
        &mut self,
        root: String,
        options: Options,
    ) -> wasmtime::Result<Result<Resource<Walker>, WalkError>> {
        match Walker::open(self.ctx, &root, &options) {
            Ok(walker) => {
                self.ctx.is_used = true;
                Ok(Ok(self.table.push(walker)?))
            }
            Err(halt) => self.ctx.tell_halted(halt).map(Err),
        }
    }

    fn next(
        &mut self,
        walker: Resource<Walker>,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<Entry>, WalkError>> {
        match self.table.get_mut(&walker)?.next(max) {
            Ok(entries) => Ok(Ok(entries)),
            Err(halt) => self.ctx.tell_halted(halt).map(Err),
        }
    }

    fn drop(&mut self, walker: Resource<Walker>) -> wasmtime::Result<()> {
        self.table.delete(walker)?;
        Ok(())
    }
}

impl FsCtx {
    /// The error for the guest; the host records its own details.
    pub(super) fn tell_halted(&mut self, halt: Halt) -> wasmtime::Result<WalkError> {
        match halt {
            Halt::Told(error) => {
                self.is_used |= error != WalkError::Denied;
                self.touched.spoil();
                Ok(error)
            }
            Halt::Refused(refusal) => {
                self.touched.spoil();
                self.refusals.directory(refusal.path, refusal.missing);
                Ok(WalkError::Denied)
            }
            Halt::Trap(error) => Err(error),
        }
    }
}

impl Walker {
    fn open(ctx: &FsCtx, root: &str, options: &Options) -> Result<Self, Halt> {
        let policy = Arc::clone(&ctx.policy);
        let filters = WalkFilters::new(options, &ctx.allowance)?;
        let found = locate(&policy, root, FsRights::READ).inspect_err(|_| ctx.touched.spoil())?;
        let asked = ctx.touched.located(&policy, root, &found);
        if !found.meta.is_dir() {
            return Err(WalkError::NotADirectory.into());
        }
        if !policy.rights(found.root).read {
            return Err(found.refused(&policy, FsRights::READ).into());
        }
        let mut walker = Self {
            allowance: ctx.allowance.clone(),
            stop: ctx.stop.clone(),
            touched: ctx.touched.clone(),
            uses: ctx.uses.clone(),
            frames: Vec::new(),
            filters,
            policy,
        };
        if walker.filters.depth_max > 0 {
            let top = walker.top_frame(found, asked)?;
            walker.push(top)?;
        }
        Ok(walker)
    }

    /// The frame of the directory the walk starts at, with the ignore files of the directories above it.
    fn top_frame(&self, found: ResolvedObject, asked: Option<u32>) -> Result<Frame, Halt> {
        let policy = &*self.policy;
        let name = policy.kernel().name(&found.fd).map_err(Fail::from)?;
        let top = policy.root(found.root);
        let below = name
            .strip_prefix(&top.path)
            .ok()
            .and_then(Path::to_str)
            .unwrap_or_default()
            .to_owned();
        let rules = if self.filters.standard {
            Rules::above(policy, (&self.allowance, &self.touched), found.root, &below)?
        } else {
            None
        };
        let opened = sys::open_directory(&found.fd, ".").map_err(|_| WalkError::Denied)?;
        let held = self.allowance.hold(opened).map_err(Fail::from)?;
        let place = policy.needs_names().then(|| (policy.shade(&name), name));
        let above = if below.is_empty() { below } else { below + "/" };
        let trail = Trail {
            touched: self.touched.clone(),
            root: found.root,
            origin: asked.map(Origin::Found),
        };
        Ok(Frame::new(
            held,
            found.meta.id,
            above,
            place,
            (rules, trail),
        ))
    }

    /// Lists a directory and makes it the one the walk is in.
    fn push(&mut self, mut frame: Frame) -> Result<(), Halt> {
        frame.fill(&self.policy, &self.filters, &self.stop, &self.allowance)?;
        let name = || self.policy.kernel().name(&frame.dir()?).ok();
        self.uses.note((frame.root(), true), FileUses::LIST, name);
        self.frames.push(frame);
        // The first stays open: the others are reached from it.
        if let Some(above) = self.frames.len().checked_sub(OPEN_MAX).filter(|at| *at > 0) {
            self.frames[above].close();
        }
        Ok(())
    }

    /// Opens the directory the walk came back to; leaves it when it is not there any more.
    fn come_back(&mut self) -> Result<(), Halt> {
        let Some((top, frame)) = self.frames.split_first_mut() else {
            return Ok(());
        };
        let (Some(top), Some(frame)) = (top.dir(), frame.last_mut()) else {
            return Ok(());
        };
        if frame.is_open() || frame.is_done() {
            return Ok(());
        }
        if !frame.open_from(top, self.policy.kernel(), &self.allowance)? {
            self.touched.spoil();
            self.frames.pop();
        }
        Ok(())
    }

    fn next(&mut self, max: u32) -> Result<Vec<Entry>, Halt> {
        let max = max.clamp(1, BATCH_ENTRIES_MAX) as usize;
        let mut batch = Vec::with_capacity(max.min(256));
        while batch.len() < max {
            self.come_back()?;
            let depth = self.frames.len();
            let Some(frame) = self.frames.last_mut() else {
                break;
            };
            let Some(seen) = frame.advance() else {
                self.frames.pop();
                continue;
            };
            let Some(entry) = frame.entry(seen, (&self.policy, &self.filters)) else {
                self.touched.spoil();
                continue;
            };
            let descends =
                seen.is_dir() && depth < self.filters.depth_max && frame.can_be_named(seen);
            let entered = if descends {
                frame.enter(seen, &self.policy, &self.filters, &self.allowance)?
            } else {
                Entered::Gone
            };
            match entered {
                Entered::Closed => batch.push(Entry {
                    path: entry.path + "/",
                    ..entry
                }),
                _ if seen.is_dir() && !self.filters.yields_directories() => {}
                _ => batch.push(entry),
            }
            if let Entered::Inside(inner) = entered {
                self.push(*inner)?;
            }
        }
        Ok(batch)
    }
}

/// Opens a guest path, absolute or taken from the working directory, in order to do something that needs `rights`.
pub(super) fn locate(
    policy: &FsPolicy,
    path: &str,
    rights: FsRights,
) -> Result<ResolvedObject, Halt> {
    let (root, below) = place(policy, path).ok_or(WalkError::Denied)?;
    let below = if below.is_empty() { "." } else { &below };
    let start = DirHandle::top(root);
    let parsed = GuestPath::parse(below).map_err(Fail::from)?;
    policy
        .reach(start.asking(rights), parsed, true)
        .map_err(|fail| match fail {
            // Told by the text alone, so that it does not show whether the hidden thing exists.
            Fail::Code(Code::NoEntry) if hides(policy, root, below) => {
                Halt::Told(WalkError::Denied)
            }
            fail => fail.into(),
        })
}

fn hides(policy: &FsPolicy, root: RootId, below: &str) -> bool {
    policy
        .trace(Path::new(&policy.root(root).path), below, true)
        .is_ok_and(|traced| traced.through_hidden)
}

/// The root a guest path starts in, and the rest. Guests know the roots by their names; an absolute path that begins with
/// none of them is not looked at further, since following it would tell about places outside.
pub(super) fn place(policy: &FsPolicy, path: &str) -> Option<(RootId, String)> {
    let (first, working_directory) = policy.roots().next()?;
    if path.contains('\0') {
        return None;
    }
    if !path.starts_with('/') && working_directory.handle().is_some() {
        return Some((first, path.to_owned()));
    }
    // Below a working directory without rights there may be a tree with some.
    let path = Path::new(&working_directory.path).join(path);
    let other = policy.other_paths().find_map(|(id, other)| {
        let below = path.strip_prefix(other).ok()?.to_str()?;
        Some((id, below.to_owned()))
    });
    let holding = policy
        .roots()
        .filter(|(_, root)| path.starts_with(&root.path));
    let Some((id, root)) = holding.max_by_key(|(_, root)| root.path.len()) else {
        return other;
    };
    let below = path.strip_prefix(&root.path).ok()?;
    Some((id, below.to_str()?.to_owned()))
}
