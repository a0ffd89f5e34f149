//! The ranges of configured values. A configuration from a file and one from a program pass the same checks.

use std::time::Duration;

use super::{AnimationLimits, ResumableConfig, StoreConfig};
use crate::domain::access::signature::{MAX_WINDOW, SigningSecret};
use crate::domain::error::{Error, ErrorKind};

/// A setting with a value that would stop the store or make the store useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidSetting {
    /// Key of the setting in `filestore.toml`, with its table.
    pub(crate) key: &'static str,
    /// Rule that the value violates, for example `must be 1 to 255`.
    pub(crate) problem: &'static str,
}

impl From<InvalidSetting> for Error {
    /// Creates an `Unusable` error whose field is the key.
    fn from(invalid: InvalidSetting) -> Self {
        let InvalidSetting { key, problem } = invalid;
        let message = format!("the configuration is invalid: {key} {problem}");
        Self::new(ErrorKind::Unusable, message).with_field(key)
    }
}

impl StoreConfig {
    /// Checks the ranges of values. Returns the first invalid setting.
    pub(crate) fn check_settings(&self) -> Result<(), InvalidSetting> {
        if !(1..=10_000).contains(&self.limits.max_batch_items) {
            return Err(invalid("limits.max_batch_items", "must be 1 to 10000"));
        }
        if !(1..=255).contains(&self.limits.original_name_chars) {
            return Err(invalid("limits.original_name_chars", "must be 1 to 255"));
        }
        if !(1..=1_000_000).contains(&self.limits.concurrent_uploads) {
            return Err(invalid("limits.concurrent_uploads", "must be 1 to 1000000"));
        }
        if self.limits.write_through < Duration::from_secs(1) {
            return Err(invalid("limits.write_through_secs", "must be at least 1"));
        }
        check_uploads(&self.uploads)?;
        if self.events.keep < Duration::from_hours(24) {
            return Err(invalid("events.keep_days", "must be at least 1"));
        }
        if self.events.keep_max == 0 {
            return Err(invalid("events.keep_max", "must be at least 1"));
        }

        if !(0.0..=100.0).contains(&self.variants.quality) {
            return Err(invalid("variants.quality", "must be 0 to 100"));
        }
        check_animation(&self.variants.animation)?;
        // The file is held twice while it grows.
        let needed = 2 * self.variants.animation.max_bytes;
        if self.variants.animated && needed >= self.variants.decode_memory_bytes {
            let problem = "must be less than half of variants.decode_memory_bytes";
            return Err(invalid("variants.animated_max_bytes", problem));
        }

        if !(1..=1000).contains(&self.sync.concurrency) {
            return Err(invalid("sync.concurrency", "must be 1 to 1000"));
        }
        if self.sync.max_attempts == 0 {
            return Err(invalid("sync.max_attempts", "must be at least 1"));
        }

        if !(Duration::from_secs(1)..=Duration::from_hours(7 * 24)).contains(&self.presign_ttl) {
            return Err(invalid("lifetimes.presign_ttl_secs", "must be 1 to 604800"));
        }

        if !(Duration::from_secs(1)..=MAX_WINDOW).contains(&self.signing.window) {
            return Err(invalid("signing.window_secs", "must be 1 to 3600"));
        }
        let mut kids: Vec<_> = self.signing.secrets.iter().map(SigningSecret::kid).collect();
        kids.sort_unstable();
        if kids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(invalid("signing.secrets", "must have a kid each"));
        }
        Ok(())
    }
}

fn check_uploads(uploads: &ResumableConfig) -> Result<(), InvalidSetting> {
    if uploads.lifetime < Duration::from_secs(1) {
        return Err(invalid("uploads.lifetime_secs", "must be at least 1"));
    }
    if uploads.max_age < uploads.lifetime {
        return Err(invalid("uploads.max_age_secs", "must be at least uploads.lifetime_secs"));
    }
    if uploads.max_open == 0 {
        return Err(invalid("uploads.max_open", "must be at least 1"));
    }
    if uploads.max_open_per_organization == 0 {
        return Err(invalid("uploads.max_open_per_organization", "must be at least 1"));
    }
    Ok(())
}

fn check_animation(limits: &AnimationLimits) -> Result<(), InvalidSetting> {
    if limits.max_frames == 0 {
        return Err(invalid("variants.animated_max_frames", "must be at least 1"));
    }
    if limits.max_pixels == 0 {
        return Err(invalid("variants.animated_max_pixels", "must be at least 1"));
    }
    if limits.cpu < Duration::from_secs(1) {
        return Err(invalid("variants.animated_cpu_secs", "must be at least 1"));
    }
    if !(1..=AnimationLimits::MOST_BYTES).contains(&limits.max_bytes) {
        return Err(invalid("variants.animated_max_bytes", "must be 1 to 67108864"));
    }
    Ok(())
}

fn invalid(key: &'static str, problem: &'static str) -> InvalidSetting {
    InvalidSetting { key, problem }
}
