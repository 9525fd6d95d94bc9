//! Components of filters written in the text format, and an engine to run them on.

use tokio::runtime::Runtime;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;
use zeph_core::id::PluginId;

use crate::filter::{FILTER_LIMITS, FilterAnswer, FilterFailure, FilterInput, FilterSession};
use crate::{Engine, EngineOptions, LoadError, Plugin};

/// The body of an `apply` that keeps the first line.
pub(super) const HONEST: &str = "(call $keep (i32.const 0) (i32.const 1))";

/// What a guest may import besides, with one function each.
const WASI: &str = "
    package wasi:clocks@0.2.0 { interface monotonic-clock { now: func() -> u64; } }
    package wasi:random@0.2.0 { interface random { get-random-u64: func() -> u64; } }";

/// A component with one strategy `s`. Options `bad` are refused.
///
/// Shape: `imports` are core imports of [`WASI`]; `apply` is the body of the function, which leaves the address of a `filtered`. It has
///        `$keep` (first, count) and `$note` (pointer, length), which write one at 2048, and the globals `$n` and `$made`.
pub(super) fn component(imports: &str, apply: &str) -> Vec<u8> {
    module(imports, apply, "s", "{}")
}

/// A component whose only strategy is listed so.
pub(super) fn listing(name: &str, options: &str) -> Vec<u8> {
    module("", HONEST, name, options)
}

fn module(imports: &str, apply: &str, name: &str, options: &str) -> Vec<u8> {
    let (n_name, n_options) = (name.len(), options.len());
    let strategies = "zeph:filter/strategies@0.1.0";
    let escaped = options.replace('"', "\\22");
    let wat = format!(
        r#"(module
        (import "[export]{strategies}" "[resource-new]strategy" (func $new (param i32) (result i32)))
        {imports}
        (memory (export "memory") 3)
        (global $heap (mut i32) (i32.const 65536))
        (global $n (mut i32) (i32.const 0))
        (global $made (mut i32) (i32.const 0))
        (data (i32.const 512) "{name}")
        (data (i32.const 600) "{escaped}")
        (data (i32.const 700) "no \1b[31mthanks")
        (data (i32.const 1024) "\ff\fe\fd\fc")
        (func (export "cabi_realloc") (param $old i32) (param $n_old i32) (param $align i32) (param $n i32) (result i32)
            (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
            (global.set $heap (i32.add (local.get $at) (local.get $n)))
            (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
                (then (drop (memory.grow (i32.add (i32.div_u (local.get $n) (i32.const 65536)) (i32.const 1))))))
            (local.get $at))
        (func $keep (param $first i32) (param $count i32) (result i32)
            (i32.store (i32.const 2048) (i32.const 2064)) (i32.store (i32.const 2052) (i32.const 1))
            (i32.store (i32.const 2068) (local.get $first)) (i32.store (i32.const 2072) (local.get $count))
            (i32.const 2048))
        (func $note (param $at i32) (param $n i32) (result i32)
            (i32.store (i32.const 2048) (i32.const 2064)) (i32.store (i32.const 2052) (i32.const 1))
            (i32.store8 (i32.const 2064) (i32.const 1))
            (i32.store (i32.const 2068) (local.get $at)) (i32.store (i32.const 2072) (local.get $n))
            (i32.const 2048))
        (func (export "{strategies}#list-strategies") (result i32)
            (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 1))
            (i32.store (i32.const 16) (i32.const 512)) (i32.store (i32.const 20) (i32.const {n_name}))
            (i32.store (i32.const 24) (i32.const 512)) (i32.store (i32.const 28) (i32.const {n_name}))
            (i32.store (i32.const 32) (i32.const 600)) (i32.store (i32.const 36) (i32.const {n_options}))
            (i32.const 0))
        (func (export "{strategies}#[static]strategy.create") (param i32 i32) (param $options i32) (param $n i32) (result i32)
            (global.set $made (i32.add (global.get $made) (i32.const 1)))
            (if (result i32) (i32.eq (local.get $n) (i32.const 3))
                (then
                    (i32.store8 (i32.const 100) (i32.const 1))
                    (i32.store (i32.const 104) (i32.const 700)) (i32.store (i32.const 108) (i32.const 14))
                    (i32.const 100))
                (else
                    (i32.store8 (i32.const 100) (i32.const 0))
                    (i32.store (i32.const 104) (call $new (i32.const 7)))
                    (i32.const 100))))
        (func (export "{strategies}#[method]strategy.apply") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
            (global.set $heap (i32.const 65536))
            {apply}))"#
    );
    let mut core = wat::parse_str(&wat).unwrap_or_else(|error| panic!("{error}"));
    let mut resolve = Resolve::default();
    resolve
        .push_str("wasi.wit", &format!("package test:wasi;\n{WASI}"))
        .unwrap();
    let contract = include_str!("../../../../../wit/zeph-filter/filter.wit");
    let wanted = ["wasi:clocks/monotonic-clock", "wasi:random/random"];
    let wanted = wanted.iter().filter(|name| imports.contains(**name));
    let wanted: String = wanted
        .map(|name| format!("import {name}@0.2.0; "))
        .collect();
    let world = format!("world filter-plugin {{ {wanted}");
    let contract = contract.replace("world filter-plugin {", &world);
    let package = resolve.push_str("filter.wit", &contract).unwrap();
    let world = resolve
        .select_world(&[package], Some("filter-plugin"))
        .unwrap();
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default()
        .module(&core)
        .unwrap()
        .validate(true);
    encoder.encode().unwrap()
}

/// A component that is loaded, and what runs it.
pub(super) struct Guest {
    pub(super) engine: Engine,
    pub(super) plugin: Plugin,
    runtime: Runtime,
}

impl Guest {
    pub(super) fn new(apply: &str) -> Self {
        Self::of(&component("", apply))
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        let options = EngineOptions {
            guest_threads: 2,
            pooled: true,
            cache_dir: None,
            on_compile: None,
        };
        Self::with_engine(&options, bytes)
    }

    pub(super) fn with_engine(options: &EngineOptions, bytes: &[u8]) -> Self {
        let engine = Engine::new(options).unwrap();
        let runtime = Runtime::new().unwrap();
        let id = PluginId("test".to_owned());
        let loading = Plugin::load(&engine, id, bytes.to_vec(), FILTER_LIMITS);
        let plugin = runtime.block_on(loading).unwrap();
        Self {
            engine,
            plugin,
            runtime,
        }
    }

    pub(super) fn load(&self, id: &str, bytes: &[u8]) -> Result<Plugin, LoadError> {
        let id = PluginId(id.to_owned());
        let loading = Plugin::load(&self.engine, id, bytes.to_vec(), FILTER_LIMITS);
        self.runtime.block_on(loading)
    }

    pub(super) fn session(&self) -> FilterSession {
        FilterSession::new(&self.engine)
    }

    pub(super) fn apply(&self, session: &mut FilterSession) -> Result<FilterAnswer, FilterFailure> {
        self.apply_with(session, "", "a\nb\n")
    }

    pub(super) fn apply_with(
        &self,
        session: &mut FilterSession,
        options: &str,
        text: &str,
    ) -> Result<FilterAnswer, FilterFailure> {
        session_apply(self, session, (&self.plugin, "s"), options, text)
    }
}

/// Applies a strategy of any component, as a host does.
pub(super) fn session_apply(
    guest: &Guest,
    session: &mut FilterSession,
    (plugin, name): (&Plugin, &str),
    options: &str,
    text: &str,
) -> Result<FilterAnswer, FilterFailure> {
    let (plugin, name) = (plugin.clone(), name.to_owned());
    let (options, text) = (options.to_owned(), text.to_owned());
    let mut moved = std::mem::replace(session, FilterSession::new(&guest.engine));
    let work = move || {
        let input = FilterInput {
            command: "make",
            exit_code: Some(0),
            text: &text,
        };
        let answer = moved.apply(&plugin, &name, &options, &input);
        (moved, answer)
    };
    let worked = guest.runtime.block_on(guest.engine.on_guest_thread(work));
    let (moved, answer) = worked.unwrap();
    *session = moved;
    answer
}
