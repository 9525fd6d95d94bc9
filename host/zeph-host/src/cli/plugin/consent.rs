//! Agreeing to another version of a plugin. `--yes` stands for an ordinary one; what would let a thief of a registry in (another signer, an
//! older version, a withdrawn one, none that is signed) has to be named with `--accept`, or seen by a person who is asked.

use zeph_plugins::diff::UpdateRisk;

use crate::cli::args::{AcceptedRisk, Consent};
use crate::cli::ask::{self, Answer, ask};
use crate::cli::out;

/// Whether the person agrees to what was shown.
///
/// Shape: `question` is asked; `command` is what was typed, for the message that says how to agree without a person. A reader of JSON has not
/// seen the changes yet, and is not asked.
pub(super) fn given(
    (question, command): (&str, &str),
    consent: &Consent,
    is_json: bool,
    risks: &[UpdateRisk],
) -> bool {
    let unnamed = unnamed(consent, risks);
    if consent.yes && unnamed.is_empty() {
        return true;
    }
    let answer = match is_json || !ask::is_possible() {
        true => Answer::Nobody,
        false => ask(question, false),
    };
    match answer {
        Answer::Yes => {}
        Answer::No => out::remark("nothing was changed"),
        Answer::Nobody => out::note(&format!(
            "nothing was changed; `{command} {}` accepts what is shown",
            flags(consent, &unnamed)
        )),
    }
    answer == Answer::Yes
}

/// Whether this was agreed to on the command line, by name.
pub(super) fn names(consent: &Consent, risk: UpdateRisk) -> bool {
    consent.yes && unnamed(consent, &[risk]).is_empty()
}

/// Those that were not named on the command line.
fn unnamed(consent: &Consent, risks: &[UpdateRisk]) -> Vec<UpdateRisk> {
    let is_named = |risk: &UpdateRisk| {
        let mut accepted = consent.accept.iter();
        accepted.any(|accepted| accepted.risk() == *risk)
    };
    let unnamed = risks.iter().filter(|risk| !is_named(risk));
    unnamed.copied().collect()
}

/// The flags that agree to everything.
fn flags(consent: &Consent, unnamed: &[UpdateRisk]) -> String {
    let named = consent.accept.iter().map(|accepted| accepted.risk());
    let mut risks: Vec<UpdateRisk> = named.chain(unnamed.iter().copied()).collect();
    risks.sort_unstable();
    risks.dedup();
    let accepts = risks
        .iter()
        .map(|risk| format!(" --accept {}", risk.label()));
    format!("--yes{}", accepts.collect::<String>())
}

impl AcceptedRisk {
    fn risk(self) -> UpdateRisk {
        match self {
            Self::Signer => UpdateRisk::Signer,
            Self::Downgrade => UpdateRisk::Downgrade,
            Self::Yanked => UpdateRisk::Yanked,
            Self::Unsigned => UpdateRisk::Unsigned,
        }
    }
}

#[cfg(test)]
mod tests {
    use zeph_plugins::diff::UpdateRisk;

    use super::{flags, unnamed};
    use crate::cli::args::{AcceptedRisk, Consent};

    #[test]
    fn a_risk_has_to_be_named() {
        let mut consent = Consent {
            yes: true,
            accept: Vec::new(),
        };
        let risks = [UpdateRisk::Signer, UpdateRisk::Yanked];
        assert_eq!(unnamed(&consent, &risks), risks);
        assert_eq!(
            flags(&consent, &risks),
            "--yes --accept signer --accept yanked"
        );
        consent.accept.push(AcceptedRisk::Signer);
        assert_eq!(unnamed(&consent, &risks), [UpdateRisk::Yanked]);
        consent.accept.push(AcceptedRisk::Yanked);
        assert!(unnamed(&consent, &risks).is_empty());
        assert_eq!(
            flags(&consent, &[]),
            "--yes --accept signer --accept yanked"
        );
    }
}
