//! Help texts of `store`.

macro_rules! store_examples {
    () => {
        r#"Examples:
  zeph-host store migrate                  prepare the configured store, before hosts start
  zeph-host store copy sqlite:zeph.db configured
  zeph-host store copy configured sqlite:backup.db
  zeph-host store copy 'postgres://zeph@old/zeph' 'postgres://zeph@new/zeph'"#
    };
}

/// For `-h` of `zeph-host store`.
pub(crate) const STORE_EXAMPLES: &str = store_examples!();

/// For `--help` of `zeph-host store`.
pub(crate) const STORE_LONG: &str = concat!(
    store_examples!(),
    r#"

The store is a file (`store.path`) or a PostgreSQL server that several hosts can share
(`store.url`). Every host brings its tables to its own version when it starts; `store migrate`
does only that, so that the user of the hosts in the database needs no right to create tables.

`store copy` copies all tables and compares the numbers of rows. An interrupted copy leaves
nothing, and a target that contains anything is refused. Stop the hosts first: what they record
during the copy stays in the source. A password on the command line can be seen by other users of
the machine; `configured` is the store of the configuration, where the password can be a stored
secret.

Secrets and the keys of the audit log are files and are not copied. A file keeps the chain of one
host: if records of several hosts are copied to a file, they are no longer sealed, and `audit
verify` says so.

JSON of copy: {"tables": [{"table", "rows"}], "unsealed_hosts"}

Exit codes:
  0    success
  1    the store cannot be opened, or the target is not empty
  2    FROM or TO is not a store"#
);
