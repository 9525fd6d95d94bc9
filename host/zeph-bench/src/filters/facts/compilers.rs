//! make with the compilers and the linker it runs, CMake with its tests, and the builders of the Java world.

use super::{FactKind, Facts};

pub(super) fn read(lines: &[&str], facts: &mut Facts) {
    for line in lines {
        let is_finding = [
            "error: ",
            "warning: ",
            "Fehler: ",
            "Warnung: ",
            "error:",
            "undefined reference",
        ]
        .iter()
        .any(|word| line.contains(word));
        if is_finding {
            facts.add_places(line);
        }
        let is_error = line.contains("error: ")
            || line.contains("Fehler: ")
            || line.contains("undefined reference")
            || line.contains("multiple definition");
        if is_error && !line.starts_with(' ')
            || line.starts_with("[ERROR]") && line.len() > "[ERROR] ".len()
        {
            facts.add(FactKind::Message, line);
        }
        let is_total = line.contains(": *** ")
            || line.contains("ld returned")
            || line.contains("Tests run:") && !line.contains("Time elapsed")
            || line.contains("BUILD ")
            || line.starts_with("FAILURE: ")
            || line.contains(" tests completed, ");
        if is_total {
            facts.add(FactKind::Total, line);
        }
        if line.starts_with("CMake Error") || line.starts_with("CMake Warning") {
            facts.add(FactKind::Message, line);
        }
        if line.contains(" FAILED") && !line.starts_with("The following tests") {
            facts.add(FactKind::Name, line);
        }
    }
}

/// ` 7/22 Test  #7: shop.case_06 ....***Failed`, what the test printed, and the line that counts.
pub(super) fn read_ctest(lines: &[&str], facts: &mut Facts) {
    for line in lines {
        let name = line
            .split_once(" Test ")
            .and_then(|(_, rest)| rest.split_once(": "));
        if let Some((_, name)) = name.filter(|_| line.contains("***")) {
            facts.add(FactKind::Name, name.split(" .").next().unwrap_or(name));
        }
        facts.add_places(line);
        if line.contains("% tests passed, ") {
            facts.add(FactKind::Total, line);
        }
    }
}
