//! What a component says about itself, as custom sections: its manifest, and the facts of its `Cargo.toml`.
//!
//! Names of the sections: `zeph:manifest` is the host's, the others are those of wasm-metadata. They end up in the core module of
//! the component, where the host looks for them too.

/// Puts the plugin's manifest into the component. [`export!`](crate::export) does it when it is given one.
#[macro_export]
macro_rules! manifest {
    ($file:literal) => {
        $crate::section!("zeph:manifest", include_str!($file));
    };
}

/// Puts the facts of the calling crate's `Cargo.toml` into the component.
#[doc(hidden)]
#[macro_export]
macro_rules! about {
    () => {
        $crate::section!("version", env!("CARGO_PKG_VERSION"));
        $crate::section!("description", env!("CARGO_PKG_DESCRIPTION"));
        $crate::section!("authors", env!("CARGO_PKG_AUTHORS"));
        $crate::section!("licenses", env!("CARGO_PKG_LICENSE"));
    };
}

/// One custom section. A static with a section of its own is one in WebAssembly, and ordinary data elsewhere.
#[doc(hidden)]
#[macro_export]
macro_rules! section {
    ($name:literal, $text:expr) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $text;
            #[expect(
                unsafe_code,
                reason = "a custom section is text beside the program: nothing is run or linked through it"
            )]
            #[used]
            #[unsafe(link_section = $name)]
            static SECTION: [u8; TEXT.len()] = $crate::section(TEXT);
        };
    };
}

/// The bytes of `text`, which has `N`, as a value: a section may hold no reference.
#[doc(hidden)]
pub const fn section<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut idx = 0;
    while idx < N {
        bytes[idx] = text.as_bytes()[idx];
        idx += 1;
    }
    bytes
}
