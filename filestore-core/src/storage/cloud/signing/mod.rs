//! Presigned URLs that grant reading one object.

pub(super) mod presign;
#[cfg(feature = "azblob")]
pub(super) mod azure_sas;
