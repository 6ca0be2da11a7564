//! The room for tokens on the device: what may be held, and what is kept free for growth.

/// Tokens kept free for each session that runs, so that one just admitted does not at once push
/// another out.
const GROWTH_TOKENS: u32 = 32;

/// Room that is not used while the device has said that there is none, in parts of all room, comes
/// back with each step that went well.
const RECOVERY_PARTS: u64 = 64;

/// What the device can hold. A device that says sooner than it should that it is full is believed
/// for a while.
#[derive(Debug)]
pub(super) struct Room {
    device_tokens: u64,
    /// What it is believed to hold now.
    tokens: u64,
}

impl Room {
    pub(super) fn new(tokens: u64) -> Self {
        Self { device_tokens: tokens, tokens }
    }

    /// Tokens that all sequences can hold together, as the device has said at its start.
    pub(super) fn device_tokens(&self) -> u64 {
        self.device_tokens
    }

    /// Tokens that all sequences may hold together now.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// What a session needs to be admitted: all its tokens, and some of those to come.
    pub(super) fn need(total_tokens: u32, tokens_to_come: u32) -> u64 {
        u64::from(total_tokens) + u64::from(tokens_to_come.min(GROWTH_TOKENS))
    }

    /// The device had no room for so many tokens.
    pub(super) fn was_short_of(&mut self, tokens: u64) {
        self.tokens = self.tokens.min(tokens.saturating_sub(1));
    }

    /// A step went well.
    pub(super) fn recover(&mut self) {
        let back = self.device_tokens.div_ceil(RECOVERY_PARTS);
        self.tokens = self.device_tokens.min(self.tokens + back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_short_of_room_is_believed_for_a_while() {
        let mut room = Room::new(640);
        room.was_short_of(101);
        assert_eq!(room.tokens(), 100);
        room.recover();
        assert_eq!(room.tokens(), 110);
        (0..100).for_each(|_| room.recover());
        assert_eq!(room.tokens(), 640);
    }

    #[test]
    fn growth_counts_only_as_far_as_it_can_come() {
        assert_eq!(Room::need(100, 5), 105);
        assert_eq!(Room::need(100, 4096), 100 + u64::from(GROWTH_TOKENS));
    }
}
