//! The components that are part of the program.

/// A component that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// The plugin's name.
    pub name: &'static str,
    /// Its binary.
    pub bytes: &'static [u8],
}

impl Component {
    /// The components that come with the host.
    pub fn first_party() -> Vec<Self> {
        zeph_bundle::COMPONENTS
            .iter()
            .map(|(name, bytes)| Self { name, bytes })
            .collect()
    }
}
