//! Whether the endpoint of this process lets in clients that come with no token: asked for each request, and for what such clients left
//! behind.

use std::sync::atomic::{AtomicBool, Ordering};

/// The door for clients that come with no token. It is shut for good when a token was seen: to revoke the last one does not open a server
/// that runs.
#[derive(Debug, Default)]
pub struct OpenDoor {
    is_served: AtomicBool,
    /// Access tokens of an authorisation server are asked for.
    asks_for_access: AtomicBool,
    has_seen_token: AtomicBool,
}

impl OpenDoor {
    /// That of an endpoint; `asks_for_access` says whether it has an authorisation server.
    pub fn served(asks_for_access: bool) -> Self {
        let door = Self::default();
        door.serve(asks_for_access);
        door
    }

    /// Notes that an endpoint is behind it, as for [`served`](Self::served).
    pub(crate) fn serve(&self, asks_for_access: bool) {
        self.asks_for_access
            .store(asks_for_access, Ordering::Relaxed);
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Whether an endpoint is behind it. Where there is none, what such clients left behind is the business of another process.
    pub fn is_served(&self) -> bool {
        self.is_served.load(Ordering::Relaxed)
    }

    /// Whether it lets them in; `has_tokens` says whether there are tokens now, expired ones included.
    pub fn is_open_with(&self, has_tokens: bool) -> bool {
        if has_tokens {
            self.has_seen_token.store(true, Ordering::Relaxed);
        }
        self.is_served()
            && !self.asks_for_access.load(Ordering::Relaxed)
            && !self.has_seen_token.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::OpenDoor;

    #[test]
    fn a_door_is_open_where_an_endpoint_is_and_no_token_was_ever_seen() {
        let none = OpenDoor::default();
        assert!(!none.is_served() && !none.is_open_with(false));
        assert!(!OpenDoor::served(true).is_open_with(false));
        let open = OpenDoor::served(false);
        for (has_tokens, is_open) in [(false, true), (true, false), (false, false)] {
            assert_eq!(open.is_open_with(has_tokens), is_open);
        }
    }
}
