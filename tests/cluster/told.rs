//! What the servers tell of the load: to two readers of the log behind nginx, which go on by their cursors, and to a
//! webhook. The readers see each change once, in one order; the webhook gets each event at least once, and those of a
//! file in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use filestore_client::api::CreateWebhook;
use filestore_client::{Client, EventQuery};
use filestore_workspace::eventually;
use futures_util::StreamExt;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::oracle::Oracle;

/// The events of files. Those of other sub-systems than that of the load are left out here.
const TYPES: [&str; 1] = ["file.*"];
const SUB_SYSTEM: &str = "docs";

/// The time of a page that waits for the first event.
const WAIT_SECS: u32 = 5;

/// The endpoint refuses each so many events once.
const REFUSED: usize = 25;

/// The id of an event, the file, and the type.
type Told = (String, String, String);

/// A list that others read while it grows.
type Seen = Arc<Mutex<Vec<Told>>>;

/// Readers and a webhook.
pub(crate) struct Followers {
    pages: Seen,
    stream: Seen,
    endpoint: Arc<Endpoint>,
    tasks: Vec<JoinHandle<()>>,
}

impl Followers {
    /// Starts them, at the beginning of the log. `server` makes the webhook.
    pub(crate) async fn start(nginx: &str, server: &str) -> Self {
        let endpoint = Arc::new(Endpoint::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("it listens"));
        let new = CreateWebhook::new(&url).types(TYPES);
        client(server).webhooks().create(&new).await.expect("all parts are there");

        let (pages, stream) = (Seen::default(), Seen::default());
        let tasks = vec![
            tokio::spawn(Arc::clone(&endpoint).listen(listener)),
            tokio::spawn(read_pages(client(nginx), Arc::clone(&pages))),
            tokio::spawn(read_stream(client(nginx), Arc::clone(&stream))),
        ];
        Self { pages, stream, endpoint, tasks }
    }

    /// Waits until all that was done is told, and asserts that nothing else is. The load has ended.
    pub(crate) async fn end(self, nginx: &str, oracle: &Oracle) -> String {
        let log = eventually("the log tells all that was done", async || {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "no reader ends");
            let log = all_of(&self.pages);
            let done = oracle.changes(nginx).await;
            (log.len() >= done.values().map(Vec::len).sum()).then_some(log)
        })
        .await;
        assert_eq!(repeats(&log), Vec::<usize>::new(), "pages tell each event once");
        assert_eq!(by_file(&log), oracle.changes(nginx).await, "nothing is lost or invented");

        let stream = eventually("the stream tells all that the pages tell", async || {
            Some(all_of(&self.stream)).filter(|stream| stream.len() >= log.len())
        })
        .await;
        assert_eq!(repeats(&stream), Vec::<usize>::new(), "a stream tells each event once");
        assert_eq!(stream, log, "there is one order for all readers");

        let accepted = eventually("the webhook accepts all that the pages tell", async || {
            Some(self.endpoint.accepted()).filter(|accepted| accepted.len() >= log.len())
        })
        .await;
        assert_eq!(ids(&accepted), ids(&log), "the webhook gets what the log tells");
        assert_eq!(by_file(&accepted), by_file(&log), "the webhook keeps the order of each file");
        for task in &self.tasks {
            task.abort();
        }
        format!(
            "{} events were told by pages, by a stream and to a webhook, {} of them to it again",
            log.len(),
            self.endpoint.repeats()
        )
    }
}

fn all_of(seen: &Seen) -> Vec<Told> {
    seen.lock().expect("no panic").clone()
}

fn ids(told: &[Told]) -> BTreeSet<&str> {
    told.iter().map(|(id, ..)| id.as_str()).collect()
}

/// Returns the places of events that are in the list before.
fn repeats(told: &[Told]) -> Vec<usize> {
    let mut known = BTreeSet::new();
    let is_known = |(at, (id, ..)): (usize, &Told)| (!known.insert(id.clone())).then_some(at);
    told.iter().enumerate().filter_map(is_known).collect()
}

/// Returns the types of each file's events, in their order.
fn by_file(told: &[Told]) -> BTreeMap<String, Vec<String>> {
    let mut files = BTreeMap::<_, Vec<_>>::new();
    for (_, file, kind) in told {
        files.entry(file.clone()).or_default().push(kind.clone());
    }
    files
}

/// Clients without keys, to an open server.
fn client(server: &str) -> Client {
    Client::builder(server).expect("a base URL").no_proxy().build().expect("a client")
}

/// Reads pages, each behind the place that the last one named.
async fn read_pages(client: Client, seen: Seen) {
    let mut place = "start".to_owned();
    loop {
        let query = EventQuery::new().after(&place).types(TYPES).wait(WAIT_SECS);
        match client.events().page(&query).await {
            Ok(page) => {
                page.events.into_iter().for_each(|event| note(&seen, event));
                place = page.next;
            }
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
}

async fn read_stream(client: Client, seen: Seen) {
    let mut events = client.events().follow(EventQuery::new().after("start").types(TYPES));
    while let Some(event) = events.next().await {
        note(&seen, event.expect("the stream connects again by itself"));
    }
}

fn note(seen: &Seen, event: filestore_client::api::Event) {
    let data = event.data;
    if data.sub_system.as_deref() == Some(SUB_SYSTEM) {
        let file = data.file_id.expect("an event of a file");
        let told = (event.id, file, event.kind.to_string());
        seen.lock().expect("no panic").push(told);
    }
}

/// An endpoint that counts.
#[derive(Default)]
struct Endpoint {
    came: Mutex<Came>,
}

/// What came to the endpoint.
#[derive(Default)]
struct Came {
    /// The events that were accepted, each when it was accepted first.
    accepted: Vec<Told>,
    /// The ids of all events that came.
    ids: BTreeSet<String>,
    accepted_ids: BTreeSet<String>,
    /// How often an event came that was accepted before.
    repeats: usize,
}

impl Endpoint {
    async fn listen(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let endpoint = Arc::clone(&self);
            // A server that dies breaks its connections.
            tokio::spawn(async move {
                let _ = endpoint.serve(stream).await;
            });
        }
    }

    fn accepted(&self) -> Vec<Told> {
        self.came.lock().expect("no panic").accepted.clone()
    }

    fn repeats(&self) -> usize {
        self.came.lock().expect("no panic").repeats
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        let event = loop {
            if let Some(event) = body_of(&bytes) {
                break event;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        };
        let status = if self.takes(&event) { "204 No Content" } else { "500 Not Now" };
        let reply = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(reply.as_bytes()).await
    }

    /// Notes an event. Returns false if it is refused.
    fn takes(&self, event: &Value) -> bool {
        let text = |pointer| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        if text("/data/sub_system").as_deref() != Some(SUB_SYSTEM) {
            return true;
        }
        let [id, kind, file] =
            ["/id", "/type", "/data/file_id"].map(|pointer| text(pointer).expect("text"));
        let mut came = self.came.lock().expect("no panic");
        if came.ids.insert(id.clone()) && came.ids.len().is_multiple_of(REFUSED) {
            return false;
        }
        if came.accepted_ids.insert(id.clone()) {
            came.accepted.push((id, file, kind));
        } else {
            came.repeats += 1;
        }
        true
    }
}

/// Returns the event of a whole request.
fn body_of(request: &[u8]) -> Option<Value> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")?;
    serde_json::from_slice(&request[end + 4..]).ok()
}
