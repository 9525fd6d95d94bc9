//! The components that are part of the program.

use std::sync::{Arc, LazyLock};

use zeph_core::id::Digest;
use zeph_core::manifest::{BadManifest, Manifest};
use zeph_engine::Plugin;

use super::set::{LazyManifest, VettedPlugin, read_manifest};

/// A component that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// The plugin's name.
    pub name: &'static str,
    /// Its binary, which may have to be unpacked.
    pub bytes: fn() -> Vec<u8>,
    /// The SHA-256 of its binary, where that was made with the program.
    pub digest: Option<&'static str>,
    /// The text of its manifest; empty for one that wants nothing.
    pub manifest: &'static str,
}

impl Component {
    /// The components that come with the host.
    pub fn first_party() -> Vec<Self> {
        zeph_bundle::COMPONENTS
            .iter()
            .map(|embedded| Self {
                name: embedded.name,
                bytes: embedded.bytes,
                digest: Some(embedded.digest),
                manifest: embedded.manifest,
            })
            .collect()
    }

    /// The loaded component as a plugin of the program. The manifest of one that was made with the program is read when it is needed.
    ///
    /// Errors: what is wrong with its manifest, which is a defect of the program.
    pub fn with(&self, plugin: Plugin) -> Result<Arc<VettedPlugin>, BadManifest> {
        let text = self.manifest;
        let manifest: LazyManifest = match self.digest {
            // That it can be read is tested. One that cannot requests nothing.
            Some(_) => LazyLock::new(Box::new(move || Manifest::parse(text).unwrap_or_default())),
            None => read_manifest(Manifest::parse(text)?),
        };
        Ok(Arc::new(VettedPlugin::of_program(plugin, manifest)))
    }

    /// The SHA-256 of its binary. That of a component that comes with the host was made with it.
    pub fn digest(&self) -> Digest {
        let known = self.digest.and_then(|digest| digest.parse().ok());
        known.unwrap_or_else(|| zeph_engine::digest(&(self.bytes)()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zeph_core::id::PluginId;
    use zeph_core::limit::CallLimits;
    use zeph_core::manifest::Manifest;
    use zeph_engine::{Engine, EngineOptions, Plugin};

    use super::Component;

    /// A start takes them as they are: [`Plugin::embedded`] does not compile their schemas.
    #[tokio::test]
    async fn what_the_program_trusts_of_its_own_components_is_right() {
        let options = EngineOptions {
            guest_threads: 1,
            pooled: false,
            cache_dir: None,
            on_compile: None,
        };
        let engine = Engine::new(&options).unwrap();
        for component in Component::first_party() {
            let id = PluginId(component.name.to_owned());
            let limits = CallLimits {
                wall_clock: Duration::from_secs(60),
                cpu: Duration::from_secs(60),
                memory_bytes: 256 << 20,
                table_elements: 100_000,
                output_bytes: 1 << 20,
                log_bytes: 1 << 20,
                host_calls: 1_000,
                handles: 100,
            };
            let manifest = Manifest::parse(component.manifest);
            assert!(manifest.is_ok(), "{}: {manifest:?}", component.name);
            let loaded = Plugin::load(&engine, id, (component.bytes)(), limits).await;
            assert!(loaded.is_ok(), "{}: {loaded:?}", component.name);
        }
    }

    #[test]
    fn the_digests_made_with_the_program_are_those_of_the_bytes() {
        for embedded in zeph_bundle::COMPONENTS.iter().chain(zeph_bundle::FILTERS) {
            let made = zeph_engine::digest(&(embedded.bytes)());
            assert_eq!(
                embedded.digest.parse().ok(),
                Some(made),
                "{}",
                embedded.name
            );
        }
    }
}
