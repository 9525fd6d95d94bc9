//! Plugins as artifacts: how they are named, fetched from registries, signed, listed in indexes and packed for machines without a network.
//!
//! In reading order: `reference` (what names an artifact), `package` (what names one for wkg), `pulled` (what came of it), `manifest` (what a registry may say an artifact
//! is), `credentials` (who the operator is to a registry), `registry` (the client: fetching and publishing, over the egress),
//! `signature` (files of minisign, bundles of Sigstore), `document` (what a signature covers), `trust` (whose signature counts),
//! `index` (what a publisher offers), `bundle` (all of it in one file, for a machine without a network).

pub mod bundle;
pub mod credentials;
pub mod document;
pub mod index;
pub mod manifest;
pub mod package;
pub mod pulled;
pub mod reference;
pub mod registry;
pub mod signature;
pub mod trust;
