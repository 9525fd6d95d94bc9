//! Help of `zeph-host plugin sync`, `bundle`, `outdated`, `update` and `search`.

macro_rules! sync_examples {
    () => {
        r#"Examples:
  zeph-host plugin sync --dry-run
  zeph-host plugin sync
  zeph-host plugin sync --from plugins.bundle
  zeph-host --plugins plugins plugin sync --prune --yes --json"#
    };
}

macro_rules! bundle_examples {
    () => {
        r#"Examples:
  zeph-host plugin bundle plugins.bundle
  zeph-host plugin bundle plugins.bundle --force --json"#
    };
}

macro_rules! update_examples {
    () => {
        r#"Examples:
  zeph-host plugin update weather
  zeph-host plugin update weather --yes
  zeph-host plugin update weather --to 1.1.0 --yes --accept downgrade"#
    };
}

macro_rules! search_examples {
    () => {
        r#"Examples:
  zeph-host plugin search weather
  zeph-host plugin search markdown notes --json"#
    };
}

/// For `-h` of `zeph-host plugin sync`.
pub(crate) const SYNC_EXAMPLES: &str = sync_examples!();

/// For `--help` of `zeph-host plugin sync`.
pub(crate) const SYNC_LONG: &str = concat!(
    sync_examples!(),
    r#"

Compares the directory that `plugin add` uses with its `zeph.lock`. What is missing or differs is
fetched from the source in the lock, and only bytes with the pinned digest are installed. So are
signatures, where those beside a plugin do not count. Each plugin is installed completely or not at
all. Files that are not in the lock are listed; `--prune` removes them. `--plugins DIR` uses another
directory.

With `--from`, nothing is fetched. Plugins that the lock in the bundle pins and the lock of the
directory does not, or pins differently, are shown with what changes; they are pinned and installed
after you agree. `--locked` omits them.

The lock cannot allow anything: registries, signers and the rule for unsigned plugins are those of
your own configuration. A pinned version that its publisher withdrew is named. Exits with 1 if a
plugin could not be installed, with 5 if you have to agree."#
);

/// For `-h` of `zeph-host plugin bundle`.
pub(crate) const BUNDLE_EXAMPLES: &str = bundle_examples!();

/// For `--help` of `zeph-host plugin bundle`.
pub(crate) const BUNDLE_LONG: &str = concat!(
    bundle_examples!(),
    r#"

Writes every plugin of the directory that `plugin add` uses, or of `--plugins DIR`: those of its
lock with their signatures and the manifest of its registry, the lock, and
the indexes of `plugins.index` into one tar archive. What is not in the directory is fetched. The
same plugins give the same bytes."#
);

/// For `-h` of `zeph-host plugin outdated`.
pub(crate) const OUTDATED_EXAMPLES: &str =
    "Examples:\n  zeph-host plugin outdated\n  zeph-host plugin outdated --json";

/// For `-h` of `zeph-host plugin update`.
pub(crate) const UPDATE_EXAMPLES: &str = update_examples!();

/// For `--help` of `zeph-host plugin update`.
pub(crate) const UPDATE_LONG: &str = concat!(
    update_examples!(),
    r#"

Fetches the newest version (a tag of the repository that is a semantic version, or a version of an
index; neither one before its release nor a withdrawn one), checks its signature, and shows what is
different in tools, requested capabilities, source and signer. After you agree it replaces the old
one and keeps its grants, as far as it still requests them. Where the installed signatures do not
count any more, those that the source has by now for the same version replace them.

Without a terminal it exits with 5 unless `--yes` is given. Another signer than the pinned one, a
lower version, a withdrawn version, and an unsigned one where you are to be asked have to be named
as well: `--accept signer`, `downgrade`, `yanked`, `unsigned`. Of a signed plugin the version that
was signed counts, and not the tag; the tags count between builds of the same version."#
);

/// For `-h` of `zeph-host plugin search`.
pub(crate) const SEARCH_EXAMPLES: &str = search_examples!();

/// For `--help` of `zeph-host plugin search`.
pub(crate) const SEARCH_LONG: &str = concat!(
    search_examples!(),
    r#"

Searches the indexes of `plugins.index`. An index is used only with a valid signature of one of
`[[plugins.trust.signers]]` whose `offers` cover its address, before it expires, and if no later one
was seen before."#
);
