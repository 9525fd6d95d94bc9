//! The components that are part of the program.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::value::RawValue;
use zeph_core::argument::Parameters;
use zeph_core::id::Digest;
use zeph_core::manifest::{BadManifest, Manifest};
use zeph_core::schema::Schema;
use zeph_core::tool::Tool;
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

    /// Its tools, where they were made with the program. None of any other component, which has to be asked.
    pub fn tools(&self) -> Option<Vec<Tool>> {
        let digest = self.digest?;
        let mut embedded = zeph_bundle::COMPONENTS.iter();
        let text = embedded.find(|embedded| embedded.digest == digest)?.tools;
        let tools: Vec<BTreeMap<&str, &RawValue>> = serde_json::from_str(text).ok()?;
        tools.into_iter().map(trusted).collect()
    }

    /// The SHA-256 of its binary. That of a component that comes with the host was made with it.
    pub fn digest(&self) -> Digest {
        let known = self.digest.and_then(|digest| digest.parse().ok());
        known.unwrap_or_else(|| zeph_engine::digest(&(self.bytes)()))
    }
}

/// A tool that was made with the program. Its schemas, which are tested, are read when they are first looked at: each start would pay for it.
fn trusted(mut tool: BTreeMap<&str, &RawValue>) -> Option<Tool> {
    let any: &RawValue = serde_json::from_str(r#"{"type": "object"}"#).ok()?;
    let kept = |schema: &RawValue| Schema::of_text(schema.get().to_owned());
    let parameters = kept(tool.insert("parameters", any)?);
    let output = tool.remove("output").map(kept);
    let tool: Tool = serde_json::from_str(&serde_json::to_string(&tool).ok()?).ok()?;
    Some(Tool {
        parameters: Parameters::trusted(parameters),
        output,
        ..tool
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use serde::Serialize as _;
    use serde_json::json;
    use serde_json::ser::PrettyFormatter;
    use zeph_core::id::PluginId;
    use zeph_core::limit::CallLimits;
    use zeph_core::manifest::Manifest;
    use zeph_engine::{Engine, EngineOptions, Plugin};

    use super::Component;

    /// A start takes them as they are, and asks no component. `ZEPH_BLESS=1` writes the tools anew.
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
            let listed = json!(loaded.unwrap().tools());
            #[expect(
                clippy::disallowed_methods,
                reason = "asks the person who runs the tests"
            )]
            let bless = std::env::var_os("ZEPH_BLESS").is_some();
            if bless {
                let file = format!("../../plugins/bundle/tools/{}.json", component.name);
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
                // A line for each value, and no indentation, which every start would read.
                let mut text = Vec::new();
                let lines = PrettyFormatter::with_indent(b"");
                let mut writer = serde_json::Serializer::with_formatter(&mut text, lines);
                listed.serialize(&mut writer).unwrap();
                text.push(b'\n');
                fs::write(file, text).unwrap();
                continue;
            }
            assert_eq!(
                json!(component.tools()),
                listed,
                "ZEPH_BLESS=1 writes plugins/bundle/tools/{}.json anew",
                component.name
            );
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
