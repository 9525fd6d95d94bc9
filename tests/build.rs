//! Compiles the guests of the tests to components.

#[path = "../plugins/bundle/guest.rs"]
mod guest;

/// Package, folder, and the variable that gets the component's path.
const GUESTS: [(&str, &str, &str); 2] = [
    (
        "zeph-guest-hostile",
        "tests/guests/hostile",
        "GUEST_HOSTILE",
    ),
    ("zeph-guest-plain", "tests/guests/plain", "GUEST_PLAIN"),
];

fn main() {
    for (package, folder, variable) in GUESTS {
        if let Err(message) = guest::build(package, &[folder], variable) {
            println!("cargo::error={message}");
        }
    }
}
