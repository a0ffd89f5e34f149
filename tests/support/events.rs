//! Streams of events, block by block.

use serde_json::Value;

use crate::call::Call;

/// A stream of events that is being read.
#[derive(Debug)]
pub struct EventReader {
    response: reqwest::Response,
    text: String,
}

impl Call {
    /// Opens a stream of events, which must be granted.
    pub async fn events(self) -> EventReader {
        let response = self.header("accept", "text/event-stream").open().await;
        assert_eq!(response.status(), 200, "{response:?}");
        EventReader { response, text: String::new() }
    }
}

impl EventReader {
    /// A header of the reply.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next block without its empty line; `None` at an end in good order.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let piece = self.response.chunk().await.expect("the stream ends in good order")?;
            self.text += std::str::from_utf8(&piece).expect("an event is plain ASCII");
        }
    }

    /// The data of the next event, whose id and type must be those of its block.
    pub async fn event(&mut self) -> Value {
        loop {
            let block = self.block().await.expect("an event before the end");
            let Some((_, data)) = block.split_once("\ndata: ") else { continue };
            let event: Value = serde_json::from_str(data).expect("JSON in one line");
            let (id, kind) = (event["id"].as_str(), event["type"].as_str());
            let head = format!("id: {}\nevent: {}", id.expect("an id"), kind.expect("a type"));
            assert_eq!(block.split_once("\ndata: ").map(|(head, _)| head), Some(&*head));
            return event;
        }
    }

    /// Reads on until the server ends the stream.
    pub async fn ends(mut self) {
        while self.block().await.is_some() {}
    }
}
