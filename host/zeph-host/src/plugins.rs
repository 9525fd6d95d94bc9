//! Plugins that strangers wrote: found in folders, pinned, granted, swapped, and kept apart from everything else.
//!
//! In reading order: `lock` (what was accepted, `zeph.lock`), `diff` (what changed since), `author` (projects for those who write
//! plugins). Nothing here runs a guest: that is the engine's.
