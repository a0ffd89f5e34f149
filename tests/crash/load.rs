//! The load: workers that do every kind of work until the server is gone.

mod resume;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use reqwest::multipart::{Form, Part};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::child::{ATTIC, Child};
use crate::content::{self, Tag};
use crate::oracle::{Entry, Oracle};

use self::resume::Unfinished;

/// The number of requests at one time.
const WORKERS: usize = 6;

/// The range of the number of acknowledgements before a kill, drawn anew each round.
const ACKNOWLEDGEMENTS: std::ops::Range<usize> = 30..160;

/// Organizations: one without a binding, one that is synced to the attic, one that is written through
/// to it, and one whose files move to and fro.
const ORGANIZATIONS: [&str; 4] = ["acme", "1", "2", MOVED];

/// The organization whose files move to and fro.
pub(crate) const MOVED: &str = "3";

/// Makes the bindings of the organizations. A second call changes nothing.
pub(crate) async fn bind(server: &Child) {
    let http = filestore_workspace::http_client().build().expect("an HTTP client");
    for (number, sync) in [(1, true), (2, false), (3, true)] {
        let binding = json!({
            "organizationId": number, "organizationName": "x", "storageProvider": ATTIC, "syncEnabled": sync,
        });
        let url = format!("{}/api/v1/organization-storage-bindings/create", server.url);
        let reply = http.post(url).json(&binding).send().await.expect("the server answers");
        assert!(matches!(reply.status().as_u16(), 201 | 409), "{}", reply.status());
    }
}

/// Runs the load, lets `end` kill the server after a random number of acknowledgements, wherever the
/// other requests are then, and returns their number once every worker has noticed.
pub(crate) async fn run_until_killed(
    server: Child,
    oracle: &Oracle,
    random: &mut Rng,
    errors: Errors,
    end: impl FnOnce(Child),
) -> u64 {
    let (acknowledged, mut seen) = unbounded_channel();
    let is_killed = AtomicBool::new(false);
    let workers = (0..WORKERS).map(|_| Worker {
        url: format!("{}/api/v1", server.url),
        http: filestore_workspace::http_client().build().expect("an HTTP client"),
        oracle,
        random: random.fork(),
        acknowledged: acknowledged.clone(),
        errors,
        is_killed: &is_killed,
        own: Vec::new(),
        temp: Vec::new(),
        deleted: Vec::new(),
        pictures: Vec::new(),
        unfinished: Vec::new(),
    });

    let load = futures_util::future::join_all(workers.map(Worker::run));
    // Once every worker has ended, nothing more is to be waited for.
    drop(acknowledged);
    let (until, after_micros) = (random.usize(ACKNOWLEDGEMENTS), random.u64(0..20_000));
    let killer = async {
        let mut before = 0;
        while before < until && seen.recv().await.is_some() {
            before += 1;
        }
        assert!(before == until || errors == Errors::Expected, "the load ended before the kill");
        // Not a wait for anything: it is to be any moment, not only one after an acknowledgement.
        tokio::time::sleep(Duration::from_micros(after_micros)).await;
        is_killed.store(true, Ordering::SeqCst);
        end(server);

        let mut late = 0;
        while seen.try_recv().is_ok() {
            late += 1;
        }
        before as u64 + late
    };
    tokio::join!(load, killer).1
}

/// One client, which changes only its own files, so that their order is the log's.
struct Worker<'a> {
    url: String,
    http: reqwest::Client,
    oracle: &'a Oracle,
    random: Rng,
    acknowledged: UnboundedSender<()>,
    errors: Errors,
    /// True from right before the kill.
    is_killed: &'a AtomicBool,
    /// Files whose state is certain, none of them of a batch.
    own: Vec<String>,
    /// Those of them that were not promoted yet.
    temp: Vec<String>,
    /// Files whose delete was acknowledged.
    deleted: Vec<String>,
    pictures: Vec<String>,
    /// Resumable uploads, the latest last.
    unfinished: Vec<Unfinished>,
}

/// The errors that a load may meet while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// None: an error is a failure of the run.
    Unexpected,
    /// Any, as a part of the protocol is missing: an error ends the worker that met it.
    Expected,
}

/// The end of a worker: the server is gone.
struct Gone;

type Done = Result<(), Gone>;

impl Worker<'_> {
    async fn run(mut self) {
        while self.work().await.is_ok() {
            // The receiver is gone once the kill is done.
            let _ = self.acknowledged.send(());
        }
    }

    async fn work(&mut self) -> Done {
        match self.random.u8(0..48) {
            0..12 => self.upload(Kind::Ready).await,
            12..15 => self.upload(Kind::Temp).await,
            15..18 => self.promote().await,
            18..22 => self.batch().await,
            22..28 => self.replace().await,
            28..32 => self.delete().await,
            32..35 => self.restore().await,
            35..37 => self.variant().await,
            37 => self.administrate("sync/run", Value::Null).await,
            38 => self.administrate("purge/run", Value::Null).await,
            39 => self.migrate().await,
            _ => self.resume().await,
        }
    }

    async fn upload(&mut self, kind: Kind) -> Done {
        let tag = self.oracle.tags(1);
        let mut form = self.form().part("file", part(tag));
        form = form.text("original_name", format!("single-{tag}"));
        if kind == Kind::Temp {
            form = form.text("upload_temp", "true");
        }

        let id = id_of(&self.send(self.post("files/upload").multipart(form)).await?);
        self.oracle.log(&Entry::Uploaded(tag, id.clone()));
        if kind == Kind::Temp {
            self.temp.push(id.clone());
        }
        if content::is_picture(tag) {
            self.pictures.push(id.clone());
        }
        self.own.push(id);
        Ok(())
    }

    async fn promote(&mut self) -> Done {
        let Some(id) = self.temp.pop() else { return self.upload(Kind::Temp).await };
        if !self.own.contains(&id) {
            return Ok(());
        }
        let form = Form::new().text("file_id", id.clone()).text("make_as_ready", "true");
        self.send(self.http.put(format!("{}/files/upload", self.url)).multipart(form)).await?;
        self.oracle.log(&Entry::Promoted(id));
        Ok(())
    }

    async fn batch(&mut self) -> Done {
        let items = self.random.u64(2..12);
        let first = self.oracle.tags(items);
        self.oracle.log(&Entry::BatchBegun(first, usize::try_from(items).expect("a few")));
        let mut form = self.form();

        for (index, tag) in (first..first + items).enumerate() {
            form = form
                .text(format!("items[{index}].original_name"), format!("batch-{first}"))
                .part(format!("items[{index}].file"), part(tag));
        }

        let records = self.send(self.post("files/batch").multipart(form)).await?;
        let ids = records.as_array().expect("an array").iter().map(id_of).collect();
        self.oracle.log(&Entry::BatchDone(first, ids));
        Ok(())
    }

    async fn replace(&mut self) -> Done {
        let Some(id) = self.random.choice(&self.own).cloned() else {
            return self.upload(Kind::Ready).await;
        };
        let tag = self.oracle.tags(1);
        self.oracle.log(&Entry::ReplaceBegun(id.clone(), tag));
        self.pictures.retain(|picture| *picture != id);
        let form = Form::new().text("file_id", id.clone()).part("file", part(tag));
        self.send(self.http.put(format!("{}/files/upload", self.url)).multipart(form)).await?;
        self.oracle.log(&Entry::Replaced(id, tag));
        Ok(())
    }

    async fn delete(&mut self) -> Done {
        if self.own.len() < 3 {
            return self.upload(Kind::Ready).await;
        }
        let id = self.own.swap_remove(self.random.usize(..self.own.len()));
        self.pictures.retain(|picture| *picture != id);
        self.oracle.log(&Entry::DeleteBegun(id.clone()));
        self.send(self.http.delete(format!("{}/files/{id}", self.url))).await?;
        self.oracle.log(&Entry::Deleted(id.clone()));
        self.deleted.push(id);
        Ok(())
    }

    /// Restores a deleted file, unless the purge was faster.
    async fn restore(&mut self) -> Done {
        let Some(id) = self.deleted.pop() else { return self.upload(Kind::Ready).await };
        self.oracle.log(&Entry::RestoreBegun(id.clone()));
        let request = self.post(&format!("files/{id}/restore"));
        match self.answer(request).await?.0 {
            StatusCode::OK => {
                self.oracle.log(&Entry::Restored(id.clone()));
                self.own.push(id);
            }
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => {
                self.oracle.log(&Entry::RestoreRefused(id));
            }
            other => panic!("a restore answered {other}"),
        }
        Ok(())
    }

    async fn variant(&mut self) -> Done {
        let Some(id) = self.random.choice(&self.pictures).cloned() else {
            return self.upload(Kind::Ready).await;
        };
        let (status, body) =
            self.answer(self.http.get(format!("{}/files/{id}/200/200", self.url))).await?;
        self.check(status == StatusCode::OK, status, &body)
    }

    /// Has one organization's files moved to where its binding says, and the binding changed.
    async fn migrate(&mut self) -> Done {
        let to = if self.random.bool() { ATTIC } else { "LOCAL" };
        let change = json!({"organizationId": 3, "storageProvider": to});
        let url = format!("{}/organization-storage-bindings/update", self.url);
        self.send(self.http.put(url).json(&change)).await?;
        self.administrate("migrate/run", json!({"organizationId": 3, "to": to})).await
    }

    /// Calls what may be refused because another call is under way.
    async fn administrate(&mut self, what: &str, body: Value) -> Done {
        let mut request = self.post(&format!("admin/{what}"));
        if !body.is_null() {
            request = request.json(&body);
        }
        let (status, body) = self.answer(request).await?;
        let is_expected = status.is_success() || status == StatusCode::CONFLICT;
        self.check(is_expected, status, &body)
    }

    fn form(&mut self) -> Form {
        let organization = *self.random.choice(ORGANIZATIONS).as_ref().expect("there are some");
        Form::new().text("organization_id", organization).text("sub_system", "crash")
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(format!("{}/{path}", self.url))
    }

    /// Sends a request that must succeed, unless the server dies before the whole reply.
    async fn send(&self, request: RequestBuilder) -> Result<Value, Gone> {
        let (status, body) = self.answer(request).await?;
        self.check(status.is_success(), status, &body)?;
        Ok(serde_json::from_slice(&body).expect("a JSON reply"))
    }

    fn check(&self, is_right: bool, status: StatusCode, body: &[u8]) -> Done {
        if is_right {
            return Ok(());
        }
        let text = String::from_utf8_lossy(body);
        assert!(self.errors == Errors::Expected, "{status}: {text}");
        Err(Gone)
    }

    async fn answer(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), Gone> {
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.lost(&error))?;
        Ok((status, body.into()))
    }

    /// Takes a connection that ended: the kill does that, and nothing else may.
    fn lost(&self, error: &reqwest::Error) -> Gone {
        let may_end = self.is_killed.load(Ordering::SeqCst) || self.errors == Errors::Expected;
        assert!(may_end, "a connection ended before the kill: {error:?}");
        Gone
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ready,
    Temp,
}

fn part(tag: Tag) -> Part {
    Part::bytes(content::of(tag)).file_name("content")
}

fn id_of(record: &Value) -> String {
    record["file_id"].as_str().expect("a file_id").to_owned()
}
