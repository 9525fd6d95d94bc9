//! Compiles the guests of the tests to components.

#[path = "../plugins/bundle/guest.rs"]
mod guest;

use guest::Guest;

const GUESTS: [Guest; 4] = [
    Guest {
        package: "zeph-guest-conformance",
        folders: &["tests/guests/conformance"],
        variable: "GUEST_CONFORMANCE",
    },
    Guest {
        package: "zeph-guest-hostile",
        folders: &["tests/guests/hostile"],
        variable: "GUEST_HOSTILE",
    },
    Guest {
        package: "zeph-guest-plain",
        folders: &["tests/guests/plain"],
        variable: "GUEST_PLAIN",
    },
    Guest {
        package: "zeph-guest-web",
        folders: &["tests/guests/web"],
        variable: "GUEST_WEB",
    },
];

fn main() {
    if let Err(message) = guest::build(&GUESTS) {
        println!("cargo::error={message}");
    }
}
