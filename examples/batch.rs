//! Uploads several files as one: all of them are stored, or none is.
//!
//! `cargo run --example batch`

use filestore_client::{Batch, Client, Item, ListQuery};
use filestore_server::{Config, Server};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let config = Config::new("127.0.0.1:0".parse()?, dir.path().join("data"));
    let server = Server::start(config).await?;
    let client = Client::builder(server.url())?.build()?;

    let letters = client.organization("42")?.sub_system("letters")?;

    // Three pages of one letter. At every instant a reader sees all three or none.
    let letter = (1..=3).fold(Batch::new(), |batch, page| {
        let text = format!("page {page} of the letter");
        batch.item(Item::from_bytes(text).original_name(format!("page-{page}.txt")))
    });
    for record in letters.batch(letter).await? {
        println!("stored {} as {}", record.original_name, record.file_id);
    }

    // The second item has a name that cannot be stored. The server says which one it is ...
    let faulty = Batch::new()
        .item(Item::from_bytes("fine").original_name("fine.txt"))
        .item(Item::from_bytes("not fine").original_name("x".repeat(300)))
        .item(Item::from_bytes("fine too").original_name("fine-too.txt"));
    let error = letters.batch(faulty).await.unwrap_err();
    println!("refused: {} ({})", error.message(), error.field().unwrap_or("no field"));

    // ... and nothing of that batch is stored, not even the items that were valid.
    let stored = client.list(&ListQuery::new().organization_id("42")).await?.items;
    let names: Vec<&str> = stored.iter().map(|record| record.original_name.as_str()).collect();
    println!("stored are {names:?}");
    assert_eq!(names.len(), 3);

    server.stop().await;
    Ok(())
}
