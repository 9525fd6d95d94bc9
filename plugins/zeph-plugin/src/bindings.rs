//! Types and functions generated from `wit/zeph-plugin`. No logic.

wit_bindgen::generate!({
    path: "../../wit/zeph-plugin",
    world: "tool-plugin",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "zeph_plugin::bindings",
    generate_unused_types: true,
});
