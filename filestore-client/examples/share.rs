//! Stores a file, shares it by a link for ten minutes, and replaces it only if it is still the same.
//!
//! `FILESTORE_URL=http://127.0.0.1:8080 cargo run -p filestore-client --example share`

use std::io;

use bytes::Bytes;
use filestore_client::api::SignRequest;
use filestore_client::{Change, Client, Item};
use futures_util::stream;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::from_env()?;
    let letters = client.organization("42")?.sub_system("letters")?;

    // A stream is sent as it comes, for example the body of a request of your own server.
    let chunks = ["Dear reader,\n", "welcome.\n"].map(|line| Ok::<_, io::Error>(Bytes::from(line)));
    let letter = Item::from_stream(stream::iter(chunks), None).original_name("letter.txt");
    let record = letters.upload(letter).await?;
    println!("stored {} bytes as {}", record.file_size, record.file_id);

    let link = client.sign(&record.file_id, &SignRequest::content().expires_in_s(600)).await?;
    println!("anyone can read it until {}: {}", link.expires_at, link.url);

    // The entity tag is the content that you know. If somebody replaced it, the change fails with `Conflict`.
    let seen = client.info(&record.file_id).await?.etag.ok_or("a file has an entity tag")?;
    let change = || {
        let item = Item::from_bytes("Dear reader, farewell.\n").original_name("letter.txt");
        Change::replace(item).if_match(&seen)
    };
    client.change(&record.file_id, change()).await?;
    let refused = client.change(&record.file_id, change()).await.unwrap_err();
    println!("the second change is refused: {refused}");

    println!("it says {:?}", client.download(&record.file_id).bytes().await?);
    client.delete(&record.file_id).await?;
    Ok(())
}
