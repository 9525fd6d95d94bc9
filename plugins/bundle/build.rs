//! Compiles the first-party plugins to components.

mod guest;

use guest::Guest;

const GUESTS: [Guest; 2] = [
    Guest {
        package: "zeph-plugin-file",
        folders: &["plugins/file"],
        variable: "GUEST_FILE",
    },
    Guest {
        package: "zeph-filters-standard",
        folders: &["filters/standard", "filters/strategies"],
        variable: "GUEST_STANDARD",
    },
];

fn main() {
    if let Err(message) = guest::build(&GUESTS) {
        println!("cargo::error={message}");
    }
}
