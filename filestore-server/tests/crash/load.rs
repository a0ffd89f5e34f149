//! The load: workers that upload, batch, replace and delete until the server is gone.

use std::time::Duration;

use fastrand::Rng;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::WORKERS;
use crate::child::Child;
use crate::content::{self, Tag};
use crate::oracle::{Entry, Oracle};

/// The range of the number of acknowledgements before a kill, drawn anew each round.
const ACKNOWLEDGEMENTS: std::ops::Range<usize> = 40..250;

/// Runs the load, kills the server after a random number of acknowledgements, wherever the other
/// requests are then, and returns once every worker has noticed.
pub(crate) async fn run_until_killed(server: Child, oracle: &Oracle, random: &mut Rng) {
    let (acknowledged, mut seen) = unbounded_channel();
    let workers = (0..WORKERS).map(|_| Worker {
        url: format!("{}/api/v1/files", server.url),
        http: crate::support::http_client().build().expect("an HTTP client"),
        oracle,
        random: random.fork(),
        acknowledged: acknowledged.clone(),
        own: Vec::new(),
    });

    let load = futures_util::future::join_all(workers.map(Worker::run));
    let (until, after_micros) = (random.usize(ACKNOWLEDGEMENTS), random.u64(0..20_000));
    let killer = async {
        for _ in 0..until {
            seen.recv().await.expect("the load runs until the kill");
        }
        // Not a wait for anything: it is to be any moment, not only one after an acknowledgement.
        tokio::time::sleep(Duration::from_micros(after_micros)).await;
        server.kill();
    };
    tokio::join!(load, killer);
}

/// One client, which changes only its own files, so that their order is the log's.
struct Worker<'a> {
    url: String,
    http: reqwest::Client,
    oracle: &'a Oracle,
    random: Rng,
    acknowledged: UnboundedSender<()>,
    /// Files whose state is certain, none of them of a batch.
    own: Vec<String>,
}

impl Worker<'_> {
    async fn run(mut self) {
        loop {
            let done = match self.random.u8(0..10) {
                0..4 => self.upload().await,
                4..6 => self.batch().await,
                6..8 => self.replace().await,
                _ => self.delete().await,
            };
            if done.is_none() {
                return;
            }
            // The receiver is gone once the kill is done.
            let _ = self.acknowledged.send(());
        }
    }

    async fn upload(&mut self) -> Option<()> {
        let tag = self.oracle.tags(1);
        let form = form().part("file", part(tag)).text("original_name", format!("single-{tag}"));
        let record =
            self.send(self.http.post(format!("{}/upload", self.url)).multipart(form)).await?;
        let id = id_of(&record);
        self.oracle.log(&Entry::Uploaded(tag, id.clone()));
        self.own.push(id);
        Some(())
    }

    async fn batch(&mut self) -> Option<()> {
        let items = self.random.u64(2..20);
        let first = self.oracle.tags(items);
        self.oracle.log(&Entry::BatchBegun(first, usize::try_from(items).expect("a few")));
        let mut form = form();

        for (index, tag) in (first..first + items).enumerate() {
            form = form
                .text(format!("items[{index}].original_name"), format!("batch-{first}"))
                .part(format!("items[{index}].file"), part(tag));
        }

        let records =
            self.send(self.http.post(format!("{}/batch", self.url)).multipart(form)).await?;
        let ids = records.as_array().expect("an array").iter().map(id_of).collect();
        self.oracle.log(&Entry::BatchDone(first, ids));
        Some(())
    }

    async fn replace(&mut self) -> Option<()> {
        let Some(id) = self.random.choice(&self.own).cloned() else { return self.upload().await };
        let tag = self.oracle.tags(1);
        self.oracle.log(&Entry::ReplaceBegun(id.clone(), tag));
        let form = Form::new().text("file_id", id.clone()).part("file", part(tag));
        self.send(self.http.put(format!("{}/upload", self.url)).multipart(form)).await?;
        self.oracle.log(&Entry::Replaced(id, tag));
        Some(())
    }

    async fn delete(&mut self) -> Option<()> {
        if self.own.len() < 3 {
            return self.upload().await;
        }
        let id = self.own.swap_remove(self.random.usize(..self.own.len()));
        self.oracle.log(&Entry::DeleteBegun(id.clone()));
        self.send(self.http.delete(format!("{}/{id}", self.url))).await?;
        self.oracle.log(&Entry::Deleted(id));
        Some(())
    }

    /// Sends a request and returns the reply, or `None` if the server died before the whole reply.
    async fn send(&self, request: reqwest::RequestBuilder) -> Option<Value> {
        let response = request.send().await.ok()?;
        let status = response.status();
        let body = response.bytes().await.ok()?;
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        Some(serde_json::from_slice(&body).expect("a JSON reply"))
    }
}

fn form() -> Form {
    Form::new().text("organization_id", "acme").text("sub_system", "crash")
}

fn part(tag: Tag) -> Part {
    Part::bytes(content::of(tag)).file_name("content")
}

fn id_of(record: &Value) -> String {
    record["file_id"].as_str().expect("a file_id").to_owned()
}
