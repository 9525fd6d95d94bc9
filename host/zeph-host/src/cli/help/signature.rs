//! Help texts of `plugin keygen`, `plugin sign` and `plugin verify`.

macro_rules! keygen_examples {
    () => {
        r#"Examples:
  zeph-host plugin keygen acme.key                 writes acme.key and acme.pub
  zeph-host plugin keygen ci.key --no-password"#
    };
}

macro_rules! sign_examples {
    () => {
        r#"Examples:
  zeph-host plugin sign weather.wasm --key acme.key
  zeph-host plugin sign my-project --key acme.key --expires 365d
  zeph-host plugin sign weather.wasm --key new.key --add
  zeph-host plugin sign weather.wasm --print-document > document"#
    };
}

macro_rules! verify_examples {
    () => {
        r#"Examples:
  zeph-host plugin verify weather.wasm
  zeph-host plugin verify weather.wasm --key acme.pub
  zeph-host plugin verify weather                  the installed plugin of this name
  zeph-host plugin verify ghcr.io/acme/weather:1.2.0"#
    };
}

/// For `-h` of `zeph-host plugin keygen`.
pub(crate) const KEYGEN_EXAMPLES: &str = keygen_examples!();

/// For `--help` of `zeph-host plugin keygen`.
pub(crate) const KEYGEN_LONG: &str = concat!(
    keygen_examples!(),
    r#"

Makes an ed25519 key pair in the format of minisign. The secret key is encrypted with a password
that is typed at the terminal. Both files are readable by you alone, and no file is ever
overwritten.

Exit codes:
  0  the key pair was written
  1  the question for the password was left, or a file cannot be written
  2  a file exists, the passwords differ, or there is no terminal to type one at"#
);

/// For `-h` of `zeph-host plugin sign`.
pub(crate) const SIGN_EXAMPLES: &str = sign_examples!();

/// For `--help` of `zeph-host plugin sign`.
pub(crate) const SIGN_LONG: &str = concat!(
    sign_examples!(),
    r#"

Writes FILE.minisig beside the component: a signature of minisign over the digests of the
component, its manifest and its tool definitions. Its trusted comment holds the name, the version,
the time and the expiry. The component lists its tools in the sandbox without any grants.

With --print-document the same can be signed with a key that is kept elsewhere:
  minisign -Sm document -x weather.wasm.minisig -t 'name:weather'"#
);

/// For `-h` of `zeph-host plugin verify`.
pub(crate) const VERIFY_EXAMPLES: &str = verify_examples!();

/// For `--help` of `zeph-host plugin verify`.
pub(crate) const VERIFY_LONG: &str = concat!(
    verify_examples!(),
    r#"

Checks the signatures beside a file, or those that a registry has for a reference, with the
signers in [plugins.trust] of the configuration. Nothing is installed. The reference of a file is
`file:NAME`. A name is that of an installed plugin unless there is a file called so.

JSON: {"reference", "component", "state": "signed", "signer", "key", "version", "signed_at",
"expires_at"}, {"state": "unsigned", "passed_over"} or {"state": "refused", "reason", "remedy"};
"mistagged" says that the tag is of another version than what was signed, or is null

Exit codes:
  0  a known signer that may offer it signed it
  1  it is not signed, or the signature is not accepted
  2  there is no such file or plugin"#
);
