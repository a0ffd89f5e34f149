//! BMPs of every header and kind of pixels, as Chromium shows them.

use super::*;

const SIDE: u32 = 300;
const WIDE: usize = 300;

/// A BMP whose second header is given, of which the first four bytes are the length.
struct Bmp {
    header: Vec<u8>,
    /// Masks or palette, behind the header.
    table: Vec<u8>,
    data: Vec<u8>,
}

impl Bmp {
    /// A header of Windows.
    fn new(bits: u16, compression: u32, table: &[u8], data: &[u8]) -> Self {
        let mut header = 40u32.to_le_bytes().to_vec();
        header.extend(SIDE.to_le_bytes().repeat(2));
        header.extend(1u16.to_le_bytes());
        header.extend(bits.to_le_bytes());
        header.extend(compression.to_le_bytes());
        header.resize(40, 0);
        Self { header, table: table.to_vec(), data: data.to_vec() }
    }

    /// The same with a header of another length.
    fn long(mut self, length: u32) -> Self {
        self.header.resize(length as usize, 0);
        self.header[..4].copy_from_slice(&length.to_le_bytes());
        self
    }

    fn with(mut self, at: usize, bytes: &[u8]) -> Self {
        self.header[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn top_down(self) -> Self {
        let height = -i32::try_from(SIDE).unwrap();
        self.with(8, &height.to_le_bytes())
    }

    fn write(&self) -> Vec<u8> {
        let at = u32::try_from(14 + self.header.len() + self.table.len()).unwrap();
        let mut bytes = b"BM\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend(at.to_le_bytes());
        bytes.extend([&self.header[..], &self.table, &self.data].concat());
        bytes
    }
}

/// Blue, green, red of the four quarters, from below.
fn bgr() -> Vec<u8> {
    let [top_left, top_right, bottom_left, bottom_right] = DISPLAYED;
    let rgb = quarters(SIDE, SIDE, [bottom_left, bottom_right, top_left, top_right]);
    rgb.chunks(3).flat_map(|p| [p[2], p[1], p[0]]).collect()
}

/// Indexes of the four quarters, from below: 1, 2, 3 and 4.
fn indexes() -> Vec<u8> {
    let index = |x: usize, y: usize| match (2 * y >= WIDE, 2 * x >= WIDE) {
        (true, false) => 1,
        (true, true) => 2,
        (false, false) => 3,
        (false, true) => 4,
    };
    (0..WIDE).flat_map(|y| (0..WIDE).map(move |x| index(x, y))).collect()
}

fn palette(each: usize) -> Vec<u8> {
    let colors = [[9, 9, 9], DISPLAYED[0], DISPLAYED[1], DISPLAYED[2], DISPLAYED[3]];
    let color = |[red, green, blue]: [u8; 3]| [blue, green, red, 0][..each].to_vec();
    colors.into_iter().flat_map(color).collect()
}

/// Runs of bytes, one for each half of a row.
fn runs(color: &dyn Fn(u8) -> Vec<u8>) -> Vec<u8> {
    let mut data = Vec::new();
    for row in indexes().chunks(WIDE) {
        data.extend(
            [vec![150], color(row[0]), vec![150], color(row[WIDE - 1]), vec![0, 0]].concat(),
        );
    }
    data.extend([0, 1]);
    data
}

fn shows(bmp: &Bmp, expected: [[u8; 3]; 4], what: &str) {
    let bytes = bmp.write();
    assert_eq!(probed(&bytes), Some(Dimensions { width: SIDE, height: SIDE }), "{what}");
    let shown = seen(&bytes, 200, Fit::Cover);
    assert_quarters(&shown, expected, what);
    assert_eq!(shown.at(50, 50)[3], 255, "{what}");
}

#[test]
fn headers_of_every_length_are_read() {
    for length in [16, 20, 24, 36, 40, 42, 46, 48, 52, 56, 60, 64, 108, 124] {
        let mut bmp = Bmp::new(24, 0, &[], &bgr());
        bmp = bmp.long(length);
        shows(&bmp, DISPLAYED, &format!("24 bits, a header of {length}"));
        let bmp = Bmp::new(8, 0, &[palette(4), vec![0; 4 * 251]].concat(), &indexes());
        shows(&bmp.long(length), DISPLAYED, &format!("8 bits, a header of {length}"));
    }
    let side = [300u16.to_le_bytes(), 300u16.to_le_bytes()].concat();
    let core = |bits: u8| [&[12, 0, 0, 0][..], &side, &[1, 0, bits, 0]].concat();
    let colors = Bmp { header: core(24), table: Vec::new(), data: bgr() };
    shows(&colors, DISPLAYED, "24 bits, the first header of OS/2");
    let table = [palette(3), vec![0; 3 * 251]].concat();
    shows(&Bmp { header: core(8), table, data: indexes() }, DISPLAYED, "8 bits, OS/2");
}

#[test]
fn any_number_of_planes_is_read() {
    for planes in [0u16, 2, 3, 999] {
        let bmp = Bmp::new(24, 0, &[], &bgr()).with(12, &planes.to_le_bytes());
        shows(&bmp, DISPLAYED, &format!("{planes} planes"));
    }
}

#[test]
fn rows_may_come_from_above_in_every_kind() {
    let [a, b, c, d] = DISPLAYED;
    let upside_down = [c, d, a, b];
    let counted = |bmp: Bmp| bmp.with(32, &5u32.to_le_bytes());
    for (what, bmp) in [
        ("24 bits", Bmp::new(24, 0, &[], &bgr())),
        ("8 bits", counted(Bmp::new(8, 0, &palette(4), &indexes()))),
        ("runs of 8 bits", counted(Bmp::new(8, 1, &palette(4), &runs(&|index| vec![index])))),
        (
            "runs of 4 bits",
            counted(Bmp::new(4, 2, &palette(4), &runs(&|index| vec![index << 4 | index]))),
        ),
    ] {
        let Bmp { header, table, data } = &bmp;
        let same = Bmp { header: header.clone(), table: table.clone(), data: data.clone() };
        shows(&bmp, DISPLAYED, what);
        shows(&same.top_down(), upside_down, &format!("{what}, from above"));
    }
}

#[test]
fn runs_of_24_bits_are_those_of_os_2() {
    let colors = |index: u8| {
        let [red, green, blue] = DISPLAYED[usize::from(index) - 1];
        vec![blue, green, red]
    };
    shows(&Bmp::new(24, 4, &[], &runs(&colors)).long(64), DISPLAYED, "RLE24");
    // For Windows the number is that of a JPEG.
    assert_eq!(error(&Bmp::new(24, 4, &[], &runs(&colors)).write()).kind(), ErrorKind::Unsupported);
}

#[test]
fn literals_and_jumps_between_runs_are_drawn_and_what_is_jumped_over_is_transparent() {
    // A row: a run of 100, literals of an odd number, and a jump to the middle of the row above.
    let literals = [&[0, 49][..], &[2; 49], &[0]].concat();
    let jump = [0, 2, 1, 1];
    let row = [&[100, 1][..], &literals, &jump, &[150, 3, 0, 0]].concat();
    let data = [&row.repeat(150)[..], &[0, 1]].concat();
    let bmp = Bmp::new(8, 1, &palette(4), &data).with(32, &5u32.to_le_bytes());
    let shown = seen(&bmp.write(), 200, Fit::Inside);
    assert!(shown.at(40, 100)[3] > 100 && shown.at(120, 100)[3] > 100);
    assert!(close(&shown.at(40, 100)[..3], &DISPLAYED[0]), "{:?}", shown.at(40, 100));
    assert!(close(&shown.at(83, 100)[..3], &DISPLAYED[1]), "{:?}", shown.at(83, 100));
    assert!(close(&shown.at(150, 100)[..3], &DISPLAYED[2]), "{:?}", shown.at(150, 100));

    // What came of runs that are cut.
    let cut = Bmp::new(8, 1, &palette(4), &runs(&|index| vec![index])[..900]);
    let shown = seen(&cut.with(32, &5u32.to_le_bytes()).write(), 200, Fit::Cover);
    assert_eq!((shown.at(50, 190)[3], shown.at(50, 20)[3]), (255, 0));
    let of = |data: &[u8]| Bmp::new(8, 1, &palette(4), data).with(32, &5u32.to_le_bytes()).write();
    assert_eq!(error(&of(&[])).kind(), ErrorKind::Corrupt);
    assert_eq!(seen(&of(&[0, 1]), 200, Fit::Cover).at(100, 100)[3], 0, "an end and no run");
}

#[test]
fn masks_of_every_kind_are_read() {
    let pixels = |bytes: usize, of: &dyn Fn([u8; 3]) -> u32| {
        let colors = bgr();
        let pixels =
            colors.chunks(3).flat_map(|p| of([p[2], p[1], p[0]]).to_le_bytes()[..bytes].to_vec());
        pixels.collect::<Vec<u8>>()
    };
    let masks = |all: &[u32]| all.iter().flat_map(|mask| mask.to_le_bytes()).collect::<Vec<u8>>();
    let five =
        |[r, g, b]: [u8; 3]| u32::from(r >> 3) << 10 | u32::from(g >> 3) << 5 | u32::from(b >> 3);
    let six =
        |[r, g, b]: [u8; 3]| u32::from(r >> 3) << 11 | u32::from(g >> 2) << 5 | u32::from(b >> 3);
    let eight = |[r, g, b]: [u8; 3]| u32::from_le_bytes([b, g, r, 0]);
    let turned = |[r, g, b]: [u8; 3]| u32::from_le_bytes([0xFF, r, g, b]);
    let wide = |[r, g, b]: [u8; 3]| u32::from(r) << 22 | u32::from(g) << 12 | u32::from(b) << 2 | 3;
    for (what, bmp) in [
        ("16 bits", Bmp::new(16, 0, &[], &pixels(2, &five))),
        ("32 bits", Bmp::new(32, 0, &[], &pixels(4, &eight))),
        ("5-6-5", Bmp::new(16, 3, &masks(&[0xF800, 0x7E0, 0x1F]), &pixels(2, &six))),
        (
            "5-6-5 with a mask of no alpha",
            Bmp::new(16, 6, &masks(&[0xF800, 0x7E0, 0x1F, 0]), &pixels(2, &six)),
        ),
        (
            "another order",
            Bmp::new(32, 3, &masks(&[0xFF00, 0xFF_0000, 0xFF00_0000]), &pixels(4, &turned)),
        ),
        (
            "alpha that is opaque",
            Bmp::new(32, 6, &masks(&[0xFF00, 0xFF_0000, 0xFF00_0000, 0xFF]), &pixels(4, &turned)),
        ),
        (
            "10 bits each",
            Bmp::new(32, 3, &masks(&[0x3FF << 20, 0x3FF << 10, 0x3FF]), &pixels(4, &wide)),
        ),
        (
            "masks in the header",
            Bmp::new(16, 3, &[], &pixels(2, &six))
                .long(52)
                .with(40, &masks(&[0xF800, 0x7E0, 0x1F])),
        ),
        (
            "alpha that is 0 everywhere",
            Bmp::new(32, 3, &[], &pixels(4, &eight))
                .long(108)
                .with(40, &masks(&[0xFF_0000, 0xFF00, 0xFF, 0xFF00_0000])),
        ),
    ] {
        shows(&bmp, DISPLAYED, what);
    }

    // 8, 8 and no bits: no blue.
    let two = |[r, g, _]: [u8; 3]| u32::from(r) << 8 | u32::from(g);
    let bmp = Bmp::new(16, 3, &masks(&[0xFF00, 0xFF, 0]), &pixels(2, &two));
    shows(&bmp, DISPLAYED.map(|[red, green, _]| [red, green, 0]), "8-8-0");

    // Half transparent, in the header of Windows with alpha.
    let veiled = |[r, g, b]: [u8; 3]| u32::from_le_bytes([b, g, r, 128]);
    let bmp = Bmp::new(32, 3, &[], &pixels(4, &veiled)).long(56);
    let bmp = bmp.with(40, &masks(&[0xFF_0000, 0xFF00, 0xFF, 0xFF00_0000]));
    let shown = seen(&bmp.write(), 200, Fit::Cover).at(50, 50);
    assert!(close(&shown, &[220, 30, 30, 128]), "{shown:?}");
}

#[test]
fn indexes_of_every_depth_are_read_and_those_beyond_the_palette_are_black() {
    for (bits, byte, expected) in [
        (1, 0xFF, RED),
        (2, 0x55, RED),
        (4, 0x11, RED),
        (8, 1, RED),
        (4, 0xEE, [0; 3]),
        (8, 200, [0; 3]),
    ] {
        let stride = (WIDE * usize::from(bits)).div_ceil(32) * 4;
        let bmp = Bmp::new(bits, 0, &palette(4)[..8], &vec![byte; stride * WIDE]);
        shows(&bmp.with(32, &2u32.to_le_bytes()), [expected; 4], &format!("{bits} bits, {byte}"));
    }
}

#[test]
fn an_embedded_profile_is_used() {
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    // sRGB (200, 100, 50) in Display P3.
    let rgb = [189, 106, 62].repeat(WIDE * WIDE);
    let bmp = bmp_with_profile((SIDE, SIDE), &rgb, &profile);
    let shown = seen(&bmp, 200, Fit::Cover).at(100, 100);
    let off = shown.iter().zip([200, 100, 50]).map(|(is, want)| is.abs_diff(want)).max();
    assert!(off <= Some(4), "{shown:?}");
}

#[test]
fn kinds_that_are_not_decoded_are_named() {
    for (what, bits, compression, length) in [
        ("a JPEG", 0, 4, 40),
        ("a PNG", 0, 5, 40),
        ("codes of a fax", 1, 3, 64),
        ("runs of 8 bits in a picture of 24", 24, 1, 40),
        ("64 bits", 64, 0, 124),
        ("inks", 32, 11, 124),
    ] {
        let bmp = Bmp::new(bits, compression, &[], &[0; 99]).long(length);
        let error = error(&bmp.write());
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Unsupported, "this kind of BMP image is not supported"),
            "{what}"
        );
    }
}
