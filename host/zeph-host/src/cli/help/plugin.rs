//! The help texts of `zeph-host plugin`.

macro_rules! plugin_examples {
    () => {
        r#"Examples:
  zeph-host plugin check weather.wasm            what a component is and wants, before it is added
  zeph-host plugin add weather.wasm              copy it into the folder of plugins
  zeph-host plugin grant weather --dir ~/notes   give it something that it wants
  zeph-host plugin                               what there is"#
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
  zeph-host plugin add weather-2.wasm --name weather --replace"#
    };
}

macro_rules! grant_examples {
    () => {
        r#"Examples:
  zeph-host plugin grant weather --dir ~/notes:read+write
  zeph-host plugin grant weather --dir . --once
  zeph-host plugin grant weather --variable LANG --limit memory_bytes=1073741824 --until 2026-12-31
  zeph-host plugin grant weather --all"#
    };
}

/// For `-h` of `zeph-host plugin`.
pub(crate) const PLUGIN_EXAMPLES: &str = plugin_examples!();

/// For `--help` of `zeph-host plugin`.
pub(crate) const PLUGIN_LONG: &str = concat!(
    plugin_examples!(),
    r#"

A plugin is a WebAssembly component in the folder `plugins` beside the configuration file, or in
~/.local/share/zeph-host/plugins. A file that is dropped there is checked and its tools can be
called; a file that is removed takes them along. `zeph-host run` follows while it runs.

A plugin starts with nothing: it computes, and reaches no file, network, program or variable. What
it wants stands in its manifest, with a reason each; what it gets is what the manifest wants, what
was granted, and what `tools.file` allows, all three. No tool can grant anything.

`zeph.lock` beside the folder records what each plugin was when it was first seen: the digest of
its file, and all that it says about its tools. When one of them changes it is off until
`plugin approve`."#
);

/// For `-h` of `zeph-host plugin check`.
pub(crate) const CHECK_EXAMPLES: &str = check_examples!();

/// For `--help` of `zeph-host plugin check`.
pub(crate) const CHECK_LONG: &str = concat!(
    check_examples!(),
    r#"

The file is read: what it was built for, what it imports, what its manifest wants. Then it is asked
for its tools, in the sandbox and with nothing granted; nothing else of it is run. Neither the
configuration nor the folders of plugins count, and nothing is kept.

Exit codes:
  0  it can be used
  1  something has to be fixed; each problem says what
  2  there is no such file"#
);

/// For `-h` of `zeph-host plugin add`.
pub(crate) const ADD_EXAMPLES: &str = add_examples!();

/// For `--help` of `zeph-host plugin add`.
pub(crate) const ADD_LONG: &str = concat!(
    add_examples!(),
    r#"

In a project the component is looked for where it is built: target/wasm32-wasip2/release, dist,
build, and the project itself. A component that cannot be used is refused and nothing is copied.
The plugin is named after the file: 1 to 48 of `a-z 0-9 _ -`.

It holds nothing afterwards; what it wants is shown, with the command that grants it."#
);

/// For `-h` of `zeph-host plugin grant`.
pub(crate) const GRANT_EXAMPLES: &str = grant_examples!();

/// For `--help` of `zeph-host plugin grant`.
pub(crate) const GRANT_LONG: &str = concat!(
    grant_examples!(),
    r#"

Only what the plugin's manifest wants can be granted; `plugin info NAME` shows it with the reasons.
A directory without rights is granted with those that the manifest wants there. Relative paths
start at the current directory.

A grant holds from the next call on, in every running host, and for exactly this file and these
tools: after `plugin approve` of a change it is carried over. Hosts and programs are recorded only:
no plugin has the network or starts programs in this version."#
);

/// For the help of `zeph-host plugin revoke`.
pub(crate) const REVOKE_EXAMPLES: &str = r#"Examples:
  zeph-host plugin revoke weather --dir ~/notes          what was granted there and below
  zeph-host plugin revoke weather --dir ~/notes:write    reading stays
  zeph-host plugin revoke weather --id 3
  zeph-host plugin revoke weather --all

It holds from the next call on, in every running host."#;

/// For the help of `zeph-host plugin approve`.
pub(crate) const APPROVE_EXAMPLES: &str = r#"Examples:
  zeph-host plugin approve weather          shows the changes and asks
  zeph-host plugin approve weather --yes
  zeph-host plugin approve weather --json   shows the changes and ends with exit code 5"#;

/// For the help of `zeph-host plugin new`.
pub(crate) const NEW_EXAMPLES: &str = r#"Examples:
  zeph-host plugin new --lang rust weather
  zeph-host plugin new --lang python weather --dir ~/src"#;

/// For the help of `zeph-host plugin dev`.
pub(crate) const DEV_EXAMPLES: &str = r#"Examples:
  zeph-host plugin dev weather
  zeph-host plugin dev weather --approve"#;
