//! Help texts of `secret`.

macro_rules! secret_examples {
    () => {
        r#"Examples:
  zeph-host secret set GH_TOKEN
  pass show github | sed 's/^/Bearer /' | zeph-host secret set GH_TOKEN
  zeph-host plugin grant issues --secret GH_TOKEN=api.example.com:authorization:GET+POST
  zeph-host secret
  zeph-host secret rm GH_TOKEN"#
    };
}

/// For `-h` of `zeph-host secret`.
pub(crate) const SECRET_EXAMPLES: &str = secret_examples!();

/// For `--help` of `zeph-host secret`.
pub(crate) const SECRET_LONG: &str = concat!(
    secret_examples!(),
    r#"

A secret is the whole value of a header, such as `Bearer abc…`. A plugin that was granted its use
never reads it: the host adds the header to requests of the plugin that go to the granted host,
with a granted method, after all other checks, and never to plain http unless
`tools.egress.private` allows it for that host. Wherever the value would come back, it is replaced
by `[redacted: NAME]`: in results, progress, questions, errors, stored outputs, the audit log and
the log. So are its base64, hexadecimal, percent-encoded, JSON- and HTML-escaped forms. Forms that
were compressed, encrypted, hashed or split are not recognised.

`set` asks for the value without showing it when standard input is a terminal, and reads one line
otherwise. A value has 8 to 8192 printable ASCII characters, at least 4 of them different: shorter
ones occur by chance and could not be removed from outputs. A value is never a command-line
argument.

A value is kept in the keyring of the operating system where one can be reached when it is set:
the Secret Service of a Linux desktop, the keychain of macOS. Otherwise, and with `store.keyring =
false`, it is in the file `secrets/secrets.json` beside the database (`store.path`), which only
its owner can read. `list` says where each is. No tool and no command can reach either.

JSON of list: a list of {"name", "kept_in" ("keyring" or "file"), "file", "created", "plugins"};
plugins: a list of {"plugin", "id", "host", "header", "methods"}

Exit codes:
  0    success
  2    an invalid name or value, or there is no secret of that name"#
);
