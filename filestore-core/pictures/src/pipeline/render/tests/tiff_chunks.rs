//! TIFFs by how they are stored: strips, tiles, compressions, tables, directories that lie.

use super::*;

const SIDE: u32 = 300;
const WIDE: usize = 300;
/// The numbers of compressions.
const NONE: u16 = 1;
const LZW: u16 = 5;
const JPEG: u16 = 7;
const DEFLATE: u16 = 8;
const PACK_BITS: u16 = 32_773;

type Store = fn(&[u8]) -> Vec<u8>;

const STORED: [(&str, u16, Store); 4] = [
    ("no compression", NONE, <[u8]>::to_vec),
    ("LZW", LZW, lzw_literals),
    ("Deflate", DEFLATE, zlib),
    ("PackBits", PACK_BITS, pack_bits),
];

fn rgb() -> Tiff {
    Tiff::new((SIDE, SIDE), 2, 3, &quarters(SIDE, SIDE, DISPLAYED))
}

fn shows_quarters(tiff: &Tiff, what: &str) {
    assert_quarters(&seen(&tiff.write(), 200, Fit::Cover), DISPLAYED, what);
}

fn reversed(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte.reverse_bits()).collect()
}

#[test]
fn strips_and_tiles_show_the_same_in_every_compression_and_order() {
    for (what, compression, store) in STORED {
        for (big_endian, is_big) in [(false, false), (true, false), (false, true), (true, true)] {
            let of = |tiff: Tiff| Tiff { big_endian, is_big, ..tiff };
            let name = |kind: &str| format!("{what}, {kind}, {big_endian}, {is_big}");
            let strips = of(rgb()).in_strips(70, 3 * WIDE, compression, store);
            shows_quarters(&strips, &name("strips"));
            let tiles = of(rgb()).in_tiles((64, 48), 3, compression, store);
            shows_quarters(&tiles, &name("tiles"));
            let one = of(rgb()).in_tiles((512, 304), 3, compression, store);
            shows_quarters(&one, &name("a tile larger than the picture"));
        }
    }
}

#[test]
fn tiles_of_a_few_bytes_are_read() {
    let grey = Tiff::new((SIDE, SIDE), 1, 1, &vec![90; WIDE * WIDE]);
    for (what, compression, store) in STORED {
        for tile in [(1, 300), (16, 1), (5, 3)] {
            let tiles = grey.clone().in_tiles(tile, 1, compression, store);
            let shown = seen(&tiles.write(), 200, Fit::Cover).at(199, 199);
            assert!(close(&shown, &[90, 90, 90, 255]), "{what}, {tile:?}: {shown:?}");
        }
    }
}

#[test]
fn planes_are_put_together_from_strips_and_from_tiles() {
    let data = quarters(SIDE, SIDE, DISPLAYED);
    let planes: Vec<Vec<u8>> =
        (0..3).map(|at| data.chunks(3).map(|pixel| pixel[at]).collect()).collect();
    for (what, compression, store) in STORED {
        let of_plane = |plane: &Vec<u8>| Tiff::new((SIDE, SIDE), 1, 1, plane);
        let strips = rgb().with(278, 4, &[110]).with(284, 3, &[2]);
        let stored = planes
            .iter()
            .flat_map(|plane| of_plane(plane).in_strips(110, WIDE, compression, store).chunks);
        shows_quarters(&strips.compressed(compression, stored.collect()), what);

        let stored = planes
            .iter()
            .flat_map(|plane| of_plane(plane).in_tiles((128, 128), 1, compression, store).chunks);
        let tiles = rgb().in_tiles((128, 128), 3, compression, store).with(284, 3, &[2]);
        shows_quarters(&tiles.compressed(compression, stored.collect()), what);
    }
}

#[test]
fn the_lowest_bit_may_come_first() {
    for (what, compression, store) in STORED {
        let strips = rgb().in_strips(70, 3 * WIDE, compression, |rows| reversed(&store(rows)));
        shows_quarters(&strips.with(266, 3, &[2]), what);
        let tiles = rgb().in_tiles((64, 64), 3, compression, |rows| reversed(&store(rows)));
        shows_quarters(&tiles.with(266, 3, &[2]), what);
    }

    // One bit a sample: a row of 300 is white up to its middle.
    let row: Vec<u8> = (0..38).map(|at| if at < 19 { 0xFF } else { 0 }).collect();
    let bits = Tiff::new((SIDE, SIDE), 1, 1, &reversed(&row.repeat(WIDE)));
    let bits = bits.with(258, 3, &[1]).with(266, 3, &[2]);
    let shown = seen(&bits.write(), 200, Fit::Cover);
    assert!(close(&shown.at(50, 100), &[255; 4]) && close(&shown.at(150, 100), &[0, 0, 0, 255]));

    // CCITT G4: each row as the one before is one bit, which makes all of them white.
    let fax = Tiff::new((SIDE, SIDE), 0, 1, &[]).with(258, 3, &[1]).with(266, 3, &[2]);
    let fax = fax.compressed(4, vec![reversed(&[[0xFF; 37].as_slice(), &[0xF0]].concat())]);
    assert!(close(&seen(&fax.write(), 200, Fit::Cover).at(100, 100), &[255; 4]));
}

#[test]
fn the_places_of_tiles_may_stand_in_the_tags_of_strips_and_those_of_strips_in_the_tags_of_tiles() {
    let tiles = rgb().in_tiles((64, 64), 3, NONE, <[u8]>::to_vec);
    shows_quarters(&Tiff { places: 273, lengths: Some(279), ..tiles }, "tiles");
    let strips = rgb().in_strips(70, 3 * WIDE, LZW, lzw_literals);
    shows_quarters(&Tiff { places: 324, lengths: Some(325), ..strips }, "strips");
}

#[test]
fn more_places_than_strips_or_tiles_are_left_alone() {
    for (what, compression, store) in STORED {
        for tiff in [
            rgb().in_strips(70, 3 * WIDE, compression, store),
            rgb().in_tiles((64, 64), 3, compression, store),
        ] {
            let mut more = tiff.clone();
            more.chunks.extend([vec![1, 2, 3], vec![4; 50]]);
            shows_quarters(&more, what);
        }
    }
}

#[test]
fn lengths_that_are_missing_or_zero_are_found_from_the_places() {
    for (what, compression, store) in STORED {
        for tiff in [
            rgb().in_strips(70, 3 * WIDE, compression, store),
            rgb().in_tiles((64, 64), 3, compression, store),
        ] {
            shows_quarters(&Tiff { lengths: None, ..tiff.clone() }, what);
            let tag = tiff.lengths.unwrap();
            let zeros = vec![0; tiff.chunks.len()];
            shows_quarters(&tiff.with(tag, 4, &zeros), what);
        }
    }
}

#[test]
fn a_directory_that_leaves_out_what_can_be_guessed_is_read() {
    let mut bare = rgb();
    bare.tags.retain(|(tag, ..)| !matches!(tag, 259 | 262));
    shows_quarters(&bare, "no compression and no photometric");
    shows_quarters(&rgb().with(258, 3, &[8]), "one depth for all samples");
    shows_quarters(&rgb().with(278, 4, &[u64::from(u32::MAX)]), "rows without end");
    shows_quarters(&rgb().with(339, 3, &[4, 4, 4]), "samples of no format");
}

#[test]
fn kinds_that_are_not_decoded_are_named_wherever_they_are() {
    let grey = |bits| Tiff::new((SIDE, SIDE), 1, 1, &vec![0; WIDE * WIDE]).with(258, 3, &[bits]);
    let old = |rows: &[u8]| [&[0, 1][..], rows].concat();
    for (what, tiff) in [
        ("LZW of old", rgb().in_strips(70, 3 * WIDE, LZW, old)),
        ("LZW of old in tiles", rgb().in_tiles((64, 64), 3, LZW, old)),
        ("signed", rgb().with(339, 3, &[2, 2, 2])),
        ("several depths", rgb().with(258, 3, &[5, 6, 5])),
        ("12 bits", grey(12)),
        ("differences of bits", grey(1).with(317, 3, &[2])),
        ("a palette of 16 bits", grey(16).with(262, 3, &[3])),
        ("Zstandard", rgb().compressed(50_000, vec![vec![0; 99]])),
        ("subsampled without JPEG", rgb().with(262, 3, &[6])),
    ] {
        let error = error(&tiff.write());
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{what}: {error:?}");
    }

    // The first strip is one that is decoded.
    let first = lzw_literals(&vec![9; 70 * 3 * WIDE]);
    let mixed = rgb().in_strips(70, 3 * WIDE, LZW, old);
    let chunks = [&[first][..], &mixed.chunks[1..]].concat();
    assert_eq!(error(&Tiff { chunks, ..mixed }.write()).kind(), ErrorKind::Unsupported);
}

#[test]
fn the_alpha_of_a_palette_shows() {
    let colors: Vec<u64> = GREEN
        .iter()
        .flat_map(|light| (0..256).map(|at| if at == 9 { u64::from(*light) * 257 } else { 0 }))
        .collect();
    for extra in [1, 2] {
        let rows: Vec<u8> = (0..WIDE)
            .flat_map(|_| [[9, 255].repeat(WIDE / 2), [9, 0].repeat(WIDE / 2)].concat())
            .collect();
        let tiff = Tiff::new((SIDE, SIDE), 3, 2, &rows).with(320, 3, &colors);
        let tiff = tiff.with(338, 3, &[extra]);
        for stored in [
            tiff.clone(),
            tiff.clone().in_strips(50, 2 * WIDE, LZW, lzw_literals),
            tiff.in_tiles((64, 64), 2, DEFLATE, zlib),
        ] {
            let shown = seen(&stored.write(), 200, Fit::Cover);
            assert!(close(&shown.at(50, 100), &[30, 200, 30, 255]), "{:?}", shown.at(50, 100));
            assert_eq!(shown.at(150, 100)[3], 0);
        }
    }
    // An extra sample that is no alpha.
    let tiff = Tiff::new((SIDE, SIDE), 3, 2, &[9, 7].repeat(WIDE * WIDE)).with(320, 3, &colors);
    let shown = seen(&tiff.with(338, 3, &[0]).write(), 200, Fit::Cover).at(100, 100);
    assert!(close(&shown, &[30, 200, 30, 255]), "{shown:?}");
}

#[test]
fn a_small_picture_has_its_palette() {
    for (width, height, bits) in [(201u32, 1, 8), (201, 20, 8), (300, 20, 8), (250, 3, 4)] {
        let colors: Vec<u64> = (0..3u64 << bits).map(|at| at % (1 << bits) * 257).collect();
        let row = (width * bits).div_ceil(8) as usize;
        let data = vec![if bits == 8 { 100 } else { 0x99 }; row * height as usize];
        let tiff = Tiff::new((width, height), 3, 1, &data).with(320, 3, &colors);
        let tiff = tiff.with(258, 3, &[bits.into()]);
        let shown = seen(&tiff.write(), 200, Fit::Inside).at(100, 0);
        let grey = if bits == 8 { 100 } else { 9 };
        assert!(close(&shown, &[grey, grey, grey, 255]), "{width}×{height}: {shown:?}");
    }
}

#[test]
fn a_profile_is_used_whatever_its_size_and_that_of_the_picture() {
    for (width, height) in [(201, 1), (201, 60), (400, 400)] {
        let data = [220, 40, 30].repeat(width as usize * height as usize);
        for bytes in [0, 5_000, 40_000, 557_168, 2_000_000] {
            let tiff = Tiff::new((width, height), 2, 3, &data);
            let row = 3 * width as usize;
            let with_profile = tiff.with_bytes(34_675, &grown(swapping_profile(), bytes));
            for stored in [
                with_profile.clone(),
                with_profile.clone().in_strips(7, row, LZW, lzw_literals),
                with_profile.in_tiles((64, 64), 3, DEFLATE, zlib),
            ] {
                let [red, green, ..] = seen(&stored.write(), 200, Fit::Inside).at(100, 0);
                assert!(green > 200 && red < 60, "{width}×{height}, {bytes}: {red} {green}");
            }
        }
    }
}

/// A JPEG of some rows with Huffman tables of its own, which are not the usual ones.
fn jpeg_strip(rows: u16, rgb: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    encoder.set_optimized_huffman_tables(true);
    encoder.encode(rgb, u16::try_from(SIDE).unwrap(), rows, jpeg_encoder::ColorType::Rgb).unwrap();
    bytes
}

/// The segments of a JPEG with these markers, and the rest of it.
fn without(jpeg: &[u8], markers: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut taken, mut rest) = (Vec::new(), jpeg[..2].to_vec());
    let mut at = 2;
    while jpeg[at + 1] != 0xDA {
        let length = 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        let to = if markers.contains(&jpeg[at + 1]) { &mut taken } else { &mut rest };
        to.extend(&jpeg[at..at + length]);
        at += length;
    }
    rest.extend(&jpeg[at..]);
    (taken, rest)
}

#[test]
fn tables_of_a_jpeg_strip_are_those_of_the_strips_behind_it() {
    // Three strips that are alike, so that one set of tables serves all.
    let rows = quarters(SIDE, 100, DISPLAYED);
    let strip = jpeg_strip(100, &rows);
    let tiff = |tables: &[u8], chunks: Vec<Vec<u8>>| {
        let tiff = rgb().with(262, 3, &[6]).with(278, 4, &[100]).compressed(JPEG, chunks);
        let tables = [b"\xFF\xD8", tables, b"\xFF\xD9"].concat();
        tiff.with_bytes(347, &tables).with(530, 3, &[2, 2])
    };
    let (both, none) = without(&strip, &[0xDB, 0xC4]);
    let (quantization, huffman) = without(&strip, &[0xDB]);
    let whole = seen(&tiff(&[], vec![strip.clone(); 3]).write(), 200, Fit::Cover);
    assert_quarters(&Seen::of(&webp_of(&strip, 200, Fit::Cover)), DISPLAYED, "the strip alone");

    for (what, tables, chunks) in [
        ("all in the directory", &both, [&none, &none, &none]),
        ("Huffman in the first strip", &quantization, [&huffman, &none, &none]),
        ("all in the first strip", &Vec::new(), [&strip, &none, &none]),
        ("again in the last", &Vec::new(), [&strip, &none, &strip]),
    ] {
        let shown = seen(&tiff(tables, chunks.map(Clone::clone).to_vec()).write(), 200, Fit::Cover);
        assert_eq!(shown.at(100, 199)[3], 255, "{what}: the last strip");
        assert!(shown.mean_difference(&whole) < 0.01, "{what}");
    }

    // Nobody has the tables: that is damage.
    let missing = tiff(&[], vec![none.clone(), none.clone(), none.clone()]).write();
    assert_eq!(error(&missing).kind(), ErrorKind::Corrupt);
}

#[test]
fn a_jpeg_within_may_be_grey_rgb_inks_a_tile_and_smaller_than_its_tile() {
    let grey = flat_jpeg(300, 300, &[77], None);
    let inks = flat_jpeg(300, 300, &[230, 55, 100, 0], None);
    let plain = flat_jpeg(300, 300, &[110, 90, 200], None);
    let of = |photometric, samples, jpeg: &[u8]| {
        let tiff = Tiff::new((SIDE, SIDE), photometric, samples, &[]);
        tiff.compressed(JPEG, vec![jpeg.to_vec()])
    };
    let tile = |tiff: Tiff| {
        let tiff = Tiff { places: 324, lengths: Some(325), ..tiff };
        tiff.with(322, 4, &[304]).with(323, 4, &[304])
    };
    for (what, tiff, expected) in [
        ("grey", of(1, 1, &grey), [77, 77, 77, 255]),
        ("white is 0", of(0, 1, &grey), [178, 178, 178, 255]),
        ("RGB", of(2, 3, &plain), [110, 90, 200, 255]),
        ("YCbCr", of(6, 3, &plain), [211, 72, 43, 255]),
        ("inks", of(5, 4, &inks), [25, 200, 155, 255]),
        ("a tile", tile(of(2, 3, &plain)), [110, 90, 200, 255]),
    ] {
        let shown = seen(&tiff.write(), 200, Fit::Cover).at(100, 100);
        assert!(close(&shown, &expected), "{what}: {shown:?}");
    }

    let planes = [110, 90, 200].map(|value| flat_jpeg(300, 300, &[value], None)).to_vec();
    let planar = Tiff::new((SIDE, SIDE), 2, 3, &[]).with(284, 3, &[2]).compressed(JPEG, planes);
    let shown = seen(&planar.write(), 200, Fit::Cover).at(100, 100);
    assert!(close(&shown, &[110, 90, 200, 255]), "planes: {shown:?}");

    let mut arithmetic = plain.clone();
    let frame = arithmetic.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    arithmetic[frame + 1] = 0xC9;
    let error = error(&of(2, 3, &arithmetic).write());
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
}

#[test]
fn what_came_of_a_cut_tiff_is_shown_in_strips_and_tiles() {
    for (what, compression, store) in STORED {
        for (kind, tiff) in [
            ("strips", rgb().in_strips(20, 3 * WIDE, compression, store)),
            ("tiles", rgb().in_tiles((64, 32), 3, compression, store)),
        ] {
            shows_quarters(&tiff, &format!("{what}, {kind}"));
            let mut cut = tiff.clone();
            let half = cut.chunks.len() / 2;
            cut.chunks.truncate(half);
            let shown = seen(&cut.write(), 200, Fit::Cover);
            assert!(close(&shown.at(40, 40)[..3], &DISPLAYED[0]), "{what}, {kind}");
            assert_eq!((shown.at(40, 40)[3], shown.at(40, 150)[3]), (255, 0), "{what}, {kind}");

            cut.chunks.clear();
            assert_eq!(error(&cut.write()).kind(), ErrorKind::Corrupt, "{what}, {kind}");
        }
    }
}

#[test]
fn differences_of_sixteen_bits_are_added_up() {
    for big_endian in [false, true] {
        let value = |x: u32| if 2 * x < SIDE { 40u16 * 257 } else { 200 * 257 };
        let row: Vec<u8> = (0..SIDE)
            .flat_map(|x| {
                let before = if x == 0 { 0 } else { value(x - 1) };
                let difference = value(x).wrapping_sub(before);
                if big_endian { difference.to_be_bytes() } else { difference.to_le_bytes() }
            })
            .collect();
        let tiff = Tiff::new((SIDE, SIDE), 1, 1, &row.repeat(WIDE)).with(258, 3, &[16]);
        let tiff = Tiff { big_endian, ..tiff }.with(317, 3, &[2]);
        let shown = seen(&tiff.in_strips(50, 2 * WIDE, DEFLATE, zlib).write(), 200, Fit::Cover);
        assert!(close(&shown.at(50, 99), &[40, 40, 40, 255]), "{:?}", shown.at(50, 99));
        assert!(close(&shown.at(150, 99), &[200, 200, 200, 255]), "{:?}", shown.at(150, 99));
    }
}

#[test]
fn floats_are_read_plain_and_as_differences_of_bytes() {
    for big_endian in [false, true] {
        let value = |x: u32| if 2 * x < SIDE { 0.25f32 } else { 0.75 };
        let plain: Vec<u8> = (0..SIDE)
            .flat_map(|x| if big_endian { value(x).to_be_bytes() } else { value(x).to_le_bytes() })
            .collect();
        // Bytes of most weight first, then as differences (TIFF Technical Note 3).
        let apart: Vec<u8> =
            (0..4).flat_map(|at| (0..SIDE).map(move |x| value(x).to_be_bytes()[at])).collect();
        let differences: Vec<u8> = (0..apart.len())
            .map(|at| if at == 0 { apart[0] } else { apart[at].wrapping_sub(apart[at - 1]) })
            .collect();
        for (row, predictor) in [(plain, 1), (differences, 3)] {
            let tiff = Tiff::new((SIDE, SIDE), 1, 1, &row.repeat(WIDE)).with(258, 3, &[32]);
            let tiff = tiff.with(339, 3, &[3]).with(317, 3, &[predictor]);
            let shown = seen(&Tiff { big_endian, ..tiff }.write(), 200, Fit::Cover);
            assert!(close(&shown.at(50, 99), &[64, 64, 64, 255]), "{:?}", shown.at(50, 99));
            assert!(close(&shown.at(150, 99), &[191, 191, 191, 255]), "{:?}", shown.at(150, 99));
        }
    }
}

#[test]
fn samples_that_the_colours_do_not_need_are_left_out_and_a_crowd_of_them_is_refused() {
    let pixel = |extra: usize| [&[110, 90, 200][..], &vec![7; extra]].concat();
    for (extra, is_shown) in [(1, true), (32, true), (33, false), (4000, false)] {
        let samples = u16::try_from(3 + extra).unwrap();
        let rows = pixel(extra).repeat(if is_shown { WIDE * WIDE } else { 1 });
        let unknown = vec![0; extra];
        let chunky = Tiff::new((SIDE, SIDE), 2, samples, &rows).with(338, 3, &unknown);
        let planes = pixel(extra).into_iter().map(|value| vec![value; WIDE * WIDE]);
        let planes = if is_shown { planes.collect() } else { vec![vec![1; 9]] };
        let planar = chunky.clone().with(284, 3, &[2]).compressed(NONE, planes);
        // The planes behind those of the colours need not be there.
        let mut few = planar.clone();
        few.chunks.truncate(3);
        for (what, tiff) in [("chunky", chunky), ("planar", planar), ("few planes", few)] {
            let bytes = tiff.write();
            if is_shown {
                let shown = seen(&bytes, 200, Fit::Cover).at(199, 199);
                assert!(close(&shown, &[110, 90, 200, 255]), "{what}, {extra}: {shown:?}");
            } else {
                assert_eq!(error(&bytes).kind(), ErrorKind::Unsupported, "{what}, {extra}");
            }
        }
    }
}

#[test]
fn planes_of_a_grey_picture_beside_its_own_are_left_out_and_its_alpha_is_not() {
    let planes = |values: &[u8]| values.iter().map(|value| vec![*value; WIDE * WIDE]).collect();
    for (extra, expected) in [(0, [90, 90, 90, 255]), (2, [90, 90, 90, 120])] {
        let tiff = Tiff::new((SIDE, SIDE), 1, 3, &[]).with(284, 3, &[2]).with(338, 3, &[extra, 0]);
        let tiff = tiff.compressed(NONE, planes(&[90, 120, 7]));
        let shown = seen(&tiff.write(), 200, Fit::Cover).at(100, 100);
        assert!(close(&shown, &expected), "{extra}: {shown:?}");
    }
}

#[test]
fn tiles_may_be_larger_than_the_picture_but_not_by_far() {
    for (tile, is_shown) in [((1024, 1024), true), ((1040, 16), false), ((16, 1040), false)] {
        let data = [110, 90, 200].repeat(WIDE * WIDE);
        let tiff = Tiff::new((SIDE, SIDE), 2, 3, &data).in_tiles(tile, 3, DEFLATE, zlib);
        if is_shown {
            let shown = seen(&tiff.write(), 200, Fit::Cover).at(199, 199);
            assert!(close(&shown, &[110, 90, 200, 255]), "{tile:?}: {shown:?}");
        } else {
            assert_eq!(error(&tiff.write()).kind(), ErrorKind::Unsupported, "{tile:?}");
        }
    }
}
