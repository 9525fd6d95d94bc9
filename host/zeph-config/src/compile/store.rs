//! `store`: a file or a server.

use super::Compiling;
use crate::raw::RawStore;
use crate::store_url::StoreUrl;
use crate::{StoreLocation, StoreServer};

impl Compiling<'_> {
    /// Where the database is: on a server, or in a file.
    pub(super) fn store(&mut self, raw: &RawStore) -> Option<StoreLocation> {
        if !raw.url.is_empty() {
            return self.store_server(raw).map(StoreLocation::Server);
        }
        if !raw.password_secret.is_empty() {
            let message = "there is no `store.url` it could be the password for";
            self.merged.problem("store.password_secret", message);
        }
        let text = raw.path.as_str();
        if text == ":memory:" {
            return Some(StoreLocation::Memory);
        }
        let home = self.surroundings.data_home.clone();
        match self.place("store.path", text, &home, "zeph.db") {
            Some(path) => Some(StoreLocation::File(path)),
            None => {
                if text.is_empty() || text == "none" {
                    let why = match home.is_none() {
                        true => ", because neither `HOME` nor `XDG_DATA_HOME` is an absolute path",
                        false => "",
                    };
                    let message =
                        format!("there is no place for the database{why}: name one, or `:memory:`");
                    self.merged.problem("store.path", &message);
                }
                None
            }
        }
    }

    fn store_server(&mut self, raw: &RawStore) -> Option<StoreServer> {
        let n_problems = self.merged.problems.len();
        if !raw.path.is_empty() {
            let message = format!(
                "there is a `store.path` too ({}), and a store is either on a server or in a file: set one of the two to \"\"",
                self.merged.said("store.path")
            );
            self.merged.problem("store.url", &message);
        }
        let url = StoreUrl::new(&raw.url);
        if url.is_none() {
            let message =
                "wanted `postgres://USER:PASSWORD@HOST:PORT/DATABASE`; found another kind of URL";
            self.merged.problem("store.url", message);
        }
        let secret = raw.password_secret.as_str();
        if !secret.is_empty() && !zeph_core::secret::is_name(secret) {
            let message = "found no name of a secret, which has 1 to 64 of `A-Z a-z 0-9 _ -`";
            self.merged.problem("store.password_secret", message);
        }
        let is_right = self.merged.problems.len() == n_problems;
        url.filter(|_| is_right).map(|url| StoreServer {
            url,
            password_secret: (!secret.is_empty()).then(|| secret.to_owned()),
            folder: self.surroundings.data_folder(),
        })
    }
}
