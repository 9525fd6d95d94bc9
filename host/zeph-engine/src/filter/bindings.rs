//! Types and traits generated from `wit/zeph-filter`. No logic.

wasmtime::component::bindgen!({
    path: "../../wit/zeph-filter",
    world: "filter-plugin",
    exports: { default: async },
    ownership: Borrowing { duplicate_if_necessary: false },
});
