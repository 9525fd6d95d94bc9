//! The versions of a plugin that its source offers: the tags of its repository, or what an index lists.

use semver::Version;
use zeph_artifact::index::{ArtifactFacts, IndexedVersion};
use zeph_artifact::manifest;
use zeph_artifact::reference::{ArtifactSource, Reference};
use zeph_artifact::registry::Registries;
use zeph_core::id::Digest;
use zeph_plugins::lock::{LockedPlugin, PluginSource, version_of_tag};
use zeph_plugins::manage::sync::SyncFolder;

use super::indexes::{OpenedIndex, withdrawn};
use super::said::said;
use super::vouching::mistagged;
use crate::cli::error::CliError;

/// How many releases are looked at for the newest one. A registry can have any number of tags for one artifact.
const LOOKED_AT_MAX: usize = 8;

/// A version that can be fetched.
#[derive(Debug, Clone)]
pub(super) struct Release {
    /// Its version; `None` for a tag that is none, such as `latest`.
    pub(super) version: Option<Version>,
    pub(super) source: ArtifactSource,
    /// The digest of its component, where an index says it.
    pub(super) wasm: Option<Digest>,
    /// Why its publisher withdrew it.
    pub(super) yanked: Option<String>,
}

/// Every version of a plugin that its source offers, in no order.
///
/// Errors: the registry does not say, or the reference in the lock is none.
pub(super) async fn all(
    registries: &Registries,
    locked: &LockedPlugin,
    indexes: &[OpenedIndex],
) -> Result<Vec<Release>, CliError> {
    match locked.source() {
        Some(source @ PluginSource::Registry { reference, .. }) => {
            let reference: Reference = reference.parse()?;
            let tags = registries.tags(&reference).await?;
            let place = source.place();
            let releases = tags
                .iter()
                .filter_map(|tag| of_tag(&reference, &place, tag, indexes));
            Ok(releases.collect())
        }
        Some(PluginSource::Url { url }) => {
            let versions = listed(indexes, url);
            let releases = versions.filter_map(|version| of_url(version, indexes));
            Ok(releases.collect())
        }
        Some(PluginSource::File { .. }) | None => Ok(Vec::new()),
    }
}

/// What all indexes list of the plugin at this place.
fn listed<'a>(
    indexes: &'a [OpenedIndex],
    place: &'a str,
) -> impl Iterator<Item = &'a IndexedVersion> {
    let plugins = indexes
        .iter()
        .flat_map(move |opened| opened.index.plugins_at(place));
    plugins.flat_map(|plugin| &plugin.versions)
}

/// `None` for what is no tag: a registry may list anything.
fn of_tag(
    reference: &Reference,
    place: &str,
    text: &str,
    indexes: &[OpenedIndex],
) -> Option<Release> {
    let version = version_of_tag(text);
    let known = |has: fn(&IndexedVersion) -> bool| {
        let mut listed = listed(indexes, place);
        listed.find(|known| Some(&known.version) == version.as_ref() && has(known))
    };
    // Its publisher signed which manifest it is; the tag is the registry's word.
    let known = known(|known| known.manifest.is_some())
        .or_else(|| known(|known| known.component.is_some()));
    let reference = reference.tagged(text).ok()?;
    let manifest = known.and_then(|known| known.manifest);
    let reference = manifest.map_or_else(|| reference.clone(), |manifest| reference.at(manifest));
    let wasm = known.and_then(|known| known.component);
    let artifact = ArtifactFacts {
        place: Some(place.to_owned()),
        versions: version.iter().cloned().collect(),
        manifest,
        component: wasm,
    };
    Some(Release {
        source: ArtifactSource::Registry(reference),
        wasm,
        yanked: withdrawn(indexes, &artifact),
        version,
    })
}

fn of_url(listed: &IndexedVersion, indexes: &[OpenedIndex]) -> Option<Release> {
    let url = listed.url.as_ref()?;
    let artifact = ArtifactFacts {
        place: Some(url.clone()),
        versions: vec![listed.version.clone()],
        manifest: None,
        component: listed.component,
    };
    Some(Release {
        version: Some(listed.version.clone()),
        source: url.parse().ok()?,
        wasm: Some(listed.component?),
        yanked: withdrawn(indexes, &artifact),
    })
}

/// What is pinned, and how its version counts among the releases that its source offers.
#[derive(Debug)]
pub(super) struct PinnedRelease<'a> {
    locked: &'a LockedPlugin,
    /// What was signed; of what nobody signed, what its component says.
    word: Option<Version>,
    /// Whether the tag that it was had by counts: it is offered and stands for it, or its version is that of `word`, if there is one.
    has_good_tag: bool,
}

impl<'a> PinnedRelease<'a> {
    /// Asks the registry what the tag stands for only where it is of another version than the component.
    ///
    /// Errors: the registry does not say, or the reference in the lock is none.
    pub(super) async fn of(
        registries: &Registries,
        folder: &SyncFolder,
        locked: &'a LockedPlugin,
        releases: &[Release],
    ) -> Result<Self, CliError> {
        let tagged = tagged(locked);
        let word = match signed(locked) {
            Some(signed) => Some(signed.clone()),
            None => tagged.as_ref().and_then(|_| said(folder, locked)),
        };
        let has_good_tag = match (&tagged, &word) {
            (Some(tagged), Some(word)) if tagged.cmp_precedence(word).is_ne() => {
                is_offered(releases, tagged)
                    && standing(registries, locked, |_| true)
                        .await?
                        .is_some_and(|(_, is_same)| is_same)
            }
            _ => true,
        };
        Ok(Self {
            locked,
            word,
            has_good_tag,
        })
    }

    /// The version that counts where no index lists it: that of its tag, unless the tag may be wrong or forged;
    /// then the earlier one of tag and component.
    pub(super) fn version(&self) -> Option<Version> {
        let Some(tagged) = tagged(self.locked) else {
            return self.locked.version().cloned();
        };
        Some(match &self.word {
            Some(word) if !self.has_good_tag => tagged.min(word.clone()),
            _ => tagged,
        })
    }
}

/// What a tag stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Nothing that is known, or what cannot be asked for.
    News,
    /// What is pinned.
    Pinned,
    /// What an index withdrew as another version.
    Withdrawn,
}

/// The newest release after what is pinned that was not withdrawn, and is not what is pinned or was withdrawn under another tag: a registry
/// chooses its tags.
pub(super) async fn newest(
    registries: &Registries,
    indexes: &[OpenedIndex],
    releases: &[Release],
    pinned: &PinnedRelease<'_>,
) -> Option<Release> {
    let mut left: Vec<Release> = releases.to_vec();
    let is_counted =
        tagged(pinned.locked).is_some() || listed_version(releases, pinned.locked).is_some();
    for _ in 0..LOOKED_AT_MAX {
        let newest = newest_of(&left, pinned)?.clone();
        match looked_at(registries, indexes, &newest, pinned.locked).await {
            Standing::News => return Some(newest),
            // Nothing else says which version is pinned: then it is this one.
            Standing::Pinned if !is_counted => return None,
            Standing::Pinned | Standing::Withdrawn => {
                left.retain(|release| release.source != newest.source);
            }
        }
    }
    None
}

async fn looked_at(
    registries: &Registries,
    indexes: &[OpenedIndex],
    release: &Release,
    locked: &LockedPlugin,
) -> Standing {
    let mut artifact = ArtifactFacts {
        component: release.wasm,
        ..ArtifactFacts::default()
    };
    if let ArtifactSource::Registry(reference) = &release.source
        && let Ok(now) = registries.manifest(reference).await
    {
        let manifest = manifest::read(&now.bytes, manifest::MANIFEST_TYPE).ok();
        artifact.manifest = Some(now.digest);
        artifact.component = manifest.map(|manifest| manifest.component.digest);
    }
    match withdrawn(indexes, &artifact).is_some() {
        true => Standing::Withdrawn,
        false if artifact.component == Some(locked.pin.wasm) => Standing::Pinned,
        false => Standing::News,
    }
}

/// The newest release after what is pinned that was not withdrawn. Releases are counted by their tags or as an index lists them, and so is what
/// is pinned, whatever its author calls it.
fn newest_of<'a>(releases: &'a [Release], pinned: &PinnedRelease<'_>) -> Option<&'a Release> {
    let current = listed_version(releases, pinned.locked).or_else(|| pinned.version());
    newest_after(releases, current.as_ref())
}

/// That [`newest`] counts from a tag that is later than what was signed, and what is offered between the two, in one sentence. Whether that
/// is newer than what is pinned shows only the signature of the release: its publisher may have set a wrong tag once, or may not count.
pub(super) fn passed_over(releases: &[Release], pinned: &PinnedRelease<'_>) -> Option<String> {
    let locked = pinned.locked;
    let signed = signed(locked)?;
    let tagged = tagged(locked)?;
    if listed_version(releases, locked).is_some() || !pinned.has_good_tag {
        return None;
    }
    let is_before = |release: &&Release| {
        let version = release.version.as_ref();
        version.is_some_and(|version| version.cmp_precedence(&tagged).is_lt())
    };
    let release = newest_after(releases.iter().filter(is_before), Some(signed))?;
    let (name, version) = (&locked.name, release.version.as_ref()?);
    let mistagged = mistagged(&tagged, signed)?;
    Some(format!(
        "plugin `{name}`: {mistagged}; its source offers {version}, too: `zeph-host plugin update {name} --to {version}` shows the difference"
    ))
}

/// The version of the tag that a plugin was had by.
fn tagged(locked: &LockedPlugin) -> Option<Version> {
    locked.source().and_then(PluginSource::tagged_version)
}

/// The reference with the tag alone that a plugin was had by, and whether that tag still stands for the plugin. `None` where it has no tag
/// that is `wanted`: then the registry is not asked.
///
/// Errors: the registry does not say, or the reference in the lock is none.
pub(super) async fn standing(
    registries: &Registries,
    locked: &LockedPlugin,
    wanted: impl Fn(&str) -> bool,
) -> Result<Option<(Reference, bool)>, CliError> {
    let Some(PluginSource::Registry {
        reference,
        manifest,
    }) = locked.source()
    else {
        return Ok(None);
    };
    let reference: Reference = reference.parse()?;
    let Some(tag) = reference.tag().filter(|tag| wanted(tag)) else {
        return Ok(None);
    };
    let reference = reference.tagged(tag)?;
    let now = registries.manifest(&reference).await?;
    Ok(Some((reference, now.digest == *manifest)))
}

/// The version of what is pinned, as an index lists it.
fn listed_version(releases: &[Release], locked: &LockedPlugin) -> Option<Version> {
    let pinned = releases.iter();
    let pinned = pinned.filter(|release| release.wasm == Some(locked.pin.wasm));
    pinned.filter_map(|release| release.version.clone()).max()
}

/// The signed version of a plugin.
fn signed(locked: &LockedPlugin) -> Option<&Version> {
    locked.version().filter(|_| locked.signer().is_some())
}

fn is_offered(releases: &[Release], version: &Version) -> bool {
    let mut offered = releases.iter().filter(|release| release.yanked.is_none());
    offered.any(|release| release.version.as_ref() == Some(version))
}

/// The newest release after `current` that was not withdrawn. One before its release counts only for who has one already.
fn newest_after<'a>(
    releases: impl IntoIterator<Item = &'a Release>,
    current: Option<&Version>,
) -> Option<&'a Release> {
    let wants_pre = current.is_some_and(|current| !current.pre.is_empty());
    let releases = releases.into_iter();
    let offered = releases.filter(|release| release.yanked.is_none());
    let newer = offered.filter(|release| {
        release.version.as_ref().is_some_and(|version| {
            let is_newer = current.is_none_or(|current| version.cmp_precedence(current).is_gt());
            is_newer && (wants_pre || version.pre.is_empty())
        })
    });
    newer.max_by(|one, other| one.version.cmp(&other.version))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use semver::Version;
    use serde_json::{Value, json};
    use zeph_artifact::index::Index;
    use zeph_core::id::Digest;

    use zeph_plugins::lock::{Lock, LockedPlugin, version_of_tag};

    use super::{
        OpenedIndex, PinnedRelease, Release, newest_after, newest_of, of_tag, passed_over,
    };

    fn release(text: &str, yanked: bool) -> Release {
        let source = format!("registry.example.org/team/notes:{text}");
        Release {
            version: version_of_tag(text),
            source: source.parse().unwrap(),
            wasm: None,
            yanked: yanked.then(String::new),
        }
    }

    #[test]
    fn the_newest_release_is_by_its_numbers() {
        let releases = [
            release("1.9.0", false),
            release("v1.10.0", false),
            release("1.11.0", true),
            release("2.0.0-rc.1", false),
            release("latest", false),
            release("1.10", false),
        ];
        let newest = |current: &str| {
            let current: Option<Version> = version_of_tag(current);
            let newest = newest_after(&releases, current.as_ref())?;
            newest.version.as_ref().map(ToString::to_string)
        };
        assert_eq!(newest("1.0.0").as_deref(), Some("1.10.0"));
        assert_eq!(newest("").as_deref(), Some("1.10.0"));
        assert_eq!(newest("1.10.0"), None);
        assert_eq!(newest("1.10.0-beta").as_deref(), Some("2.0.0-rc.1"));
        assert_eq!(newest("3.0.0"), None);
    }

    fn opened(versions: &Value) -> OpenedIndex {
        let plugin = json!({
            "name": "notes",
            "description": "",
            "source": "registry.example.org/team/notes",
            "versions": versions,
        });
        OpenedIndex {
            source: "https://example.org/index.json".to_owned(),
            index: Index {
                number: 1,
                expires_at_ms: i64::MAX,
                plugins: vec![serde_json::from_value(plugin).unwrap()],
            },
            document: Vec::new(),
            signature: Vec::new(),
        }
    }

    #[test]
    fn a_version_that_an_index_lists_is_the_manifest_that_stands_there() {
        let digest = format!("sha256:{}", "b".repeat(64));
        let indexes = [
            opened(&json!([{ "version": "1.1.0" }])),
            opened(&json!([{ "version": "1.0.0", "manifest": digest }, { "version": "1.1.0" }])),
        ];
        let place = "registry.example.org/team/notes";
        let reference = format!("{place}:0.1.0").parse().unwrap();
        for (tag, at) in [
            ("1.0.0", true),
            ("v1.0.0", true),
            ("1.1.0", false),
            ("latest", false),
        ] {
            let release = of_tag(&reference, place, tag, &indexes).unwrap();
            let mut expect = format!("{place}:{tag}");
            if at {
                expect = format!("{expect}@{digest}");
            }
            assert_eq!(release.source.to_string(), expect);
        }
        assert!(of_tag(&reference, place, "no tag", &indexes).is_none());
    }

    /// The first index that lists a plugin does not silence those behind it.
    #[test]
    fn any_index_withdraws_a_version() {
        let digest = format!("sha256:{}", "b".repeat(64));
        let silent = || opened(&json!([{ "version": "1.0.0" }, { "version": "2.0.0" }]));
        let yanked = || {
            opened(&json!([
                { "version": "2.0.0", "yanked": "steals keys" },
                { "version": "3.0.0", "manifest": digest },
                { "version": "3.0.1", "manifest": digest, "yanked": "the same" },
            ]))
        };
        let place = "registry.example.org/team/notes";
        let reference = format!("{place}:0.1.0").parse().unwrap();
        for indexes in [[silent(), yanked()], [yanked(), silent()]] {
            for (tag, expect) in [
                ("1.0.0", None),
                ("2.0.0", Some("steals keys")),
                ("v2.0.0", Some("steals keys")),
                ("3.0.0", Some("the same")),
            ] {
                let release = of_tag(&reference, place, tag, &indexes).unwrap();
                assert_eq!(release.yanked.as_deref(), expect, "{tag}");
            }
        }
    }

    /// What is pinned is counted as what is offered is, whatever its author calls it: else one is offered for ever.
    #[test]
    fn what_is_pinned_is_counted_by_its_tag_or_as_an_index_lists_it() {
        let newest = |tag: &str, version: &str, releases: &[Release]| {
            let locked = locked(tag, version, "");
            let newest = newest_of(releases, &pinned(&locked, Some(version), true))?;
            newest.version.as_ref().map(ToString::to_string)
        };
        let mut releases = vec![release("1.0.0", false), release("1.2.0", false)];
        assert_eq!(newest("1.2.0", "0.1.0", &releases), None);
        assert_eq!(
            newest("1.0.0", "0.1.0", &releases).as_deref(),
            Some("1.2.0")
        );
        assert_eq!(
            newest("latest", "0.1.0", &releases).as_deref(),
            Some("1.2.0")
        );
        releases[1].wasm = Some(Digest::new([7; 32]));
        assert_eq!(newest("latest", "0.1.0", &releases), None);
    }

    /// One wrong tag must not hide every release after it, and an author who does not count is offered nothing for ever.
    #[test]
    fn what_was_signed_counts_where_its_later_tag_is_gone() {
        let signer = "signer = { name = \"team\", key = \"minisign 01\" }\n";
        for (tag, version, offered, expect, between) in [
            // The wrong tag is gone, or was withdrawn.
            ("10.0.0", "1.0.0", "1.0.0 1.1.0", Some("1.1.0"), None),
            ("10.0.0", "1.0.0", "1.1.0 -10.0.0", Some("1.1.0"), None),
            ("10.0.0", "1.1.0", "1.0.0 1.1.0", None, None),
            // It stands for something else now.
            ("10.0.0", "1.0.0", "1.1.0 ~10.0.0", Some("10.0.0"), None),
            // It is still there.
            ("10.0.0", "1.0.0", "1.1.0 10.0.0", None, Some("1.1.0")),
            ("10.0.0", "1.1.0", "1.0.0 10.0.0", None, None),
            (
                "10.0.0",
                "1.0.0",
                "1.1.0 10.0.0 10.0.1",
                Some("10.0.1"),
                Some("1.1.0"),
            ),
            // Its author does not count.
            ("1.2.0", "0.1.0", "1.2.0", None, None),
            ("1.2.0", "0.1.0", "1.2.0 1.3.0", Some("1.3.0"), None),
            // Its tag is the earlier one.
            ("1.0.0", "2.0.0", "1.0.0 1.1.0", Some("1.1.0"), None),
            ("1.0.0", "2.0.0", "1.1.0", Some("1.1.0"), None),
        ] {
            // The note is only for signed plugins; the version may also be what the component says.
            for (signer, pinned_version) in [(signer, version), ("", tag)] {
                let (releases, is_good) = releases(offered, tag);
                let locked = locked(tag, pinned_version, signer);
                let pinned = pinned(&locked, Some(version), is_good);
                let newest = newest_of(&releases, &pinned);
                let newest = newest.and_then(|newest| newest.version.as_ref());
                let newest = newest.map(ToString::to_string);
                assert_eq!(newest.as_deref(), expect, "{tag} {version}: {offered}");
                let told = passed_over(&releases, &pinned);
                let between = between.filter(|_| !signer.is_empty());
                let to = between.map(|between| format!("update notes --to {between}`"));
                assert_eq!(told.is_some(), to.is_some(), "{told:?}");
                assert!(told.unwrap_or_default().contains(&to.unwrap_or_default()));
            }
        }
    }

    /// Those of a list, of which `-` was withdrawn and `~` is a tag that stands for something else now; and whether `tag` counts among them.
    fn releases(offered: &str, tag: &str) -> (Vec<Release>, bool) {
        let of = |text: &str| match text.strip_prefix('-') {
            Some(yanked) => release(yanked, true),
            None => release(text.trim_start_matches('~'), false),
        };
        let is_good = offered.split(' ').any(|text| text == tag);
        (offered.split(' ').map(of).collect(), is_good)
    }

    fn pinned<'a>(
        locked: &'a LockedPlugin,
        word: Option<&str>,
        has_good_tag: bool,
    ) -> PinnedRelease<'a> {
        PinnedRelease {
            locked,
            word: word.and_then(version_of_tag),
            has_good_tag,
        }
    }

    fn locked(tag: &str, version: &str, signer: &str) -> LockedPlugin {
        let text = format!(
            "version = 3\n[[plugin]]\nname = \"notes\"\nfile = \"notes.wasm\"\nwasm = \"{wasm}\"\ntools = \"{wasm}\"\n\
             accepted = 2026-11-20T08:00:00Z\nversion = \"{version}\"\n\
             source = {{ reference = \"registry.example.org/team/notes:{tag}\", manifest = \"{wasm}\" }}\n{signer}",
            wasm = Digest::new([7; 32])
        );
        let lock = Lock::parse(&text, Path::new("zeph.lock")).unwrap();
        lock.plugins()[0].clone()
    }
}
