//! The fs guard: every file operation of every guest, in any language, passes here.
//!
//! It gives a guest exactly the granted roots, with separate rights to read, write, create and delete, and without what the
//! patterns hide. It decides on the object really opened (its handle, its kind, its real name as the kernel tells it),
//! never on the text of a path, and refuses what it cannot decide. A guest learns error codes and no host paths.
//!
//! In reading order: `policy` and `globs` (what is granted), `refusal` (what was not), `path`, `resolve` and `trace` (from a path
//! to an object), `handle`, `allowance` and `created` (what a call holds, how much, and what it made), `open`, `stat`, `file`, `streams`, `listing`, `mutate`, `rename` (the operations),
//! `aliases` and `sweep` (looking further than one object), `obeyed` and `laid_open` (what needs leave), `drafts` (what is decided later), `seen` (nothing is replaced that changed since it was read), `touched` (what a call was told), `uses` (what it used), `walk` (trees in batches), `host` (the border), `sys` (the
//! operating system).
//!
//! What it does not do: limit bytes written to disk, keep other programs from changing the tree, or carry over access
//! control lists.

mod aliases;
mod allowance;
mod drafts;
mod error;
mod file;
mod globs;
mod handle;
mod host;
mod laid_open;
mod listing;
mod mode;
mod mutate;
mod new_objects;
mod obeyed;
mod open;
mod path;
mod policy;
mod read_log;
mod refusal;
mod rename;
mod resolve;
mod rulings;
mod stat;
mod stop;
mod streams;
mod sweep;
mod sys;
#[cfg(test)]
mod tests;
mod touched;
mod trace;
mod uses;
mod walk;

use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::sync::filesystem::types;
use wasmtime_wasi::p2::{FsError, FsResult};
use zeph_core::policy::PrivatePaths;

use self::aliases::HiddenFiles;
use self::allowance::Allowance;
use self::drafts::Drafts;
use self::error::{Code, Fail, FsOutcome};
use self::new_objects::Created;
use self::read_log::ReadLog;
use self::touched::TouchLog;
use self::uses::UseLog;
use crate::missing_grant::{MissingGrant, Refusals};

pub use self::error::FsPolicyError;
pub use self::obeyed::{LeadSources, Leads, TooMany, holds, in_packages};
pub use self::policy::FsPolicy;
pub use self::rulings::Rulings;
pub use self::stop::StopSwitch;
pub use self::touched::Touched;
pub use self::uses::{FileUse, FileUses, UsedFiles};
pub use self::walk::Walker;

/// The file state of one call. Dropped with the call; nothing in it outlives one.
#[derive(Debug)]
pub struct FsCtx {
    policy: Arc<FsPolicy>,
    created: Created,
    drafts: Drafts,
    allowance: Allowance,
    hidden_files: HiddenFiles,
    seen: ReadLog,
    leads: Leads,
    stop: StopSwitch,
    refusals: Refusals,
    touched: TouchLog,
    uses: UseLog,
    is_used: bool,
    met_change: bool,
}

impl FsCtx {
    /// Begins a call under `policy`.
    pub fn new(policy: Arc<FsPolicy>) -> Self {
        Self {
            drafts: Drafts::new(Arc::clone(&policy)),
            leads: Leads::new(policy.lead_sources()),
            policy,
            created: Created::default(),
            allowance: Allowance::default(),
            hidden_files: HiddenFiles::default(),
            seen: ReadLog::default(),
            stop: StopSwitch::default(),
            refusals: Refusals::default(),
            touched: TouchLog::default(),
            uses: UseLog::default(),
            is_used: false,
            met_change: false,
        }
    }

    /// The same with everything written down that the call is told.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.touched = TouchLog::open();
        self
    }

    /// The same with a record of every object that the call uses.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.uses = UseLog::of_objects();
        self
    }

    /// The same that notes when a file of `private` is opened to be read.
    #[must_use]
    pub fn marking(mut self, private: Arc<PrivatePaths>) -> Self {
        self.uses = self.uses.marking(private);
        self
    }

    /// Takes what the call has used.
    pub fn take_used(&mut self) -> UsedFiles {
        self.uses.take(&self.policy)
    }

    /// Takes what the call was told; none when it was not watched, or when it could not be asked again.
    pub fn take_touched(&mut self) -> Option<Touched> {
        self.touched.take()
    }

    /// Whether something the call had read was changed by others before the call could change it.
    pub fn met_change(&self) -> bool {
        self.met_change
    }

    /// The switch that ends long file operations of this call from another thread.
    pub fn stop(&self) -> StopSwitch {
        self.stop.clone()
    }

    /// Whether the call learned or changed anything in a granted tree; that a name is free is something, too.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// Takes the operations refused so far because a right is missing.
    pub(crate) fn take_refused(&mut self) -> Vec<MissingGrant> {
        std::mem::take(&mut self.refusals).into_list()
    }

    /// Turns the outcome of an operation into what the guest sees, and notes what the host shall know of it.
    fn tell<T>(&mut self, outcome: FsOutcome<T>) -> FsResult<T> {
        match outcome {
            Ok(value) => {
                self.is_used = true;
                Ok(value)
            }
            Err(fail) => Err(self.tell_failed(fail)),
        }
    }

    #[cold]
    fn tell_failed(&mut self, fail: Fail) -> FsError {
        match fail {
            Fail::Refused(refusal) => {
                self.touched.spoil();
                self.refusals.directory(refusal.path, refusal.missing);
                Code::NotPermitted.into()
            }
            Fail::Obeyed(obeyed) => {
                self.is_used = true;
                self.refusals.obeyed(obeyed.path, obeyed.name);
                Code::NotPermitted.into()
            }
            Fail::Code(code) => {
                self.is_used |= code != Code::NotPermitted;
                self.met_change |= code == Code::WouldBlock;
                if !is_lasting(code) {
                    self.touched.spoil();
                }
                code.into()
            }
            Fail::Trap(error) => FsError::trap(error),
        }
    }
}

/// Whether the object and the path alone lead to `code`, and not the moment.
fn is_lasting(code: Code) -> bool {
    matches!(
        code,
        Code::NoEntry
            | Code::NotDirectory
            | Code::IsDirectory
            | Code::NotPermitted
            | Code::Access
            | Code::Loop
            | Code::Invalid
            | Code::NameTooLong
            | Code::BadDescriptor
            | Code::Unsupported
    )
}

/// The state of a call together with its resources.
#[derive(Debug)]
pub struct FsCtxView<'a> {
    /// The call's state.
    pub ctx: &'a mut FsCtx,
    /// The call's resources.
    pub table: &'a mut ResourceTable,
}

/// Marks the guard in a linker.
struct Fs;

impl HasData for Fs {
    type Data<'a> = FsCtxView<'a>;
}

/// Links `wasi:filesystem`, `zeph:plugin/walk` and `zeph:plugin/files`.
///
/// The functions run on the guest's thread and block it: the store may be asynchronous, file calls are not.
///
/// Errors: those of wasmtime, if a name is linked already.
pub fn add_to_linker<T: 'static + Send>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> FsCtxView<'_>,
) -> wasmtime::Result<()> {
    types::add_to_linker::<T, Fs>(linker, view)?;
    preopens::add_to_linker::<T, Fs>(linker, view)?;
    crate::bindings::zeph::plugin::walk::add_to_linker::<T, Fs>(linker, view)?;
    crate::bindings::zeph::plugin::files::add_to_linker::<T, Fs>(linker, view)
}
