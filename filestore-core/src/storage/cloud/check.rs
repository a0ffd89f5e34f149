//! Trying a provider out: what works, what the provider lacks, and what a URL of it gives away.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use reqwest::{Method, StatusCode};
use sha2::Digest;

use super::Cloud;
use super::presign::{PresignMethod, PresignRequest};
use super::probe_objects::probe_path;
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;
use crate::domain::provider::ProviderCode;
use crate::storage::{BlobInfo, Priority};
use crate::tasks;

/// Life of the URLs tried out: that of the URLs that clients get.
const URL_LIFE: Duration = Duration::from_mins(5);

/// Largest tolerated difference of the clocks. Signatures carry times: beyond this, URLs expire
/// early or late.
const MAX_CLOCK_SECS: u64 = 60;

const PROBE_BYTES: usize = 100_000;
const CONTENT_TYPE: &str = "text/plain; charset=utf-8";
const DISPOSITION: &str =
    "attachment; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt";

/// Findings of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderCheck {
    /// Code of the provider that was tried.
    pub provider: ProviderCode,
    /// True if files can be kept there: they are stored, read and removed, and URLs, if the
    /// provider has any, work and grant nothing but reading.
    pub can_serve: bool,
    /// Steps in the order in which they were tried.
    pub steps: Vec<CheckStep>,
}

/// One step of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckStep {
    /// Name of the step: `write`, `read`, `range`, `presign` and so on.
    pub name: &'static str,
    /// Outcome of the step.
    pub outcome: CheckOutcome,
    /// Observation in one line; empty for a step that was skipped.
    pub detail: String,
}

/// Outcome of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Everything is as it should be.
    Ok,
    /// The provider has no such feature; the service works without.
    Cannot,
    /// The feature should work and does not.
    Failed,
    /// An earlier step kept this one from being tried.
    Skipped,
}

impl CheckOutcome {
    /// Returns the word shown to people: `ok`, `cannot`, `failed`, `skipped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Cannot => "cannot",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Cloud {
    /// Tries out everything that is wanted of a provider, with probe objects under
    /// `.filestore-check/` that are removed whatever happens.
    pub async fn check(&self) -> ProviderCheck {
        // Asked for by hand: the pause of an open breaker is over.
        self.inner.breakers.make_trials_due();
        let checking = Checking {
            cloud: self.clone(),
            bytes: (0..PROBE_BYTES)
                .map(|at| b'a' + u8::try_from(at % 26).expect("a letter"))
                .collect(),
            paths: [probe_path(), probe_path()],
            steps: Vec::new(),
        };

        // A task of its own, so that the objects are removed if the caller goes away.
        let found = tasks::spawn(checking.run()).await;
        let steps = found.unwrap_or_else(|lost| {
            vec![CheckStep {
                name: "check",
                outcome: CheckOutcome::Failed,
                detail: lost.to_string(),
            }]
        });

        // A clock that is off is told, not judged: if it matters, the URLs do not work.
        let mut failed = steps.iter().filter(|step| step.outcome == CheckOutcome::Failed);
        let can_serve = failed.all(|step| step.name == CLOCK);
        ProviderCheck { provider: self.code().clone(), can_serve, steps }
    }
}

const CLOCK: &str = "clock";

/// Finding of one step: an outcome with an observation, or the text of a failure.
type Found = std::result::Result<(CheckOutcome, String), String>;

struct Checking {
    cloud: Cloud,
    bytes: Bytes,
    /// Paths of the object that is tried, and of another one.
    paths: [String; 2],
    steps: Vec<CheckStep>,
}

impl Checking {
    /// Takes the steps in turn. Without a stored object only the removal and the clock are tried.
    async fn run(mut self) -> Vec<CheckStep> {
        match self.cloud.look_at_marker().await {
            None => {}
            Some(Ok(Some(found))) => self.note("marker", well(found)),
            Some(Ok(None)) => {
                let why = "none yet: the first file brings it".to_owned();
                self.note("marker", Ok((CheckOutcome::Skipped, why)));
            }
            Some(Err(error)) => self.note("marker", Err(said(error))),
        }

        let written = self.write().await;
        let is_written = written.is_ok();
        self.note("write", written);

        if is_written {
            let read = self.read(0..PROBE_BYTES).await;
            self.note("read", read);
            let range = self.read(7..1000).await;
            self.note("range", range);
            self.urls().await;
            let checksum = self.checksums().await;
            self.note("checksum", checksum);
        } else {
            for name in ["read", "range", "presign", "checksum"] {
                self.skip(name);
            }
        }

        let deleted = self.delete().await;
        self.note("delete", deleted);
        if self.cloud.inner.keeps_versions.load(Ordering::Relaxed) {
            let why = "the bucket keeps versions: the bytes of removed files stay until a lifecycle rule \
                       expires noncurrent versions";
            self.note("versions", Ok((CheckOutcome::Cannot, why.to_owned())));
        }
        self.note(CLOCK, self.clock());
        self.steps
    }

    fn note(&mut self, name: &'static str, found: Found) {
        let (outcome, detail) = found.unwrap_or_else(|problem| (CheckOutcome::Failed, problem));
        self.steps.push(CheckStep { name, outcome, detail });
    }

    fn skip(&mut self, name: &'static str) {
        self.note(name, Ok((CheckOutcome::Skipped, String::new())));
    }

    async fn write(&self) -> Found {
        let object = BlobInfo {
            size_bytes: self.bytes.len() as u64,
            sha256: Sha256(sha2::Sha256::digest(&self.bytes).into()),
            content_type: CONTENT_TYPE.to_owned(),
            content_disposition: Some("inline".to_owned()),
        };

        for path in &self.paths {
            self.cloud.inner.probing.objects.note(path);
            let source = stream::iter([Ok(self.bytes.clone())]);
            self.cloud.put_path(path, &object, source, &Priority::Request).await.map_err(said)?;
        }
        well(format!("2 objects of {PROBE_BYTES} bytes, verified"))
    }

    async fn read(&self, range: std::ops::Range<usize>) -> Found {
        let bytes = self.stored(range.start as u64..range.end as u64).await.map_err(said)?;
        if bytes != self.bytes[range] {
            return Err("other bytes came than were stored".to_owned());
        }
        well(format!("{} bytes, the same", bytes.len()))
    }

    async fn stored(&self, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        let size_bytes = self.bytes.len() as u64;
        let stream = self.cloud.read_for_client(&self.paths[0], size_bytes, range).await?;
        Ok(stream.try_collect::<Vec<Bytes>>().await?.concat())
    }

    /// Tries URLs: that there are any, that they work, and that they grant no more than reading.
    async fn urls(&mut self) {
        let names = ["presigned GET", "presigned HEAD", "disposition", "grants"];

        let signed = self.sign(PresignMethod::Get).await;
        let url = match signed {
            Ok(Some(url)) => url,
            Ok(None) => {
                let why = "no URL that grants one object only: files are streamed".to_owned();
                self.note("presign", Ok((CheckOutcome::Cannot, why)));
                return names.into_iter().for_each(|name| self.skip(name));
            }
            Err(error) => {
                self.note("presign", Err(said(error)));
                return names.into_iter().for_each(|name| self.skip(name));
            }
        };
        self.note("presign", well(format!("good for {} s", URL_LIFE.as_secs())));

        let [get, head, disposition, grants] = names;
        let fetched = self.fetch(&url).await;
        self.note(get, fetched);
        let found = self.head().await;
        self.note(head, found);
        let found = self.overrides(&url).await;
        self.note(disposition, found);
        let found = self.grants(&url).await;
        self.note(grants, found);
    }

    async fn sign(&self, method: PresignMethod) -> Result<Option<String>> {
        let disposition = self.cloud.capabilities().overrides_disposition.then_some(DISPOSITION);
        let request = PresignRequest {
            method,
            expires_in: URL_LIFE,
            content_type: CONTENT_TYPE,
            disposition,
        };
        Ok(self.cloud.presign_path(&self.paths[0], &request).await?.map(|presigned| presigned.url))
    }

    async fn fetch(&self, url: &str) -> Found {
        let reply = self.send(Method::GET, url).await?;
        let status = reply.status();
        if status != StatusCode::OK {
            return Err(format!("answers {status}"));
        }

        let bytes = reply.bytes().await.map_err(|error| said(self.cloud.unreachable(error)))?;
        if bytes != self.bytes {
            return Err("other bytes came than were stored".to_owned());
        }
        well(format!("{} bytes, the same", bytes.len()))
    }

    async fn head(&self) -> Found {
        let Some(url) = self.sign(PresignMethod::Head).await.map_err(said)? else {
            return Ok((CheckOutcome::Cannot, "signed for GET only".to_owned()));
        };
        let status = self.send(Method::HEAD, &url).await?.status();
        if status == StatusCode::OK {
            well(format!("answers {status}"))
        } else {
            Err(format!("answers {status}"))
        }
    }

    async fn overrides(&self, url: &str) -> Found {
        if !self.cloud.capabilities().overrides_disposition {
            let why = "files with a disposition of their own are streamed".to_owned();
            return Ok((CheckOutcome::Cannot, why));
        }

        let reply = self.send(Method::GET, url).await?;
        for (name, wanted) in [("content-disposition", DISPOSITION), ("content-type", CONTENT_TYPE)]
        {
            let given = reply.headers().get(name).and_then(|value| value.to_str().ok());
            if given != Some(wanted) {
                return Err(format!("the reply's {name} is not the one that was asked for"));
            }
        }
        well("type and name of the reply are those of the URL".to_owned())
    }

    /// Tries what can be done with a URL besides reading its object.
    async fn grants(&self, url: &str) -> Found {
        let others = url.replace(&self.paths[0], &self.paths[1]);
        let attempts = [
            ("read other objects", Method::GET, others.as_str()),
            ("overwrite it", Method::PUT, url),
            ("delete it", Method::DELETE, url),
        ];

        let mut granted = Vec::new();
        for (what, method, url) in attempts {
            let status = self.send(method, url).await?.status();
            if !status.is_client_error() {
                granted.push(format!("{what} ({status})"));
            }
        }

        let is_same =
            self.stored(0..PROBE_BYTES as u64).await.is_ok_and(|bytes| bytes == self.bytes);
        match (granted.is_empty(), is_same) {
            (true, true) => well("reading that object, nothing else".to_owned()),
            (true, false) => Err("the object is not what it was".to_owned()),
            (false, _) => Err(format!("whoever has it can {}", granted.join(", "))),
        }
    }

    async fn checksums(&self) -> Found {
        let probed = self.cloud.probed().await.map_err(said)?;
        let overwrites =
            if probed.puts_if_absent { "puts are made if absent" } else { "no puts if absent" };
        Ok(if probed.checks_checksums {
            (CheckOutcome::Ok, format!("a wrong one is refused, {overwrites}"))
        } else {
            (CheckOutcome::Cannot, format!("not checked, every put is read back, {overwrites}"))
        })
    }

    async fn delete(&self) -> Found {
        let mut failed = None;
        for path in &self.paths {
            match self.cloud.remove_path(path).await {
                Ok(()) => self.cloud.inner.probing.objects.forget(path),
                Err(error) => failed = Some(error),
            }
        }
        if failed.is_some() {
            self.cloud.begin_to_remove_probes();
        }
        failed.map_or_else(|| well("confirmed gone".to_owned()), |error| Err(said(error)))
    }

    fn clock(&self) -> Found {
        let Some(ahead) = self.cloud.inner.clock.ahead_secs() else {
            return Ok((CheckOutcome::Skipped, "no reply told the time".to_owned()));
        };
        let off = ahead.unsigned_abs();
        let direction = if ahead < 0 { "behind" } else { "ahead of" };
        let detail = format!("{off} s {direction} ours");
        if off > MAX_CLOCK_SECS { Err(detail) } else { well(detail) }
    }

    /// Sends a request with nothing but the URL. The body of a PUT would become the object's if the
    /// URL granted that.
    async fn send(
        &self,
        method: Method,
        url: &str,
    ) -> std::result::Result<reqwest::Response, String> {
        let mut request =
            self.cloud.inner.http.request(method.clone(), url).timeout(self.cloud.inner.timeout);
        if method == Method::PUT {
            // Azure takes no blob without its type.
            request = request.header("x-ms-blob-type", "BlockBlob").body("overwritten");
        }

        let reply = request.send().await.map_err(|error| said(self.cloud.unreachable(error)))?;
        self.cloud.inner.clock.hear(reply.headers());
        Ok(reply)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as every other end of a step")]
fn well(detail: String) -> Found {
    Ok((CheckOutcome::Ok, detail))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn said(error: Error) -> String {
    error.chain()
}
