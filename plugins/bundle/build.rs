//! Compiles the first-party plugins to components.

mod guest;

fn main() {
    if let Err(message) = guest::build("zeph-plugin-file", "plugins/file", "GUEST_FILE") {
        println!("cargo::error={message}");
    }
}
