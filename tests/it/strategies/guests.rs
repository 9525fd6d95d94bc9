//! Components of one strategy each, in the text format: small, compiled at once, and able to answer what no compiler would let them.

use crate::product::Product;

/// The component with what differs omitted.
const TEMPLATE: &str = include_str!("../../guests/filter.wat");

/// One strategy, named as its component is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guest {
    pub(super) name: &'static str,
    /// Text for its notes.
    pub(super) note: &'static [u8],
    /// Runs when it is made.
    pub(super) create: &'static str,
    /// Runs for each output: see the template.
    pub(super) apply: &'static str,
}

/// Keeps the error that [`NOISE`] ends with, and nothing else.
pub(super) const HONEST: Guest = Guest {
    name: "honest",
    note: b"300 lines omitted",
    create: "",
    apply: "(call $keep (i32.const 300) (i32.const 1)) (call $note) (call $answer (i32.const 0) (i32.const 0))",
};

/// A script that prints three hundred lines and an error.
pub(super) const NOISE: &str =
    "for n in $(seq 300); do echo \"compiling part $n\"; done; echo 'error: it broke'; exit 1";

/// What it prints.
pub(super) fn noise() -> String {
    let lines = (1..=300).map(|n| format!("compiling part {n}\n"));
    lines.collect::<String>() + "error: it broke\n"
}

impl Guest {
    /// The binary.
    pub(super) fn component(&self) -> Vec<u8> {
        let note: String = self
            .note
            .iter()
            .map(|byte| format!("\\{byte:02x}"))
            .collect();
        let text = TEMPLATE
            .replace("{name}", self.name)
            .replace("{n_name}", &self.name.len().to_string())
            .replace("{note}", &note)
            .replace("{n_note}", &self.note.len().to_string())
            .replace("{create}", self.create)
            .replace("{apply}", self.apply);
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The script whose output this strategy is for.
    pub(super) fn command(&self) -> String {
        format!("sh {}.sh", self.name)
    }
}

/// A product with these plugins, a script for each, and a rule for the output of each script.
pub(super) fn product(guests: &[Guest]) -> Product {
    let product = Product::new();
    let mut rules = String::new();
    for guest in guests {
        let (name, command) = (guest.name, guest.command());
        product.drop_in(name, &guest.component());
        product.file(&format!("{name}.sh"), NOISE);
        rules.push_str(&format!(
            "[[rules]]\nname = \"rule_{name}\"\nmatch = {{ exact = \"{command}\" }}\nstrategy = {{ type = \"wasm:{name}\" }}\n"
        ));
    }
    with_rules(&product, &rules);
    product
}

/// Gives the product these rules.
pub(super) fn with_rules(product: &Product, rules: &str) {
    let config = product.home.join(".config/zeph-host");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("filters.toml"), rules).unwrap();
}
