//! Sheets, their tags, and their turns.

use std::sync::mpsc;

use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use super::super::pool::{Kind, Place};
use super::*;
use crate::tasks::HANG;
use crate::variant::Sheet;

fn sheet_key(keys: &[VariantKey]) -> SheetKey {
    let grid = SheetGrid::new(keys.len(), keys[0].size).unwrap();
    let files = keys.iter().map(|key| (key.file_id, Some(key.sha256))).collect();
    SheetKey { grid, fit: keys[0].fit, files }
}

#[tokio::test]
async fn a_sheet_whose_file_goes_while_it_is_put_together_is_not_kept() {
    let bench = Bench::new();
    let keys = [(); 2].map(|()| key(file_id(), "200"));
    let sheet = sheet_key(&keys);
    let cells = || keys.iter().map(|key| Ok((key.clone(), bench.source(None)))).collect();
    bench.engine.sheet(sheet.clone(), cells()).await.unwrap();
    assert!(bench.engine.cached_sheet(&sheet).is_some());
    bench.engine.remove_file(keys[1].file_id).await.unwrap();
    assert!(bench.engine.cached_sheet(&sheet).is_none(), "it goes with any of its files");

    // The variants are in memory: the blobs are asked for when the sheet is there.
    bench.engine.get(keys[1].clone(), bench.source(None)).await.unwrap();
    bench.current.store(false, Ordering::Relaxed);
    bench.engine.sheet(sheet.clone(), cells()).await.unwrap();
    assert!(bench.engine.cached_sheet(&sheet).is_none());
}

#[tokio::test]
async fn a_tag_is_known_without_its_sheet() {
    let bench = Bench::new();
    let keys = [(); 2].map(|()| key(file_id(), "200"));
    let sheet = sheet_key(&keys);
    let cells = || -> Vec<CellSource> {
        let shown = (keys[0].clone(), bench.source(None));
        vec![Ok(shown), Err(Error::not_found("file"))]
    };

    let tag = bench.engine.sheet_tag(&sheet, cells()).await.unwrap();
    assert!(bench.engine.cached_sheet(&sheet).is_none());
    assert_eq!(bench.engine.sheet(sheet, cells()).await.unwrap().tag, tag);
}

/// Takes a place of an organization, whose turn lasts until the returned sender is dropped.
fn occupy(bench: &Bench, organization: &str) -> (mpsc::Sender<()>, Place) {
    let (go, gate) = mpsc::channel::<()>();
    let place = bench.engine.shared.pool.place(&organization.parse().unwrap()).unwrap();
    place.submit(Kind::Still, 0, move |held| {
        let _ = gate.recv();
        drop(held);
    });
    (go, place)
}

/// Waits until this many requests wait for a turn.
async fn until_waiting(bench: &Bench, number: u64) {
    while bench.engine.shared.pool.load().tasks.waiting != number {
        yield_now().await;
    }
}

/// Makes the variants of so many pictures of an organization. A sheet of them needs one place and one turn.
async fn variants_of(bench: &Bench, organization: &str, number: usize) -> Vec<VariantKey> {
    let mut keys = Vec::new();
    for _ in 0..number {
        let organization_id = organization.parse().unwrap();
        let key = VariantKey { organization_id, ..key(file_id(), "200") };
        bench.get(&key).await.unwrap();
        keys.push(key);
    }
    keys
}

/// Asks for a sheet of one picture.
fn ask_for_sheet(bench: &Bench, key: &VariantKey) -> JoinHandle<Result<Arc<Sheet>>> {
    let (engine, sheet) = (bench.engine.clone(), sheet_key(std::slice::from_ref(key)));
    let cells = vec![Ok((key.clone(), bench.source(None)))];
    tokio::spawn(async move { engine.sheet(sheet, cells).await })
}

#[tokio::test]
async fn sheets_of_one_organization_leave_turns_and_places_to_those_of_another() {
    let config = VariantConfig { threads: 1, queue: 6, deadline: HANG, ..VariantConfig::default() };
    let bench = Bench::with(config);
    let greedy = variants_of(&bench, "greedy", 6).await;
    let other = variants_of(&bench, "other", 1).await;

    // The turn, the next one, and all places.
    let (go, _running) = occupy(&bench, "greedy");
    until_waiting(&bench, 0).await;
    let (go_on, _next) = occupy(&bench, "greedy");
    let sheets: Vec<_> = greedy[..5].iter().map(|key| ask_for_sheet(&bench, key)).collect();
    until_waiting(&bench, 6).await;
    let refused = ask_for_sheet(&bench, &greedy[5]).await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);

    let ended = || sheets.iter().filter(|sheet| sheet.is_finished()).count();
    let theirs = ask_for_sheet(&bench, &other[0]);
    while ended() == 0 {
        yield_now().await;
    }
    drop(go);
    let sheet = timeout(HANG, theirs).await.expect("the next turn is theirs");
    assert!(sheet.unwrap().unwrap().cells[0].shown.is_ok());
    assert_eq!(ended(), 1, "one lost its place, the others wait");

    drop(go_on);
    let mut lost = 0;
    for sheet in sheets {
        if let Err(error) = sheet.await.unwrap() {
            assert_eq!(error.kind(), ErrorKind::Busy);
            lost += 1;
        }
    }
    assert_eq!(lost, 1);
}

#[tokio::test]
async fn a_sheet_that_need_not_wait_shows_what_is_there_and_the_rest_is_made_on() {
    let config = VariantConfig { threads: 1, queue: 6, deadline: HANG, ..VariantConfig::default() };
    let bench = Bench::with(config);
    let ready = variants_of(&bench, "acme", 1).await;
    let organization_id = "acme".parse().unwrap();
    let slow = VariantKey { organization_id, ..key(file_id(), "200") };
    let keys = [slow, ready[0].clone()];
    let cells = || -> Vec<CellSource> {
        let shown = keys.iter().map(|key| Ok((key.clone(), bench.source(None))));
        shown.chain([Err(Error::not_found("file"))]).collect()
    };
    let mut sheet_of_three = sheet_key(&[keys[0].clone(), keys[1].clone(), keys[1].clone()]);
    sheet_of_three.files[2].1 = None;

    let within = bench.engine.sheet_within(sheet_of_three.clone(), cells(), Duration::ZERO);
    let first = within.await.unwrap();
    let refused = |at: usize| first.cells[at].shown.as_ref().err().map(Error::kind);
    assert_eq!(refused(0), Some(ErrorKind::Busy), "it was never made");
    assert_eq!(refused(2), Some(ErrorKind::NotFound));
    assert!(bench.engine.cached_sheet(&sheet_of_three).is_none(), "a sheet without it is not kept");

    let whole = bench.engine.sheet_within(sheet_of_three.clone(), cells(), HANG).await.unwrap();
    assert!(whole.cells[..2].iter().all(|cell| cell.shown.is_ok()));
    assert_ne!(whole.tag, first.tag, "a client asks again");
    assert_eq!(bench.engine.sheet_tag(&sheet_of_three, cells()).await.unwrap(), whole.tag);
    assert!(bench.engine.cached_sheet(&sheet_of_three).is_some());
}
