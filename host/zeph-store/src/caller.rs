//! Whose something is that outlives a request: a caller, as long as what let it in is valid.

use zeph_core::id::Digest;

/// Whose something is. A token made anew under an old name may be another's: what was the old one's is not its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Owner {
    /// The opaque name of the caller; none at the terminal, and for callers that nobody knows.
    pub id: Option<String>,
    /// The token it came with, if any. Anonymous clients of an open server have a placeholder that no token matches.
    pub token: Option<Digest>,
}

impl Owner {
    /// A caller of this name that came with no token.
    pub fn named(id: Option<&str>) -> Self {
        Self {
            id: id.map(str::to_owned),
            token: None,
        }
    }

    /// Whoever comes to a server that lets everybody in: not the person at the terminal, who has no name either.
    pub fn anonymous() -> Self {
        Self {
            id: None,
            token: Some(Digest::new([0; 32])),
        }
    }

    /// Whether this is an anonymous client of an open server.
    pub fn is_anonymous(&self) -> bool {
        self.id.is_none() && self.token.is_some()
    }

    /// As it is sealed, and kept where nobody is null.
    pub fn text(&self) -> Option<String> {
        // The name of a token has no line break, and no colon as the subjects of access tokens have.
        self.id.as_ref().map(|id| match self.token {
            Some(token) => format!("{id}\n{}", token.hex()),
            None => id.clone(),
        })
    }

    /// As it stands in columns that are never null: nobody, a caller without letters and one with a token differ.
    pub(crate) fn word(&self) -> String {
        match (&self.id, self.token) {
            (None, None) => String::new(),
            (None, Some(_)) => "?".to_owned(),
            (Some(id), None) => format!("@{id}"),
            (Some(id), Some(token)) => format!("+{id}\n{}", token.hex()),
        }
    }

    /// The one of a word.
    pub(crate) fn of_word(word: &str) -> Self {
        if word == "?" {
            return Self::anonymous();
        }
        let Some(with_token) = word.strip_prefix('+') else {
            return Self::named(word.strip_prefix('@'));
        };
        let (id, hex) = with_token.rsplit_once('\n').unwrap_or((with_token, ""));
        let token = format!("sha256:{hex}").parse();
        Self {
            id: Some(id.to_owned()),
            // What cannot be read is a token that nobody has.
            token: Some(token.unwrap_or_else(|_| Digest::new([0; 32]))),
        }
    }
}

#[cfg(test)]
mod tests {
    use zeph_core::id::Digest;

    use super::Owner;

    #[test]
    fn owners_differ_by_name_and_token_and_are_read_as_they_were_written() {
        let token = Some(Digest::new([7; 32]));
        let forged = format!("ann\n{}", Digest::new([7; 32]).hex());
        let ids = [None, Some(""), Some("ann"), Some("a\nb"), Some(&*forged)];
        let mut owners: Vec<Owner> = ids.map(Owner::named).to_vec();
        owners.extend([Owner::anonymous(), Owner::named(Some("?"))]);
        owners.extend(ids[1..].iter().map(|id| Owner {
            token,
            ..Owner::named(*id)
        }));
        for (n, owner) in owners.iter().enumerate() {
            assert_eq!(&Owner::of_word(&owner.word()), owner);
            for other in &owners[n + 1..] {
                assert_ne!(owner.word(), other.word(), "{owner:?} {other:?}");
            }
        }
        let unread = Owner::of_word("+ann");
        assert_eq!(unread.id.as_deref(), Some("ann"));
        assert!(unread.token.is_some());
    }
}
