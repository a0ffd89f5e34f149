//! TIFFs with damage in the middle. The other strips and tiles are shown, as libtiff shows them.

use super::*;

const SIDE: u32 = 300;
const WIDE: usize = 300;
/// The numbers of compressions.
const NONE: u16 = 1;
const LZW: u16 = 5;
const JPEG: u16 = 7;
const DEFLATE: u16 = 8;
const PACK_BITS: u16 = 32_773;

const BLACK: [u8; 4] = [0, 0, 0, 255];

type Store = fn(&[u8]) -> Vec<u8>;

/// Compressions whose damage shows: a byte of 0xFF and its successors end the data.
const COMPRESSED: [(&str, u16, Store); 2] =
    [("LZW", LZW, lzw_literals), ("Deflate", DEFLATE, zlib)];

fn rgb() -> Tiff {
    Tiff::new((SIDE, SIDE), 2, 3, &quarters(SIDE, SIDE, DISPLAYED))
}

/// The tiff in three strips of 100 rows.
fn strips(compression: u16, store: Store) -> Tiff {
    rgb().in_strips(100, 3 * WIDE, compression, store)
}

/// Damages everything behind a share of the stored bytes.
fn damage(chunk: &mut [u8], percent: usize) {
    let from = chunk.len() * percent / 100;
    chunk[from..].fill(0xFF);
}

/// Checks the colours of the upper left and the lower left quarter, and the middle rows in the last strip but
/// one, in a variant of 200 pixels. The middle strip has rows 67 to 133.
fn assert_middle_is_missing(shown: &Seen, what: &str) {
    let [red, blue] = [RED, BLUE].map(|[r, g, b]| [r, g, b, 255]);
    for (y, expected) in [(10, red), (55, red), (140, blue), (190, blue)] {
        let is = shown.at(40, y);
        assert!(close(&is, &expected), "{what}, row {y}: {is:?}");
    }
    let gap = shown.at(40, 125);
    assert!(close(&gap, &BLACK), "{what}, the gap: {gap:?}");
}

#[test]
fn a_broken_strip_does_not_hide_the_strips_behind_it() {
    for (what, compression, store) in COMPRESSED {
        let mut whole = strips(compression, store);
        damage(&mut whole.chunks[1], 0);
        assert_middle_is_missing(&seen(&whole.write(), 200, Fit::Cover), what);

        // The rows of the strip before the damage are shown.
        let mut half = strips(compression, store);
        damage(&mut half.chunks[1], 60);
        let shown = seen(&half.write(), 200, Fit::Cover);
        assert_middle_is_missing(&shown, what);
        let arrived = shown.at(40, 75);
        assert!(close(&arrived[..3], &RED), "{what}: {arrived:?}");
    }
}

#[test]
fn a_strip_without_a_place_or_behind_the_end_is_left_out_alone() {
    for (what, compression, store) in
        [("no compression", NONE, <[u8]>::to_vec as Store), ("PackBits", PACK_BITS, pack_bits)]
    {
        for place in [0, 1 << 30] {
            let shown = seen(&misplaced(&strips(compression, store), 1, place), 200, Fit::Cover);
            assert_middle_is_missing(&shown, &format!("{what}, a strip at {place}"));
        }
    }
}

/// Writes a TIFF of little-endian numbers, with another place for one of its strips.
fn misplaced(tiff: &Tiff, chunk: usize, place: u32) -> Vec<u8> {
    let mut bytes = tiff.write();
    let stored: Vec<u8> = tiff.chunks[..chunk].concat();
    // The strips begin behind the header of 8 bytes.
    let was = u32::try_from(8 + stored.len()).unwrap().to_le_bytes();
    let first = 8u32.to_le_bytes();
    let places = bytes.windows(8).position(|pair| pair[..4] == first && pair[4..] == was);
    let at = places.expect("the places are side by side") + 4 * chunk;
    bytes[at..at + 4].copy_from_slice(&place.to_le_bytes());
    bytes
}

#[test]
fn the_first_strip_may_be_the_broken_one() {
    for (what, compression, store) in COMPRESSED {
        let mut tiff = strips(compression, store);
        damage(&mut tiff.chunks[0], 0);
        let shown = seen(&tiff.write(), 200, Fit::Cover);
        assert_eq!(shown.at(40, 30), BLACK, "{what}");
        assert!(close(&shown.at(40, 90)[..3], &RED), "{what}: {:?}", shown.at(40, 90));
        assert!(close(&shown.at(40, 190)[..3], &BLUE), "{what}: {:?}", shown.at(40, 190));
    }
}

#[test]
fn strips_that_are_missing_at_the_end_stay_transparent() {
    for (what, compression, store) in COMPRESSED {
        let mut tiff = strips(compression, store);
        damage(&mut tiff.chunks[1], 0);
        damage(&mut tiff.chunks[2], 0);
        let shown = seen(&tiff.write(), 200, Fit::Cover);
        assert!(close(&shown.at(40, 50)[..3], &RED), "{what}: {:?}", shown.at(40, 50));
        assert_eq!((shown.at(40, 80)[3], shown.at(40, 190)[3]), (0, 0), "{what}");
    }
}

#[test]
fn a_broken_tile_hides_no_other_tile() {
    for (what, compression, store) in COMPRESSED {
        // Three by three.
        let mut tiff = rgb().in_tiles((112, 112), 3, compression, store);
        damage(&mut tiff.chunks[4], 0);
        let shown = seen(&tiff.write(), 200, Fit::Cover);
        assert_eq!(shown.at(110, 110), BLACK, "{what}: the tile in the middle");
        for (x, y, expected) in [
            (30, 30, RED),
            (170, 30, GREEN),
            (30, 90, RED),
            (30, 140, BLUE),
            (190, 110, WHITE),
            (110, 190, WHITE),
        ] {
            let is = shown.at(x, y);
            assert!(close(&is[..3], &expected) && is[3] == 255, "{what}, {x} {y}: {is:?}");
        }
    }
}

#[test]
fn a_broken_strip_of_one_plane_does_not_hide_the_rows_behind_it() {
    let data = quarters(SIDE, SIDE, DISPLAYED);
    let plane = |channel: usize| data.chunks(3).map(|pixel| pixel[channel]).collect::<Vec<u8>>();
    let planes = [0, 1, 2].map(plane).concat();
    let planar = Tiff::new((SIDE, SIDE), 2, 3, &planes).with(284, 3, &[2]);
    let mut tiff = planar.in_strips(100, WIDE, DEFLATE, zlib);
    assert_eq!(tiff.chunks.len(), 9);

    // The middle strip of the greens.
    damage(&mut tiff.chunks[4], 0);
    let shown = seen(&tiff.write(), 200, Fit::Cover);
    for (x, y, expected) in [(40, 30, RED), (160, 30, GREEN), (40, 190, BLUE), (160, 190, WHITE)] {
        let is = shown.at(x, y);
        assert!(close(&is[..3], &expected) && is[3] == 255, "{x} {y}: {is:?}");
    }
}

#[test]
fn a_broken_jpeg_strip_does_not_hide_the_strips_behind_it() {
    let rows = quarters(SIDE, 100, DISPLAYED);
    let strip = jpeg(SIDE, 100, &rows);
    let whole = rgb().with(262, 3, &[6]).with(278, 4, &[100]).with(530, 3, &[2, 2]);
    let of = |middle: Vec<u8>| {
        let chunks = vec![strip.clone(), middle, strip.clone()];
        seen(&whole.clone().compressed(JPEG, chunks).write(), 200, Fit::Cover)
    };
    let expected = of(strip.clone());

    // A frame with a size that no strip has, and no JPEG.
    let frame = strip.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    let mut huge = strip.clone();
    huge[frame + 5..frame + 9].fill(0x3F);
    for (what, middle) in [("huge", huge), ("no JPEG", vec![7; 500])] {
        let shown = of(middle);
        for y in [5, 60, 140, 195] {
            let (is, want) = (shown.at(40, y), expected.at(40, y));
            assert!(close(&is, &want), "{what}, row {y}: {is:?}, not {want:?}");
        }
        assert_eq!(shown.at(40, 100)[3], 255, "{what}");
    }
}

#[test]
fn a_file_of_which_no_strip_is_decoded_is_corrupt() {
    for (what, compression, store) in COMPRESSED {
        let mut tiff = strips(compression, store);
        tiff.chunks.iter_mut().for_each(|chunk| damage(chunk, 0));
        assert_eq!(error(&tiff.write()).kind(), ErrorKind::Corrupt, "{what}");
    }
}
