//! What is different in where a plugin comes from and who signed it.

use semver::Version;
use serde::Serialize;

use super::Was;
use super::line::{DiffLine, DiffMark};
use crate::lock::{PinnedSigner, PluginSource, Provenance};
use crate::visible::visible_line;

/// What stands for a side without a source.
const NO_SOURCE: &str = "a file that was put into the folder";

/// What stands for a side without a signature.
const UNSIGNED: &str = "nobody";

/// Something about another version of a plugin that a person has to agree to by name: a general `--yes` does not cover it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateRisk {
    /// Another signer than the pinned one, or none.
    Signer,
    /// A lower version.
    Downgrade,
    /// A version that its publisher withdrew.
    Yanked,
    /// One that no known signer signed, where its operator wants to be asked about those.
    Unsigned,
}

impl UpdateRisk {
    /// Its word on the command line.
    pub fn label(self) -> &'static str {
        match self {
            Self::Signer => "signer",
            Self::Downgrade => "downgrade",
            Self::Yanked => "yanked",
            Self::Unsigned => "unsigned",
        }
    }
}

/// Source, version and signer, each when it differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ProvenanceChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Was<Option<PluginSource>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Was<Option<Version>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<Was<Option<PinnedSigner>>>,
}

impl ProvenanceChange {
    /// What differs; `None` when nothing does.
    pub(super) fn between(old: Option<&Provenance>, new: Option<&Provenance>) -> Option<Self> {
        let source = |side: Option<&Provenance>| side.map(|side| side.source.clone());
        let version = |side: Option<&Provenance>| side.and_then(|side| side.version.clone());
        let signer = |side: Option<&Provenance>| side.and_then(|side| side.signer.clone());
        (old != new).then(|| Self {
            source: super::was(source(old), source(new)),
            version: super::was(version(old), version(new)),
            signer: super::was(signer(old), signer(new)),
        })
    }

    /// The risks, each with its sentence.
    pub(super) fn risks(&self) -> Vec<(UpdateRisk, String)> {
        let signer = self.signer.as_ref().and_then(signer_risk);
        let version = match &self.version {
            Some(version) if are_in_order(version) => version_risk(version),
            // Its author did not count: then the tags say which came later.
            _ => self.source.as_ref().and_then(tag_risk),
        };
        let risks = [
            (UpdateRisk::Signer, signer),
            (UpdateRisk::Downgrade, version),
        ];
        let risks = risks.into_iter();
        risks
            .filter_map(|(risk, told)| Some((risk, told?)))
            .collect()
    }

    /// A warning that is no risk: it comes from another place, with the same signer or without any. Files of this machine come and go.
    pub(super) fn moved(&self) -> Option<String> {
        let Was { old, new } = self.source.as_ref()?;
        let old = old
            .as_ref()
            .filter(|old| !matches!(old, PluginSource::File { .. }))?;
        let (old, new) = (old.place(), place(new.as_ref()));
        (old != new).then(|| {
            format!(
                "it comes from another place than what was accepted: {} instead of {}",
                visible_line(&new),
                visible_line(&old)
            )
        })
    }

    pub(super) fn push_lines(&self, lines: &mut Vec<DiffLine>) {
        let shown = |source: &Option<PluginSource>| shown_source(source.as_ref());
        push(lines, "source", self.source.as_ref(), shown);
        let shown = |version: &Option<Version>| {
            let version = version.as_ref().map(ToString::to_string);
            version.unwrap_or_else(|| "none".to_owned())
        };
        push(lines, "version", self.version.as_ref(), shown);
        let shown = |signer: &Option<PinnedSigner>| match signer {
            None => UNSIGNED.to_owned(),
            Some(PinnedSigner { name, key }) => visible_line(&format!("{name} ({key})")),
        };
        push(lines, "signed by", self.signer.as_ref(), shown);
    }
}

/// The same name with another key is the same signer: the operator's configuration says which keys are whose.
fn signer_risk(Was { old, new }: &Was<Option<PinnedSigner>>) -> Option<String> {
    let old = &old.as_ref()?.name;
    match new {
        Some(new) if new.name == *old => None,
        Some(new) => Some(format!(
            "it is signed by `{}`; what was accepted was signed by `{}`",
            visible_line(&new.name),
            visible_line(old)
        )),
        None => Some(format!(
            "it is not signed; what was accepted was signed by `{}`",
            visible_line(old)
        )),
    }
}

/// Whether both sides have a version, and one of them is the later: what was built from the same version is as old.
fn are_in_order(Was { old, new }: &Was<Option<Version>>) -> bool {
    let both = old.as_ref().zip(new.as_ref());
    both.is_some_and(|(old, new)| new.cmp_precedence(old).is_ne())
}

fn version_risk(Was { old, new }: &Was<Option<Version>>) -> Option<String> {
    let (old, new) = (old.as_ref()?, new.as_ref()?);
    (new.cmp_precedence(old).is_lt())
        .then(|| format!("it is version {new}; what was accepted is the later version {old}"))
}

fn tag_risk(Was { old, new }: &Was<Option<PluginSource>>) -> Option<String> {
    let (old, new) = (
        old.as_ref()?.tagged_version()?,
        new.as_ref()?.tagged_version()?,
    );
    (new.cmp_precedence(&old).is_lt()).then(|| {
        format!(
            "it has the tag of version {new}; what was accepted had that of the later version {old}"
        )
    })
}

fn place(source: Option<&PluginSource>) -> String {
    source.map_or_else(|| NO_SOURCE.to_owned(), PluginSource::place)
}

fn shown_source(source: Option<&PluginSource>) -> String {
    match source {
        None => NO_SOURCE.to_owned(),
        Some(PluginSource::Registry {
            reference,
            manifest,
        }) => visible_line(&format!("{reference} ({manifest})")),
        Some(other) => visible_line(&other.to_string()),
    }
}

fn push<T>(
    lines: &mut Vec<DiffLine>,
    name: &str,
    was: Option<&Was<T>>,
    shown: impl Fn(&T) -> String,
) {
    let Some(Was { old, new }) = was else {
        return;
    };
    lines.push(DiffLine::new(DiffMark::Changed, 0, name.to_owned()));
    lines.push(DiffLine::new(DiffMark::Removed, 1, shown(old)));
    lines.push(DiffLine::new(DiffMark::Added, 1, shown(new)));
}

#[cfg(test)]
mod tests {
    use zeph_core::id::Digest;

    use super::{PinnedSigner, PluginSource, Provenance, ProvenanceChange, UpdateRisk};

    fn provenance((tag, version): (&str, Option<&str>)) -> Provenance {
        Provenance {
            source: PluginSource::Registry {
                reference: format!("ghcr.io/org/notes:{tag}"),
                manifest: Digest::new([3; 32]),
            },
            version: version.map(|version| version.parse().unwrap()),
            signer: Some(PinnedSigner {
                name: "team".to_owned(),
                key: "minisign 01".to_owned(),
            }),
        }
    }

    /// What its signer says counts; where that says nothing new, the tags do.
    #[test]
    fn a_lower_version_is_a_downgrade_and_so_is_a_lower_tag_of_the_same_version() {
        for (old, new, is_downgrade) in [
            (("1.2.0", Some("1.2.0")), ("1.0.0", Some("1.0.0")), true),
            (("1.2.0", Some("1.2.0")), ("9.9.9", Some("1.0.0")), true),
            (("1.2.0", Some("0.1.0")), ("1.0.0", Some("0.1.0")), true),
            (("1.0.0", Some("0.1.0")), ("1.2.0", Some("0.1.0")), false),
            (("1.2.0", Some("0.1.0")), ("1.0.0", Some("0.2.0")), false),
            (("latest", Some("0.1.0")), ("1.0.0", Some("0.1.0")), false),
            (("1.2.0", None), ("1.0.0", None), true),
            (("1.2.0", Some("0.1.0")), ("1.0.0", None), true),
            (("1.2.0", None), ("1.0.0", Some("0.1.0")), true),
            (("1.0.0", Some("0.1.0")), ("1.2.0", None), false),
            (("1.2.0", Some("1.2.0")), ("latest", None), false),
            (("1.2.0", Some("0.1.0+b")), ("1.0.0", Some("0.1.0+a")), true),
            (
                ("1.0.0", Some("0.1.0+b")),
                ("1.2.0", Some("0.1.0+a")),
                false,
            ),
        ] {
            let (one, other) = (provenance(old), provenance(new));
            let change = ProvenanceChange::between(Some(&one), Some(&other)).unwrap();
            let risks = change.risks();
            let found = risks.iter().any(|(risk, _)| *risk == UpdateRisk::Downgrade);
            assert_eq!(found, is_downgrade, "{old:?} {new:?}: {risks:?}");
        }
    }
}
