//! The token of an upload: an HMAC of its id, so that no row holds it and a repeated creation can name it again.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::ResumableUploads;
use crate::domain::access::scope::Scope;
use crate::domain::error::Result;
use crate::domain::file::resumable::UploadAddress;
use crate::domain::id::UploadId;
use crate::metadata::UploadRow;
use crate::tasks;

/// The bytes of a token.
const TOKEN_BYTES: usize = 16;

impl ResumableUploads<'_> {
    /// Returns the address of an upload.
    pub(super) async fn address_of(self, upload_id: UploadId) -> Result<UploadAddress> {
        Ok(UploadAddress { upload_id, token: token(&self.secret().await?, upload_id) })
    }

    /// Returns the row of an address. `NotFound`, always after one look-up, for a wrong token, an unknown upload, and
    /// an organization outside `scope`. The call ends no transfer, so a caller without rights cannot end one.
    pub(super) async fn checked(self, address: &UploadAddress, scope: &Scope) -> Result<UploadRow> {
        let is_right = self.has_token(address).await?;
        let row = self.store.inner.metadata.upload(address.upload_id).await?;
        let row = row.filter(|row| is_right && scope.covers(&row.organization));
        row.ok_or_else(super::unknown)
    }

    /// Tests whether the token of an address is that of its id, in constant time.
    pub(super) async fn has_token(self, address: &UploadAddress) -> Result<bool> {
        let right = token(&self.secret().await?, address.upload_id);
        Ok(right.as_bytes().ct_eq(address.token.as_bytes()).into())
    }

    async fn secret(self) -> Result<String> {
        let inner = &self.store.inner;
        let secret = inner.uploads.resumable.secret.get_or_try_init(|| async {
            let fresh = hex::encode(tasks::random_secret());
            inner.metadata.upload_secret(&fresh).await
        });
        secret.await.cloned()
    }
}

fn token(secret: &str, id: UploadId) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .expect("an HMAC takes a key of any length");
    mac.update(b"upload ");
    mac.update(id.to_string().as_bytes());
    URL_SAFE_NO_PAD.encode(&mac.finalize().into_bytes()[..TOKEN_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::clock::Timestamp;

    #[test]
    fn a_token_is_22_characters_and_depends_on_id_and_secret() {
        let [one, other] = [1, 2].map(|at| UploadId::generate(Timestamp::from_millis(at)));
        let text = token("secret", one);
        assert_eq!(text.len(), 22);
        assert_eq!(text, token("secret", one));
        assert_ne!(text, token("secret", other));
        assert_ne!(text, token("another", one));
    }
}
