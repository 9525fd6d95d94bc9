//! The secrets this host knows: those that are stored, the tokens of logins, and those that it handed to a call. What it knows is removed from everything
//! it shows, stores, records and logs, from then on and until the process ends.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use zeph_config::Config;
use zeph_core::execution::SecretValue;
use zeph_core::redact::Redactor;
use zeph_core::secret::SecretUse;
use zeph_egress::exit::NamedValues;
use zeph_egress::secret::{CallSecrets, GrantedSecret};
use zeph_store::{
    Keyring, LoginFolder, ReachableSecrets, SecretFolder, SecretsError, SecretsStamp,
};

use crate::clock::now_ms;

/// After how long a keyring that could not be reached is tried again.
const KEYRING_PAUSE: Duration = Duration::from_secs(30);

/// What the log is written with. A process has one log, so what any of its hosts knows is removed from it.
static IN_LOG: RwLock<Option<LogSecrets>> = RwLock::new(None);

/// Every value that any host of the process has known.
struct LogSecrets {
    ever: Vec<SecretValue>,
    redactor: Redactor,
}

impl LogSecrets {
    /// These, and those that were known before.
    fn with(before: Option<&Self>, known: &[SecretValue]) -> Self {
        let mut ever = before.map_or_else(Vec::new, |before| before.ever.clone());
        ever.extend_from_slice(known);
        ever.sort_by(|one, other| (&one.value, &one.name).cmp(&(&other.value, &other.name)));
        ever.dedup();
        let redactor = Redactor::new(&ever);
        Self { ever, redactor }
    }
}

/// The secrets, and what removes them. Clones of its redactor stay as they are.
#[derive(Debug)]
pub(crate) struct KnownSecrets {
    /// Where values are stored; none with a store in memory.
    folder: Option<SecretFolder>,
    /// Where tokens of logins are stored, beside them.
    logins: Option<LoginFolder>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The state of the file of secrets that was read last; the outer `None` before the first reading.
    seen_secrets: Option<Option<SecretsStamp>>,
    /// The same of the file of logins.
    seen_logins: Option<Option<SecretsStamp>>,
    /// As that state says them; not at all when it could not be read.
    stored: Vec<SecretValue>,
    /// All values that were ever known, by name: one that was replaced may still be in use elsewhere.
    ever: Vec<SecretValue>,
    redactor: Redactor,
    /// Why the file, or what the keyring has of it, is not used.
    problem: Option<String>,
    /// When the keyring is tried again.
    again_at: Option<Instant>,
}

impl KnownSecrets {
    /// Reads the stored secrets. Those that are set later are known from the next look on.
    pub(crate) fn open(config: &Config) -> Self {
        let known = Self {
            folder: folder(config),
            logins: config.store.secrets().map(LoginFolder::new),
            known: Mutex::default(),
        };
        drop(known.look());
        known
    }

    /// Those of a folder of its own, where one is stored now: for the self-test.
    ///
    /// Errors: of the folder.
    pub(crate) fn of_one(folder: &Path, name: &str, value: &str) -> io::Result<Self> {
        let logins = LoginFolder::new(folder);
        let folder = SecretFolder::new(folder);
        let set = folder.set(name, value, now_ms());
        set.map_err(io::Error::other)?;
        let known = Self {
            folder: Some(folder),
            logins: Some(logins),
            known: Mutex::default(),
        };
        drop(known.look());
        Ok(known)
    }

    /// What removes every secret that is known now.
    pub(crate) fn redactor(&self) -> Redactor {
        self.look().redactor.clone()
    }

    /// The same as of the last look. Enough where the same call has looked a moment before, and no person was asked since.
    pub(crate) fn last_redactor(&self) -> Redactor {
        self.lock().redactor.clone()
    }

    /// What the requests of a call get, and what its responses must not hold: `uses` were granted, and the call is handed `variables`. Without
    /// uses, as of the last look.
    pub(crate) fn of_call(
        &self,
        uses: &[SecretUse],
        variables: &[(String, String)],
    ) -> CallSecrets {
        let known = match uses.is_empty() {
            true => self.lock(),
            false => self.look(),
        };
        known.of_call(uses, variables)
    }

    /// What one request of a command gets, and the values of those of `names` that are stored, as of one look: what its response must not
    /// hold has each of these values.
    pub(crate) fn of_request(
        &self,
        uses: &[SecretUse],
        names: &[String],
    ) -> (CallSecrets, NamedValues) {
        let known = self.look();
        let stored = names
            .iter()
            .filter_map(|name| Some((name.clone(), known.value(name)?)));
        let stored = stored.collect();
        (known.of_call(uses, &[]), stored)
    }

    /// The value of a stored secret, as it is now.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.look().value(name)
    }

    /// Why no stored secret is used, when one should be.
    pub(crate) fn problem(&self) -> Option<String> {
        self.look().problem.clone()
    }

    /// Adds what a call is about to be given.
    pub(crate) fn learn(&self, secrets: Vec<SecretValue>) {
        if !secrets.is_empty() {
            self.look().add(secrets);
        }
    }

    /// What is known, after a look whether a file is another than before. Each file is looked at for itself.
    fn look(&self) -> MutexGuard<'_, Known> {
        let mut known = self.lock();
        if let Some(folder) = &self.folder {
            known.look_at_secrets(folder);
        }
        if let Some(logins) = &self.logins {
            known.look_at_logins(logins);
        }
        known
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn value(&self, name: &str) -> Option<String> {
        let secret = self.stored.iter().find(|secret| secret.name == name);
        secret.map(|secret| secret.value.clone())
    }

    fn of_call(&self, uses: &[SecretUse], variables: &[(String, String)]) -> CallSecrets {
        let (set, unset): (Vec<_>, Vec<_>) = uses
            .iter()
            .cloned()
            .map(|granted| (self.value(&granted.name), granted))
            .partition(|(value, _)| value.is_some());
        let granted = set.into_iter().filter_map(|(value, granted)| {
            let value = value?;
            Some(GrantedSecret { granted, value })
        });
        CallSecrets {
            granted: granted.collect(),
            unset: unset.into_iter().map(|(_, used)| used).collect(),
            known: self.redactor_without(variables),
        }
    }

    /// What removes every secret but those that are values of `variables`.
    fn redactor_without(&self, variables: &[(String, String)]) -> Redactor {
        let is_handed = |secret: &&SecretValue| {
            let is_stored = self.stored.contains(secret);
            let mut values = variables.iter().map(|(_, value)| value);
            !is_stored && values.any(|value| *value == secret.value)
        };
        if !self.ever.iter().any(|secret| is_handed(&secret)) {
            return self.redactor.clone();
        }
        let others = self.ever.iter().filter(|secret| !is_handed(secret));
        Redactor::new(&others.cloned().collect::<Vec<_>>())
    }

    fn look_at_secrets(&mut self, folder: &SecretFolder) {
        // Taken first: what changes meanwhile is read at the next look.
        let stamp = Some(folder.stamp());
        let is_due = self.again_at.is_some_and(|at| Instant::now() >= at);
        if stamp != self.seen_secrets || is_due {
            self.seen_secrets = stamp;
            self.read_secrets(folder);
        }
    }

    fn look_at_logins(&mut self, logins: &LoginFolder) {
        let stamp = Some(logins.stamp());
        if stamp != self.seen_logins {
            self.seen_logins = stamp;
            self.read_logins(logins);
        }
    }

    fn read_secrets(&mut self, folder: &SecretFolder) {
        let ReachableSecrets {
            secrets,
            problem: of_keyring,
        } = match folder.read_reachable() {
            Ok(reachable) => reachable,
            Err(error) => {
                let problem = problem(&error);
                tracing::warn!(problem, "no stored secret is used");
                self.problem = Some(problem);
                self.again_at = None;
                self.stored.clear();
                return;
            }
        };
        self.problem = of_keyring.as_ref().map(problem);
        if let Some(problem) = &self.problem {
            tracing::warn!(problem, "no secret in the keyring is used");
        }
        // Its user may unlock it, which changes no file.
        self.again_at = of_keyring.map(|_| Instant::now() + KEYRING_PAUSE);
        self.stored = secrets
            .into_iter()
            .map(|secret| SecretValue {
                name: secret.name,
                value: secret.value,
            })
            .collect();
        self.add(self.stored.clone());
    }

    /// No plugin can be granted a token of a login: it is known, and not among the stored secrets.
    fn read_logins(&mut self, logins: &LoginFolder) {
        let read = logins.read().unwrap_or_else(|error| {
            let problem = problem(&error);
            // Of the folder it was said of the secrets.
            if self.problem.as_ref() != Some(&problem) {
                tracing::warn!(problem, "no stored login is used");
            }
            BTreeMap::new()
        });
        let tokens = read.into_iter().flat_map(|(server, login)| {
            let name = format!("login of {server}");
            let tokens = login.secrets.into_iter();
            tokens.map(move |value| SecretValue {
                name: name.clone(),
                value,
            })
        });
        self.add(tokens.filter(|token| !token.value.is_empty()).collect());
    }

    fn add(&mut self, secrets: Vec<SecretValue>) {
        let n_before = self.ever.len();
        for secret in secrets {
            if !self.ever.contains(&secret) {
                self.ever.push(secret);
            }
        }
        if self.ever.len() == n_before {
            return;
        }
        self.redactor = Redactor::new(&self.ever);
        let mut in_log = IN_LOG.write().unwrap_or_else(PoisonError::into_inner);
        *in_log = Some(LogSecrets::with(in_log.as_ref(), &self.ever));
    }
}

/// The folder of the stored secrets: values are in the keyring of the operating system where there is one. None with a store in memory.
pub(crate) fn folder(config: &Config) -> Option<SecretFolder> {
    let folder = SecretFolder::new(config.store.secrets()?);
    Some(match config.uses_keyring {
        true => folder.with_keyring(Keyring::at(zeph_config::session_bus())),
        false => folder,
    })
}

/// The value of a stored secret, for what is needed before anything else is there.
///
/// Errors: one sentence that names it.
pub(crate) fn stored(config: &Config, name: &str) -> Result<String, String> {
    let none =
        || format!("the secret `{name}` is not stored; `zeph-host secret set {name}` stores it");
    let folder = folder(config).ok_or_else(none)?;
    let read = folder.read_reachable().map_err(|error| problem(&error))?;
    let found = read.secrets.into_iter().find(|secret| secret.name == name);
    match (found, read.problem) {
        (Some(secret), _) => Ok(secret.value),
        (None, Some(unreachable)) => Err(problem(&unreachable)),
        (None, None) => Err(none()),
    }
}

/// `line` of the log without any secret.
pub(crate) fn for_log(line: &[u8]) -> Option<String> {
    let in_log = IN_LOG.read().unwrap_or_else(PoisonError::into_inner);
    let redactor = in_log.as_ref().map(|known| &known.redactor);
    let redactor = redactor.filter(|redactor| !redactor.is_empty())?;
    let text = String::from_utf8_lossy(line);
    Some(redactor.text(&text).into_owned())
}

fn problem(error: &SecretsError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use zeph_store::StoredLogin;

    use super::*;

    #[test]
    fn each_file_is_read_whether_or_not_there_is_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets");
        let (secret, token) = ("value-of-a-secret-1", "token-of-a-login-2");
        let set = SecretFolder::new(&path).set("A", secret, 1);
        set.unwrap();
        let login = StoredLogin {
            record: "{}".to_owned(),
            secrets: vec![token.to_owned()],
        };
        LoginFolder::new(&path).set("server", login).unwrap();
        for (has_secrets, has_logins) in [(true, false), (false, true), (true, true)] {
            let known = KnownSecrets {
                folder: has_secrets.then(|| SecretFolder::new(&path)),
                logins: has_logins.then(|| LoginFolder::new(&path)),
                known: Mutex::default(),
            };
            let redactor = known.redactor();
            let text = redactor.text("value-of-a-secret-1 token-of-a-login-2");
            assert_eq!(text.contains(secret), !has_secrets, "{text}");
            assert_eq!(text.contains(token), !has_logins, "{text}");
            assert_eq!(known.value("A").is_some(), has_secrets);
        }
    }

    #[test]
    fn a_value_that_was_replaced_is_given_with_what_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SecretFolder::new(dir.path().join("secrets"));
        let known = KnownSecrets {
            folder: Some(SecretFolder::new(dir.path().join("secrets"))),
            logins: None,
            known: Mutex::default(),
        };
        let names = ["A".to_owned(), "B".to_owned()];
        for value in ["value-of-a-secret-1", "value-of-a-secret-2-replaced"] {
            folder.set("A", value, 1).unwrap();
            let (call, stored) = known.of_request(&[], &names);
            assert_eq!(stored, [("A".to_owned(), value.to_owned())].into());
            assert!(!call.known.text(value).contains(value));
        }
    }

    #[test]
    fn a_secret_in_a_keyring_that_is_away_is_a_problem_and_others_are_used() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SecretFolder::new(dir.path().join("secrets"));
        folder.set("HERE", "value-of-a-secret-1", 1).unwrap();
        folder.set("THERE", "value-of-a-secret-2", 2).unwrap();
        let text = std::fs::read_to_string(folder.file()).unwrap();
        let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
        let there = file["secrets"]["THERE"].as_object_mut().unwrap();
        there.remove("value");
        std::fs::write(folder.file(), file.to_string()).unwrap();
        let known = KnownSecrets {
            folder: Some(folder.with_keyring(Keyring::at("unix:path=/there/is/none"))),
            logins: None,
            known: Mutex::default(),
        };
        assert!(known.value("HERE").is_some() && known.value("THERE").is_none());
        let problem = known.problem().unwrap();
        assert!(problem.contains("keyring"), "{problem}");
    }
}
