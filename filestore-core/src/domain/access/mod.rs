//! Access: API keys, scopes, signed URLs. Without HTTP.

pub mod key;
pub mod key_scope;
pub mod scope;
pub mod signature;
pub mod signed_url;
