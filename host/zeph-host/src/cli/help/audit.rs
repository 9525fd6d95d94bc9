//! Help texts of `audit`.

macro_rules! verify_examples {
    () => {
        r#"Examples:
  zeph-host audit verify
  zeph-host audit verify --json
  journalctl -t zeph-host -o json >seen.jsonl; zeph-host audit verify --against seen.jsonl"#
    };
}

/// For `-h` of `zeph-host audit verify`.
pub(crate) const AUDIT_VERIFY_EXAMPLES: &str = verify_examples!();

/// For `--help` of `zeph-host audit verify`.
pub(crate) const AUDIT_VERIFY_LONG: &str = concat!(
    verify_examples!(),
    r#"

Every begin and every end of a call, in the store and in the audit file, has a code (HMAC-SHA-256)
over itself and the record before it. The key is in the keyring of the operating system where
there is one, else in `secrets/audit.json` beside the store. Without the key nobody can change,
remove, move or insert a record so that this command does not report it, with the ID of the call
and the record or line.

Two things a code cannot show: that the newest records were cut off, and that someone who has the
key wrote the log anew. Both show against checkpoints that are kept elsewhere
(`tools.audit.checkpoint_target`, `audit checkpoint`). Records that were never written, because
the user who runs the host replaced the program itself, do not show at all.

A log that begins anew where another was sealed before is reported: its seals were deleted, or the
store was removed. If you removed it yourself, `zeph-host audit rekey` accepts that.

The exit code is 1 when anything is wrong. A line that is not whole because a host died while it
wrote it is reported, and is not wrong. Calls from before the log was sealed are counted and not
covered."#
);

/// For `--help` of `zeph-host audit export`.
pub(crate) const AUDIT_EXPORT_EXAMPLES: &str = r#"Examples:
  zeph-host audit export --since 7d >calls.jsonl
  zeph-host audit export --format csv --output calls.csv
  zeph-host audit export --format otlp --endpoint http://localhost:4318/v1/logs"#;
