//! Help texts of `token`.

macro_rules! token_examples {
    () => {
        r#"Examples:
  zeph-host token add laptop
  zeph-host token add ci --tools 'read,grep,file__*' --expires 30d --rate 60
  zeph-host token
  zeph-host token revoke ci"#
    };
}

/// For `-h` of `zeph-host token`.
pub(crate) const TOKEN_EXAMPLES: &str = token_examples!();

/// For `--help` of `zeph-host token`.
pub(crate) const TOKEN_LONG: &str = concat!(
    token_examples!(),
    r#"

Clients send a token to `zeph-host serve --http` as `Authorization: Bearer TOKEN`. Only its
SHA-256 is stored. The name of a token is its caller ID: approvals, stored outputs and background
commands of one caller are invisible to every other.

Without any token, a server on a loopback address answers every local program; a server on any other
address does not start. As soon as there is a token, every request needs one, without a restart. A
running server stays closed when its last token is revoked.

JSON of list: a list of {"name", "tools", "rate", "created", "expires", "expired"}

Exit codes:
  0    success
  2    there is a token of that name already, or none, or an invalid option"#
);
