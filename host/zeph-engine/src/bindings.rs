//! Types and traits generated from `wit/zeph-plugin`. No logic.

#![expect(missing_docs, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../../wit/zeph-plugin",
    world: "tool-plugin",
    imports: {
        "zeph:plugin/process.run": async | trappable,
        "zeph:plugin/embeddings": async | trappable,
        "zeph:plugin/server-tools": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: { "zeph:plugin/walk.walker": crate::fs::Walker },
});
