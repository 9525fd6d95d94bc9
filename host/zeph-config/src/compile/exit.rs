//! `tools.sandbox.allow_hosts` and `[[tools.sandbox.hosts]]`: the hosts that commands reach, and what may pass there.

use zeph_core::failure::one_line;
use zeph_core::network::{ExitHost, HostPattern, Inspection, Methods, Passage};
use zeph_core::secret::SecretUse;

use super::super::raw::{RawExitHost, RawExitTls, RawSandbox};
use super::Compiling;

const HOSTS: &str = "tools.sandbox.allow_hosts";
const RULES: &str = "tools.sandbox.hosts";

/// The secrets of a rule: those that become headers, and the names of those that commands have placeholders of.
///
/// Errors: why one is none.
fn secrets(rule: &RawExitHost) -> Result<(Vec<SecretUse>, Vec<String>), String> {
    let (mut added, mut placeholders) = (Vec::new(), Vec::new());
    for text in &rule.secrets {
        let header = text.split_once('=');
        // Any header tells whether name and host are good.
        let (name, header) = header.unwrap_or((text, "authorization"));
        let used = SecretUse::new(name, &rule.host, header, None).map_err(|bad| bad.to_string())?;
        match text.contains('=') {
            true => added.push(used),
            false if is_variable(name) => placeholders.push(used.name),
            false => {
                let shown = one_line(text, 200);
                return Err(format!(
                    "`{shown}` cannot be the name of a variable; name the header that the secret becomes, such as `{shown}=authorization`"
                ));
            }
        }
    }
    Ok((added, placeholders))
}

/// Whether a command can have a variable of this name.
fn is_variable(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_plain) && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// The hosts of `allowed`, each with what `rules` say of it. A rule holds for all of what is listed, whichever entry lists it: an entry
/// alone lets nothing pass that a rule would not.
fn ruled(allowed: Vec<HostPattern>, mut rules: Vec<ExitHost>) -> Vec<ExitHost> {
    let patterns: Vec<HostPattern> = rules.iter().map(|rule| rule.pattern.clone()).collect();
    // Most others cover the narrowest one, and the first of several that match counts.
    let n_wider = |rule: &ExitHost| {
        let covering = patterns.iter().filter(|one| one.covers(&rule.pattern));
        covering.count()
    };
    rules.sort_by_cached_key(|rule| std::cmp::Reverse(n_wider(rule)));
    let mut hosts = Vec::new();
    for rule in rules {
        let listed = allowed
            .iter()
            .filter_map(|one| one.intersect(&rule.pattern));
        for pattern in listed {
            let is_new = |host: &ExitHost| host.pattern != pattern;
            if hosts.iter().all(is_new) {
                let passage = rule.passage.clone();
                hosts.push(ExitHost { pattern, passage });
            }
        }
    }
    hosts.extend(allowed.into_iter().map(|pattern| ExitHost {
        pattern,
        passage: Passage::Tls,
    }));
    hosts
}

impl Compiling<'_> {
    /// The hosts. What is said of some of them comes first.
    pub(super) fn exit_hosts(&mut self, raw: &RawSandbox) -> Vec<ExitHost> {
        let allowed: Vec<HostPattern> = raw
            .allow_hosts
            .iter()
            .filter_map(|text| self.exit_pattern(HOSTS, text))
            .collect();
        if raw.allow_network && !allowed.is_empty() {
            let message = "has no effect, because `tools.sandbox.allow_network` is true";
            self.merged.warnings.push(format!("`{HOSTS}` {message}"));
        }
        let rules = raw
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(idx, rule)| self.exit_rule(idx, rule, &allowed))
            .collect();
        ruled(allowed, rules)
    }

    /// One host or wildcard, by its name.
    pub(super) fn exit_pattern(&mut self, key: &str, text: &str) -> Option<HostPattern> {
        match text.parse::<HostPattern>() {
            Ok(pattern) if pattern.host().is_some_and(|host| host.name().is_none()) => {
                let shown = one_line(text, 200);
                let message =
                    format!("`{shown}` is an address; commands reach hosts by their names");
                self.merged.problem(key, &message);
                None
            }
            Ok(pattern) => Some(pattern),
            Err(bad) => {
                self.merged.problem(key, &bad.to_string());
                None
            }
        }
    }

    fn exit_rule(
        &mut self,
        idx: usize,
        rule: &RawExitHost,
        allowed: &[HostPattern],
    ) -> Option<ExitHost> {
        let pattern = self.exit_pattern(RULES, &rule.host)?;
        let passage = match self.passage(rule) {
            Ok(passage) => passage,
            Err((field, message)) => {
                self.merged.problem_in(RULES, idx, field, &message);
                return None;
            }
        };
        if !allowed.iter().any(|one| one.intersect(&pattern).is_some()) {
            self.merged.warnings.push(format!(
                "`{RULES}`: `{pattern}` is not among `{HOSTS}`, so commands do not reach it"
            ));
            return None;
        }
        Some(ExitHost { pattern, passage })
    }

    /// Errors: which field is wrong, and why.
    fn passage(&self, rule: &RawExitHost) -> Result<Passage, (&'static str, String)> {
        let inspects = rule.tls == Some(RawExitTls::Inspect);
        if rule.raw && rule.tls.is_some() {
            return Err(("raw", "`raw` and `tls` exclude each other".to_owned()));
        }
        let narrows = [
            ("methods", &rule.methods),
            ("paths", &rule.paths),
            ("secrets", &rule.secrets),
        ];
        if let Some((field, _)) = narrows.into_iter().find(|(_, all)| !all.is_empty())
            && !inspects
        {
            return Err((field, "this needs `tls = \"inspect\"`".to_owned()));
        }
        if rule.raw {
            return Ok(Passage::Raw);
        }
        if !inspects {
            return Ok(Passage::Tls);
        }
        if let Some(path) = rule.paths.iter().find(|path| !path.starts_with('/')) {
            let shown = one_line(path, 200);
            return Err(("paths", format!("`{shown}` does not begin with `/`")));
        }
        let (secrets, placeholders) = secrets(rule).map_err(|bad| ("secrets", bad))?;
        let methods = (!rule.methods.is_empty()).then(|| Methods::try_from(rule.methods.clone()));
        Ok(Passage::Inspected(Inspection {
            methods: methods
                .transpose()
                .map_err(|bad| ("methods", bad.to_string()))?,
            paths: (!rule.paths.is_empty()).then(|| rule.paths.clone()),
            secrets,
            placeholders,
        }))
    }
}
