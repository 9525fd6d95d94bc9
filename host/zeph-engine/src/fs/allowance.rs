//! What a call may hold in the host at one time: open handles, names, patterns.
//!
//! A guest's memory is counted where it grows; what the host keeps on its behalf is counted here, over all descriptors and
//! walks of the call together.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::Code;

/// Something that is counted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stock {
    /// Open files and directories, streams and walks included.
    Handles,
    /// Names of directory entries that walks hold.
    Names,
    /// Bytes of text of the globs and ignore files that walks hold in compiled form.
    PatternBytes,
}

impl Stock {
    /// The most of it.
    ///
    /// Handles: programs rarely hold a hundred; a process shared by many calls has some thousands in all. Names: some 60 MB of
    /// usual ones; sorting needs all names of a directory together, so this is also the largest directory a walk enters.
    /// Pattern bytes: compiled, the worst of them take a thousand times their size (measured: 64 KiB of `*a*b*` are 68 MB
    /// and take half a second); ignore files of real trees have some kilobytes.
    fn max(self) -> usize {
        match self {
            Self::Handles => 512,
            // Smaller in tests, which would otherwise spend seconds on making files.
            Self::Names if cfg!(test) => 2_500,
            Self::Names => 1_000_000,
            Self::PatternBytes => 128 * 1024,
        }
    }
}

/// Counts what a call holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowance(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    handles: AtomicUsize,
    names: AtomicUsize,
    pattern_bytes: AtomicUsize,
}

/// A part of the allowance, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    allowance: Allowance,
    stock: Stock,
    n: usize,
}

/// An open handle of the operating system that counts against its call until it is closed.
#[derive(Debug)]
pub(super) struct HandleLease {
    fd: OwnedFd,
    _share: Share,
}

impl Allowance {
    /// Takes `n` of `stock`.
    ///
    /// Errors: quota when the call holds too much already.
    pub(super) fn take(&self, stock: Stock, n: usize) -> Result<Share, Code> {
        let count = self.count(stock);
        if count.fetch_add(n, Ordering::Relaxed) + n > stock.max() {
            count.fetch_sub(n, Ordering::Relaxed);
            return Err(Code::Quota);
        }
        Ok(Share {
            allowance: self.clone(),
            stock,
            n,
        })
    }

    /// How much of `stock` is left.
    pub(super) fn left(&self, stock: Stock) -> usize {
        let taken = self.count(stock).load(Ordering::Relaxed);
        stock.max().saturating_sub(taken)
    }

    /// Takes `fd` into the call.
    ///
    /// Errors: quota when the call holds too many already; `fd` is closed.
    pub(super) fn hold(&self, fd: OwnedFd) -> Result<HandleLease, Code> {
        let share = self.take(Stock::Handles, 1)?;
        Ok(HandleLease { fd, _share: share })
    }

    fn count(&self, stock: Stock) -> &AtomicUsize {
        match stock {
            Stock::Handles => &self.0.handles,
            Stock::Names => &self.0.names,
            Stock::PatternBytes => &self.0.pattern_bytes,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.allowance
            .count(self.stock)
            .fetch_sub(self.n, Ordering::Relaxed);
    }
}

impl AsFd for HandleLease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
