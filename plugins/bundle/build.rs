//! Compiles the first-party plugins to components.

mod guest;

/// Package, the folders it is made from, and the variable that gets the component's path.
const GUESTS: [(&str, &[&str], &str); 2] = [
    ("zeph-plugin-file", &["plugins/file"], "GUEST_FILE"),
    (
        "zeph-filters-standard",
        &["filters/standard", "filters/strategies"],
        "GUEST_STANDARD",
    ),
];

fn main() {
    for (package, folders, variable) in GUESTS {
        if let Err(message) = guest::build(package, folders, variable) {
            println!("cargo::error={message}");
        }
    }
}
