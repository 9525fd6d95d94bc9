//! Where the cache is marked: at the end of what the next request will begin with too.

use super::{MARK, Message};
use crate::wire::replay::Json;

/// How many blocks before a mark the provider looks for something cached.
const LOOKBACK: usize = 20;

/// Places of marks in messages: number of the message, number of the block.
///
/// The end of the newest message, the end of the one of the user before it, which the last request marked, and where there are too
/// many blocks between them for the provider to look back over, one in the newest message. With that of the system prompt at most four.
pub(super) struct Marks(Vec<(usize, usize)>);

impl Marks {
    pub(super) fn of(messages: &[Message<'_>]) -> Self {
        let of_user = (0..messages.len()).filter(|index| messages[*index].role == "user");
        let mut last = of_user.rev().take(2);
        let Some(newest) = last.next() else {
            return Self(Vec::new());
        };
        let n_blocks = messages[newest].content.len();
        let mut places = vec![(newest, n_blocks - 1)];
        if let Some(earlier) = last.next() {
            places.push((earlier, messages[earlier].content.len() - 1));
            let between = messages[earlier + 1..=newest].iter();
            let distance: usize = between.map(|message| message.content.len()).sum();
            if distance > LOOKBACK && n_blocks > 1 {
                let back = n_blocks.saturating_sub(LOOKBACK + 1);
                places.push((newest, back.min(n_blocks - 2)));
            }
        }
        Self(places)
    }

    /// Only blocks of the user's side are marked; what the model said is replayed as it is.
    pub(super) fn put(&self, messages: &mut [Message<'_>]) {
        for (message, block) in &self.0 {
            if let Some(Json::Other(part)) = messages[*message].content.get_mut(*block) {
                part.cache_control = Some(MARK);
            }
        }
    }
}
