//! Which host a core module was made for, by the names of the modules it imports from: its author has to know what to do instead.

use std::fmt;

use serde::Serialize;
use wasmparser::{Parser, Payload};

/// Most imports that are looked at. Modules that name their host do so in the first dozen.
const IMPORTS_MAX: usize = 1_000;

/// The host a core module was made for; those that say more come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeFor {
    /// Extism, whose plugins read and write one buffer of bytes.
    Extism,
    /// waPC, whose plugins do so too.
    Wapc,
    /// A proxy such as Envoy.
    ProxyWasm,
    /// JavaScript, by wasm-bindgen.
    WasmBindgen,
    /// JavaScript, by Emscripten.
    Emscripten,
    /// JavaScript, by Go's own compiler.
    GoJs,
    /// Programs of WASI preview 1.
    Preview1,
    /// Programs of WASI before its first preview.
    Unstable,
    /// None that is known here.
    Unknown,
}

impl MadeFor {
    /// Reads the imports of a core module, as far as they can be read.
    pub(super) fn of(module: &[u8]) -> Self {
        let payloads = Parser::new(0).parse_all(module).map_while(Result::ok);
        let imports = payloads.filter_map(|payload| match payload {
            Payload::ImportSection(section) => Some(section),
            _ => None,
        });
        let imports = imports.flat_map(|section| section.into_imports().map_while(Result::ok));
        imports
            .take(IMPORTS_MAX)
            .map(|import| Self::of_import(import.module, import.name))
            // A module of Extism imports WASI, too.
            .min()
            .unwrap_or(Self::Unknown)
    }

    fn of_import(module: &str, name: &str) -> Self {
        match module {
            "extism:host/env" | "extism:host/user" => Self::Extism,
            "env" if name.starts_with("extism_") => Self::Extism,
            "env" if name.starts_with("proxy_") => Self::ProxyWasm,
            "env" if name.starts_with("emscripten_") || name.starts_with("_emscripten_") => {
                Self::Emscripten
            }
            "wapc" => Self::Wapc,
            "gojs" | "go" => Self::GoJs,
            "wasi_snapshot_preview1" => Self::Preview1,
            "wasi_unstable" => Self::Unstable,
            _ if module.starts_with("extism:") => Self::Extism,
            _ if module.starts_with("__wbindgen_") || module == "wbg" => Self::WasmBindgen,
            _ if name.starts_with("__wbg_") || name.starts_with("__wbindgen_") => Self::WasmBindgen,
            _ => Self::Unknown,
        }
    }

    /// The program that such a module is made for; none if unknown.
    fn host(self) -> Option<&'static str> {
        Some(match self {
            Self::Extism => "Extism",
            Self::Wapc => "waPC",
            Self::ProxyWasm => "a proxy (Proxy-Wasm)",
            Self::WasmBindgen => "JavaScript (wasm-bindgen)",
            Self::Emscripten => "JavaScript (Emscripten)",
            Self::GoJs => "JavaScript (Go)",
            Self::Preview1 => "WASI preview 1, such as `wasm32-wasip1`",
            Self::Unstable => "WASI before its first preview (`wasi_unstable`)",
            Self::Unknown => return None,
        })
    }
}

impl fmt::Display for MadeFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(host) = self.host() {
            write!(f, " (it is made for {host})")?;
        }
        f.write_str(match self {
            Self::Extism | Self::Wapc | Self::ProxyWasm => {
                "; such a module speaks the protocol of that host and cannot be converted: ask its author for a component, or put \
                 its functions into a project of `zeph-host plugin new`"
            }
            Self::WasmBindgen | Self::Emscripten | Self::GoJs => {
                "; build its source for a target without a browser that makes components (Rust: `--target wasm32-wasip2`)"
            }
            Self::Preview1 | Self::Unstable | Self::Unknown => {
                "; build it for a target that makes components (Rust: `--target wasm32-wasip2`), or make it one with \
                 `wasm-tools component new`"
            }
        })
    }
}
