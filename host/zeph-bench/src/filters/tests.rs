use zeph_filter::{BUILTIN, Filters};

use super::{outcome, recordings};

#[test]
fn nothing_that_matters_is_lost_in_any_recording() {
    let (filters, _) = Filters::load(BUILTIN, None);
    let mut lost = Vec::new();
    let mut n_facts = 0;
    for (rule, recordings) in recordings().expect("the rules can be read") {
        for recording in &recordings {
            let outcome = outcome(&filters, recording);
            n_facts += outcome.found.n_facts;
            let name = &recording.case.name;
            lost.extend(
                outcome
                    .lost
                    .iter()
                    .map(|fact| format!("{rule}: {name}: {fact}")),
            );
        }
    }
    assert!(
        n_facts > 3_000,
        "{n_facts} facts are too few: the recordings are not read"
    );
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}
