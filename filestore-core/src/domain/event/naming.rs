//! Makes and reads the ids of one log.

use hmac::{Hmac, KeyInit, Mac};

use super::EventId;
use crate::domain::time::clock::Timestamp;

/// The key of the ids of one log. A new log has a new key, so that no id of another log fits. A log that was off for a
/// time counts as a new one.
///
/// An id is a mark and a hidden position. The mark is a MAC of position and time, so a client cannot make up
/// an id, and an id fits one event only. The position is hidden with a MAC of the mark, so that ids do not tell how many
/// events there are.
#[derive(Clone)]
pub struct EventNaming {
    key: [u8; 32],
}

impl EventNaming {
    /// Names events with `key`.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// Returns true if the ids have this key.
    pub fn is_of(&self, key: [u8; 32]) -> bool {
        self.key == key
    }

    /// Returns the id of the event at a position.
    pub fn id(&self, position: u64, at: Timestamp) -> EventId {
        let mut event = [0; 16];
        event[..8].copy_from_slice(&position.to_be_bytes());
        event[8..].copy_from_slice(&at.as_millis().to_be_bytes());

        let mark = self.mac(b"mark", &event);
        let hidden = position ^ self.veil(mark);
        EventId::from_bytes(((u128::from(mark) << 64) | u128::from(hidden)).to_be_bytes())
    }

    /// Returns the position that an id names. It means nothing unless [`id`](Self::id) of the event there is the
    /// same id.
    pub fn position(&self, id: &EventId) -> u64 {
        let (mark, hidden) = id.as_bytes().split_at(8);
        let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("half of 16 bytes"));
        number(hidden) ^ self.veil(number(mark))
    }

    fn veil(&self, mark: u64) -> u64 {
        self.mac(b"veil", &mark.to_be_bytes())
    }

    fn mac(&self, purpose: &[u8], bytes: &[u8]) -> u64 {
        let mut mac =
            Hmac::<sha2::Sha256>::new_from_slice(&self.key).expect("a key of any length is valid");
        mac.update(purpose);
        mac.update(bytes);
        let digest = mac.finalize().into_bytes();
        u64::from_be_bytes(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
    }
}

impl std::fmt::Debug for EventNaming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventNaming")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn an_id_names_its_position_and_fits_no_other_event() {
        let naming = EventNaming::new([7; 32]);
        let id = naming.id(12_345, at(1_000));

        assert_eq!(naming.position(&id), 12_345);
        assert_eq!(id, naming.id(12_345, at(1_000)));
        assert_ne!(id, naming.id(12_345, at(1_001)));
        assert_ne!(id, naming.id(12_346, at(1_000)));
        assert_ne!(id, EventNaming::new([8; 32]).id(12_345, at(1_000)));
    }

    #[test]
    fn an_id_survives_its_text() {
        let id = EventNaming::new([7; 32]).id(1, at(1));
        assert_eq!(id.to_string().len(), 22);
        assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
        for wrong in ["", "AAAA", "????????????????????==", &format!("{id}A")] {
            assert!(wrong.parse::<EventId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn neighbours_have_ids_without_likeness() {
        let naming = EventNaming::new([7; 32]);
        let (one, two) = (naming.id(1, at(1)), naming.id(2, at(1)));
        let equal = one.as_bytes().iter().zip(two.as_bytes()).filter(|(a, b)| a == b).count();
        assert!(equal < 4, "{one} {two}");
    }
}
