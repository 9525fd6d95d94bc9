//! The first-party components, compiled and packed by the build script. They are unpacked when they have to be compiled, which most starts
//! of the program need not do, and not kept: all of them take more than 20 MB.

/// A component that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// The name of the plugin.
    pub name: &'static str,
    /// Its binary, unpacked at each call: some milliseconds.
    pub bytes: fn() -> Vec<u8>,
    /// The SHA-256 of the binary, as `sha256:` and 64 hexadecimal digits. Made with the program: to make it takes a start longer than all
    /// else it does with the bytes.
    pub digest: &'static str,
    /// The text of its manifest, which stands in the binary too; empty for components of filters.
    pub manifest: &'static str,
    /// Its tools as JSON, as it lists them itself: nobody who only looks at them waits until it is compiled. Empty for components of filters.
    pub tools: &'static str,
}

/// Every first-party plugin.
pub static COMPONENTS: &[Embedded] = &[
    Embedded {
        name: "diagnostics",
        bytes: diagnostics,
        digest: env!("GUEST_DIAGNOSTICS_DIGEST"),
        manifest: include_str!("../../diagnostics/plugin.toml"),
        tools: include_str!("../tools/diagnostics.json"),
    },
    Embedded {
        name: "file",
        bytes: file,
        digest: env!("GUEST_FILE_DIGEST"),
        manifest: include_str!("../../file/plugin.toml"),
        tools: include_str!("../tools/file.json"),
    },
    Embedded {
        name: "scrape",
        bytes: scrape,
        digest: env!("GUEST_SCRAPE_DIGEST"),
        manifest: include_str!("../../scrape/plugin.toml"),
        tools: include_str!("../tools/scrape.json"),
    },
    Embedded {
        name: "search",
        bytes: search,
        digest: env!("GUEST_SEARCH_DIGEST"),
        manifest: include_str!("../../search/plugin.toml"),
        tools: include_str!("../tools/search.json"),
    },
];

/// Every first-party component of filters.
pub static FILTERS: &[Embedded] = &[Embedded {
    name: "standard",
    bytes: standard,
    digest: env!("GUEST_STANDARD_DIGEST"),
    manifest: "",
    tools: "",
}];

/// `plugins/diagnostics`: what compilers and linters say.
pub fn diagnostics() -> Vec<u8> {
    unpacked(include_bytes!(env!("GUEST_DIAGNOSTICS_PACKED")))
}

/// `plugins/file`: the ten file tools.
pub fn file() -> Vec<u8> {
    unpacked(include_bytes!(env!("GUEST_FILE_PACKED")))
}

/// `plugins/scrape`: `web_scrape` and `fetch`.
pub fn scrape() -> Vec<u8> {
    unpacked(include_bytes!(env!("GUEST_SCRAPE_PACKED")))
}

/// `plugins/search`: `search_code`.
pub fn search() -> Vec<u8> {
    unpacked(include_bytes!(env!("GUEST_SEARCH_PACKED")))
}

/// `filters/standard`: the nine filter strategies.
pub fn standard() -> Vec<u8> {
    unpacked(include_bytes!(env!("GUEST_STANDARD_PACKED")))
}

/// What the build script packed; no component when that is damaged, which whoever compiles it says.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{COMPONENTS, FILTERS};

    /// The first eight bytes of a component: magic, version 13, layer 1.
    const COMPONENT_HEAD: [u8; 8] = [0x00, b'a', b's', b'm', 0x0d, 0x00, 0x01, 0x00];

    #[test]
    fn each_is_a_component() {
        for embedded in COMPONENTS.iter().chain(FILTERS) {
            let bytes = (embedded.bytes)();
            let name = embedded.name;
            assert!(
                bytes.starts_with(&COMPONENT_HEAD),
                "`{name}` is no component"
            );
        }
    }

    #[test]
    fn each_plugin_carries_its_manifest() {
        for embedded in COMPONENTS {
            let manifest = embedded.manifest.as_bytes();
            let bytes = (embedded.bytes)();
            let holds = bytes.windows(manifest.len()).any(|part| part == manifest);
            assert!(holds, "`{}` has another manifest inside", embedded.name);
        }
    }
}
