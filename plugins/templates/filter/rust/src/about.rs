//! What the component says about itself: the facts of `Cargo.toml`, as the custom sections in which hosts look for them.

/// One custom section: in WebAssembly, a static with a section of its own is one.
macro_rules! section {
    ($name:literal, $text:expr) => {
        const _: () = {
            #[used]
            #[unsafe(link_section = $name)]
            static SECTION: [u8; $text.len()] = bytes($text);
        };
    };
}

section!("version", env!("CARGO_PKG_VERSION"));
section!("description", env!("CARGO_PKG_DESCRIPTION"));
section!("licenses", env!("CARGO_PKG_LICENSE"));

/// The bytes of `text`, which has `N`, as a value: a section may hold no reference.
const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut idx = 0;
    while idx < N {
        bytes[idx] = text.as_bytes()[idx];
        idx += 1;
    }
    bytes
}
