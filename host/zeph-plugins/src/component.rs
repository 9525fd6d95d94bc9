//! The components that are part of the program.

use std::sync::Arc;

use zeph_core::manifest::{BadManifest, Manifest};
use zeph_engine::Plugin;

use super::set::Good;

/// A component that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// The plugin's name.
    pub name: &'static str,
    /// Its binary.
    pub bytes: &'static [u8],
    /// The text of its manifest; empty for one that wants nothing.
    pub manifest: &'static str,
}

impl Component {
    /// The components that come with the host.
    pub fn first_party() -> Vec<Self> {
        zeph_bundle::COMPONENTS
            .iter()
            .map(|(name, bytes, manifest)| Self {
                name,
                bytes,
                manifest,
            })
            .collect()
    }

    /// The loaded component as a plugin of the program.
    ///
    /// Errors: what is wrong with its manifest, which is a defect of the program.
    pub fn with(&self, plugin: Plugin) -> Result<Arc<Good>, BadManifest> {
        let manifest = Manifest::parse(self.manifest)?;
        Ok(Arc::new(Good::of_program(plugin, manifest)))
    }
}
