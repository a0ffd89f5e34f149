//! Sheets, and their tags.

use super::*;

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
