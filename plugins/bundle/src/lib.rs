//! The first-party components as bytes, compiled by the build script. No logic.

/// `plugins/file`: the ten file tools.
pub static FILE: &[u8] = include_bytes!(env!("GUEST_FILE"));

/// `filters/standard`: the nine filter strategies.
pub static STANDARD: &[u8] = include_bytes!(env!("GUEST_STANDARD"));

/// Every first-party component of filters with its id.
pub static FILTERS: &[(&str, &[u8])] = &[("standard", STANDARD)];

/// Every first-party plugin: its id, its binary, and the text of its manifest, which stands in the binary too.
pub static COMPONENTS: &[(&str, &[u8], &str)] =
    &[("file", FILE, include_str!("../../file/plugin.toml"))];

/// The SHA-256 of every component, as `sha256:` and 64 hexadecimal digits. Made with the program: to make it takes a start longer than
/// all else it does with the bytes.
pub static DIGESTS: &[(&[u8], &str)] = &[
    (FILE, env!("GUEST_FILE_DIGEST")),
    (STANDARD, env!("GUEST_STANDARD_DIGEST")),
];

#[cfg(test)]
mod tests {
    use super::{COMPONENTS, FILTERS};

    /// The first eight bytes of a component: magic, version 13, layer 1.
    const COMPONENT_HEAD: [u8; 8] = [0x00, b'a', b's', b'm', 0x0d, 0x00, 0x01, 0x00];

    #[test]
    fn each_is_a_component() {
        let plugins = COMPONENTS.iter().map(|(id, bytes, _)| (id, bytes));
        for (id, bytes) in plugins.chain(FILTERS.iter().map(|(id, bytes)| (id, bytes))) {
            assert!(bytes.starts_with(&COMPONENT_HEAD), "`{id}` is no component");
        }
    }

    #[test]
    fn each_plugin_carries_its_manifest() {
        for (id, bytes, manifest) in COMPONENTS {
            let holds = bytes
                .windows(manifest.len())
                .any(|part| part == manifest.as_bytes());
            assert!(holds, "`{id}` has another manifest inside");
        }
    }
}
