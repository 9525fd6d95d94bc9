/* Embeds plugin.toml and the metadata of the Makefile in the component, as custom sections. */
#define SECTION(name, content) __asm__(".section \".custom_section." name "\",\"\",@\n" content "\n.text\n")

SECTION("zeph:manifest", ".incbin \"plugin.toml\"");
SECTION("version", ".ascii \"" VERSION "\"");
SECTION("description", ".ascii \"" DESCRIPTION "\"");
SECTION("licenses", ".ascii \"" LICENSE "\"");

/* The bindings want the contract as an object file; `wasm-tools component embed` of the Makefile adds it instead. */
void __component_type_object_force_link_tool_plugin(void) {}
