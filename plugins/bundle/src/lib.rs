//! The first-party components as bytes, compiled by the build script. No logic.

/// `plugins/file`: the ten file tools.
pub static FILE: &[u8] = include_bytes!(env!("GUEST_FILE"));

/// `filters/standard`: the nine filter strategies.
pub static STANDARD: &[u8] = include_bytes!(env!("GUEST_STANDARD"));

/// Every first-party component of filters with its id.
pub static FILTERS: &[(&str, &[u8])] = &[("standard", STANDARD)];

/// Every first-party plugin with its id.
pub static COMPONENTS: &[(&str, &[u8])] = &[("file", FILE)];

#[cfg(test)]
mod tests {
    use super::{COMPONENTS, FILTERS};

    /// The first eight bytes of a component: magic, version 13, layer 1.
    const COMPONENT_HEAD: [u8; 8] = [0x00, b'a', b's', b'm', 0x0d, 0x00, 0x01, 0x00];

    #[test]
    fn each_is_a_component() {
        for (id, bytes) in COMPONENTS.iter().chain(FILTERS) {
            assert!(bytes.starts_with(&COMPONENT_HEAD), "`{id}` is no component");
        }
    }
}
