//! The fs guard: every file operation of every guest passes here.

use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use zeph_core::capability::FsGrant;

/// A compiled file grant.
#[derive(Debug)]
pub struct FsPolicy;

/// Why a file grant could not be compiled.
#[derive(Debug, thiserror::Error)]
#[error("the file grant cannot be used")]
pub struct FsPolicyError;

impl FsPolicy {
    /// Opens the roots and compiles the patterns.
    pub fn new(_grant: &FsGrant) -> Result<Self, FsPolicyError> {
        Err(FsPolicyError)
    }

    /// The path of the first root.
    pub fn working_directory(&self) -> Option<&str> {
        None
    }
}

/// The file state of one call.
#[derive(Debug)]
pub struct FsCtx {
    #[expect(dead_code, reason = "comes with the guard")]
    policy: Arc<FsPolicy>,
}

impl FsCtx {
    /// Begins a call under `policy`.
    pub fn new(policy: Arc<FsPolicy>) -> Self {
        Self { policy }
    }
}

/// The state of a call together with its resources.
#[derive(Debug)]
pub struct FsCtxView<'a> {
    /// The call's state.
    pub ctx: &'a mut FsCtx,
    /// The call's resources.
    pub table: &'a mut ResourceTable,
}

/// A tree walk in progress.
#[derive(Debug)]
pub struct Walker;

/// Marks the guard in a linker.
#[derive(Debug)]
pub struct Fs;

impl HasData for Fs {
    type Data<'a> = FsCtxView<'a>;
}

/// Links `wasi:filesystem` and `zeph:plugin/walk`.
pub fn add_to_linker<T: 'static + Send>(
    _linker: &mut Linker<T>,
    _view: fn(&mut T) -> FsCtxView<'_>,
) -> wasmtime::Result<()> {
    Ok(())
}
