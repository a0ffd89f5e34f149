//! Tests a provider: which features work, which are missing, and which rights its URLs grant.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use sha2::Digest;

use super::probe_objects::probe_path;
use crate::domain::error::{Error, Result};
use crate::domain::id::Sha256;
use crate::storage::cloud::Cloud;
use crate::storage::{
    BlobInfo, CheckOutcome, CheckStep, PresignMethod, PresignRequest, Priority, ProviderCheck,
};
use crate::tasks;

/// The lifetime of tested URLs, the same as for clients' URLs.
const URL_LIFE: Duration = Duration::from_mins(5);

/// The largest accepted clock difference, in seconds. Signatures contain times, so URLs expire too early or
/// too late beyond it.
const MAX_CLOCK_SECS: u64 = 60;

const PROBE_BYTES: usize = 100_000;
const CONTENT_TYPE: &str = "text/plain; charset=utf-8";
const DISPOSITION: &str =
    "attachment; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt";

impl Cloud {
    /// Tests all features of a provider. The probe objects are below `.filestore-check/`, and are removed in
    /// any case.
    pub async fn check(&self) -> ProviderCheck {
        // Asked for by hand: the pause of an open breaker is over.
        self.inner.breakers.make_trials_due();
        // A task of its own, so that the objects are removed if the caller goes away.
        let found = tasks::spawn(Checking::of(self.clone()).run()).await;
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

/// The result of a step: an outcome with an observation, or the text of a failure.
type Found = std::result::Result<(CheckOutcome, String), String>;

struct Checking {
    cloud: Cloud,
    bytes: Bytes,
    /// The paths of the tested object, and of another object.
    paths: [String; 2],
    steps: Vec<CheckStep>,
}

impl Checking {
    fn of(cloud: Cloud) -> Self {
        let bytes = (0..PROBE_BYTES).map(|at| b'a' + u8::try_from(at % 26).expect("a letter"));
        let paths = [probe_path(), probe_path()];
        Self { cloud, bytes: bytes.collect(), paths, steps: Vec::new() }
    }

    /// Runs the steps in order. Without a stored object, tests only the removal and the clock.
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

    /// Tests URLs: whether the provider creates them, whether they work, and whether they grant only reading.
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

        let bytes = reply.into_body();
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

    /// Tests if a URL grants more than reading its object.
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

    /// Removes the objects. Records those that stay, and not before: the probe that the first put triggers removes
    /// all recorded objects in the background, and could remove one between its put and its verification.
    async fn delete(&self) -> Found {
        let mut failed = None;
        for path in &self.paths {
            if let Err(error) = self.cloud.remove_path(path).await {
                self.cloud.inner.probing.objects.note(path);
                failed = Some(error);
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

    /// Sends a request with only the URL. If the URL granted writing, the body of a PUT would become the
    /// object.
    async fn send(
        &self,
        method: Method,
        url: &str,
    ) -> std::result::Result<Response<Bytes>, String> {
        let mut request = Request::builder().method(&method).uri(url);
        let mut body = "";
        if method == Method::PUT {
            // Azure takes no blob without its type.
            request = request.header("x-ms-blob-type", "BlockBlob");
            body = "overwritten";
        }

        let request = request.body(body).map_err(|error| error.to_string())?;
        self.cloud.send_unsigned(request).await.map_err(said)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::provider::ProviderConfig;
    use crate::storage::ProviderRegistry;

    #[tokio::test]
    async fn the_removal_after_a_probe_leaves_the_objects_of_a_check_alone() {
        let config = ProviderConfig::new("mem".parse().unwrap(), "memory");
        let registry = ProviderRegistry::open(std::slice::from_ref(&config)).unwrap();
        let cloud = registry.cloud(&config.code).unwrap();

        let checking = Checking::of(cloud.clone());
        checking.write().await.unwrap();
        cloud.tidy_after_probe().await;
        checking.read(0..PROBE_BYTES).await.unwrap();
        checking.delete().await.unwrap();
        assert!(checking.read(0..PROBE_BYTES).await.is_err());
    }
}
