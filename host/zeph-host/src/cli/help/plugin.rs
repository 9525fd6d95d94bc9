//! Help texts of `zeph-host plugin`.

macro_rules! plugin_examples {
    () => {
        r#"Examples:
  zeph-host plugin check weather.wasm            check a component without installing it
  zeph-host plugin add weather.wasm              install it
  zeph-host plugin grant weather --dir ~/notes   grant a capability it requests
  zeph-host plugin                               list plugins"#
    };
}

macro_rules! check_examples {
    () => {
        r#"Examples:
  zeph-host plugin check weather.wasm
  zeph-host plugin check weather.wasm --no-run --json
  zeph-host plugin check my-project"#
    };
}

macro_rules! add_examples {
    () => {
        r#"Examples:
  zeph-host plugin add weather.wasm
  zeph-host plugin add my-project --name weather
  zeph-host plugin add ghcr.io/org/weather:1.2
  zeph-host plugin add https://example.org/weather.wasm --sha256 HEX
  zeph-host plugin add weather-2.wasm --name weather --replace"#
    };
}

macro_rules! publish_examples {
    () => {
        r#"Examples:
  zeph-host plugin publish weather.wasm ghcr.io/org/weather:1.2.0
  zeph-host plugin publish my-project localhost:5000/weather:1.2.0 --json"#
    };
}

macro_rules! grant_examples {
    () => {
        r#"Examples:
  zeph-host plugin grant weather --dir ~/notes:read+write
  zeph-host plugin grant weather --dir . --once
  zeph-host plugin grant weather --variable LANG --limit memory_bytes=1073741824 --until 2026-12-31
  zeph-host plugin grant weather --secret FORECAST_KEY=api.example.com:authorization:GET
  zeph-host plugin grant weather --all"#
    };
}

/// For `-h` of `zeph-host plugin`.
pub(crate) const PLUGIN_EXAMPLES: &str = plugin_examples!();

/// For `--help` of `zeph-host plugin`.
pub(crate) const PLUGIN_LONG: &str = concat!(
    plugin_examples!(),
    r#"

A plugin is a WebAssembly component (`*.wasm`) in the directory `plugins` beside the configuration
file, or in ~/.local/share/zeph-host/plugins. A file copied there is checked and its tools become
available; when the file is removed, so are its tools. A running `zeph-host run` follows changes.

A plugin has no access to files, network, programs or environment variables until it is granted.
Its manifest requests capabilities, each with a reason. The effective capabilities are those that
are requested, granted and within `tools.file`. No tool can grant capabilities.

`zeph.lock` beside the directory pins each plugin when it is first seen: the digest of its file and
its tool definitions. When either changes, the plugin is off until `plugin approve`."#
);

/// For `-h` of `zeph-host plugin check`.
pub(crate) const CHECK_EXAMPLES: &str = check_examples!();

/// For `--help` of `zeph-host plugin check`.
pub(crate) const CHECK_LONG: &str = concat!(
    check_examples!(),
    r#"

Reads the component's world, imports and manifest, then lists its tools in the sandbox without any
grants. Nothing else is run and the configuration is not read. Only the compiled component is
stored, in the cache, so that `plugin add` does not compile it again.

Exit codes:
  0  the component can be used
  1  the component has problems; each is listed with what to fix
  2  the file does not exist"#
);

/// For `-h` of `zeph-host plugin add`.
pub(crate) const ADD_EXAMPLES: &str = add_examples!();

/// For `--help` of `zeph-host plugin add`.
pub(crate) const ADD_LONG: &str = concat!(
    add_examples!(),
    r#"

A reference names an artifact in an OCI registry, by its tag or by the digest of its manifest
(`ghcr.io/org/weather@sha256:…`). The registry must be in `plugins.registries`. Credentials are read
from the configuration of wkg, docker and podman; credential helpers are not run. Every byte is
checked against the digest that was asked for or declared. A URL needs the digest of the component;
on a private network or over plain HTTP its host must be in `plugins.registries` as well.

A package (`ns:name@1.2.0`) is where wkg would find it: at the registry that wkg's configuration
gives its namespace. That registry, and the one it refers to, must be in `plugins.registries`.

In a project directory the component is searched for in the build output, dist, build and the
directory itself. A component that cannot be used is refused and nothing is copied. The plugin is
named after the file: 1 to 48 characters of `a-z 0-9 _ -`.

A version that its publisher withdrew, as an index of `plugins.index` says, is added only after you
agree, or with `--yes --accept yanked`.

A new plugin has no grants; the capabilities it requests are printed with the command that grants
them."#
);

/// For `-h` of `zeph-host plugin publish`.
pub(crate) const PUBLISH_EXAMPLES: &str = publish_examples!();

/// For `--help` of `zeph-host plugin publish`.
pub(crate) const PUBLISH_LONG: &str = concat!(
    publish_examples!(),
    r#"

The component is checked as by `plugin check`; what is not a plugin is not published. The artifact
follows the layout of wkg: one layer of the type `application/wasm`, and annotations from the
component's metadata. The same file has the same digest every time; the reference with this digest
is printed.

With --sign, a tag that is a version has to be the version of the component. Without it, the
signature beside the file (`.minisig`) is published if the configuration accepts it.

The registry must be in `plugins.registries`, and credentials for it in the configuration of docker
or wkg. An artifact that has the tag loses it to the new one."#
);

/// For `-h` of `zeph-host plugin grant`.
pub(crate) const GRANT_EXAMPLES: &str = grant_examples!();

/// For `--help` of `zeph-host plugin grant`.
pub(crate) const GRANT_LONG: &str = concat!(
    grant_examples!(),
    r#"

Only capabilities requested by the plugin's manifest can be granted; `plugin info NAME` shows them
with their reasons. A directory without RIGHTS is granted with the rights the manifest requests.
Relative paths are resolved against the current directory.

A grant takes effect with the next call, in every running host. It is bound to the plugin's file and
tool definitions, and carried over when a change is approved with `plugin approve`.

--mode observe grants on trial: calls go on, and `policy report` counts those that hold the grant.
--mode ask asks before each call that holds it. --mode deny withholds it, even where default
grants or other grants give it: of a directory the part that is named, and of everything else each
grant that has a part of it. A program that the plugin runs lacks these rights in all of a granted
directory. Of two modes for one capability the newer counts."#
);

/// For the help of `zeph-host plugin revoke`.
pub(crate) const REVOKE_EXAMPLES: &str = r#"Examples:
  zeph-host plugin revoke weather --dir ~/notes          all rights there and below
  zeph-host plugin revoke weather --dir ~/notes:write    only the right to write
  zeph-host plugin revoke weather --id 3
  zeph-host plugin revoke weather --all

Takes effect with the next call, in every running host."#;

/// For the help of `zeph-host plugin approve`.
pub(crate) const APPROVE_EXAMPLES: &str = r#"Examples:
  zeph-host plugin approve weather          show the changes and ask
  zeph-host plugin approve weather --yes
  zeph-host plugin approve weather --json   print the changes and exit with code 5"#;

/// For the help of `zeph-host plugin new`.
pub(crate) const NEW_EXAMPLES: &str = r#"Examples:
  zeph-host plugin new --lang rust weather
  zeph-host plugin new --lang python weather --dir ~/src"#;

/// For the help of `zeph-host plugin dev`.
pub(crate) const DEV_EXAMPLES: &str = r#"Examples:
  zeph-host plugin dev weather
  zeph-host plugin dev weather --approve"#;
