//! GIFs whose header says odd things, as browsers show them.

use super::*;

/// A GIF of one frame, whose indexes are coded without compression.
struct Gif {
    screen: (u16, u16),
    place: (u16, u16),
    size: (u16, u16),
    /// Colours of the shared table, a power of two of them; empty for none.
    shared: Vec<[u8; 3]>,
    local: Vec<[u8; 3]>,
    transparent: Option<u8>,
    index: fn(u16, u16) -> u8,
}

const TWO: [[u8; 3]; 2] = [RED, GREEN];

fn gif(size: (u16, u16)) -> Gif {
    let index = |_, _| 1;
    Gif {
        screen: size,
        place: (0, 0),
        size,
        shared: TWO.to_vec(),
        local: Vec::new(),
        transparent: None,
        index,
    }
}

impl Gif {
    fn start(&self) -> Vec<u8> {
        let flags = |table: &[[u8; 3]]| match table.len() {
            0 => 0,
            count => 0x80 | u8::try_from(count.ilog2() - 1).unwrap(),
        };
        let mut bytes = b"GIF89a".to_vec();
        bytes.extend([self.screen.0, self.screen.1].map(u16::to_le_bytes).concat());
        bytes.extend([flags(&self.shared), 0, 0]);
        bytes.extend(self.shared.concat());
        bytes
    }

    fn frame(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(transparent) = self.transparent {
            bytes.extend([0x21, 0xF9, 4, 1, 5, 0, transparent, 0]);
        }
        bytes.push(0x2C);
        let sides = [self.place.0, self.place.1, self.size.0, self.size.1];
        bytes.extend(sides.map(u16::to_le_bytes).concat());
        let count = self.local.len();
        let flags = if count == 0 { 0 } else { 0x80 | u8::try_from(count.ilog2() - 1).unwrap() };
        bytes.push(flags);
        bytes.extend(self.local.concat());
        bytes.push(8);

        let (width, height) = self.size;
        let indexes = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let mut codes = Vec::new();
        for (at, (x, y)) in indexes.enumerate() {
            if at % 200 == 0 {
                codes.push(256);
            }
            codes.push(u16::from((self.index)(x, y)));
        }
        codes.push(257);
        let bits: Vec<u8> = codes
            .iter()
            .flat_map(|code| (0..9).map(move |bit| u8::from(code >> bit & 1 == 1)))
            .collect();
        let data: Vec<u8> = bits
            .chunks(8)
            .map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit))
            .collect();
        for block in data.chunks(255) {
            bytes.push(u8::try_from(block.len()).unwrap());
            bytes.extend(block);
        }
        bytes.push(0);
        bytes
    }

    fn write(&self) -> Vec<u8> {
        [self.start(), self.frame(), vec![0x3B]].concat()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as a probe returns a size")]
fn size(width: u32, height: u32) -> Option<Dimensions> {
    Some(Dimensions { width, height })
}

#[test]
fn a_screen_is_enlarged_to_its_first_frame() {
    for (screen, place, frame, expected) in [
        ((239, 210), (0, 0), (240, 210), (240, 210)),
        ((1, 1), (0, 0), (240, 210), (240, 210)),
        ((240, 1), (0, 0), (240, 210), (240, 210)),
        ((240, 210), (100, 50), (240, 210), (340, 260)),
        ((0, 0), (0, 0), (240, 210), (240, 210)),
        ((300, 300), (20, 20), (240, 210), (300, 300)),
        ((10, 400), (10, 0), (240, 210), (250, 400)),
    ] {
        let bytes = Gif { screen, place, ..gif(frame) }.write();
        assert_eq!(probed(&bytes), size(expected.0, expected.1), "{screen:?} {place:?}");
        let shown = seen(&bytes, 200, Fit::Inside);
        let scale = |at: u32| at * 200 / expected.0.max(expected.1);
        let (x, y) = (u32::from(place.0) + 120, u32::from(place.1) + 105);
        let middle = shown.at(scale(x), scale(y));
        assert!(close(&middle, &[30, 200, 30, 255]), "{screen:?} {place:?}: {middle:?}");
    }
}

#[test]
fn a_screen_is_enlarged_in_an_animation_too_and_later_frames_are_clipped() {
    let first = Gif { screen: (1, 1), ..gif((240, 210)) };
    let later = Gif { place: (200, 0), index: |_, _| 0, ..gif((400, 300)) };
    let bytes = [first.start(), first.frame(), later.frame(), vec![0x3B]].concat();
    let made = crate::animate(&file(&bytes), Wanted::inside(200), &unhurried()).unwrap();
    let Rendered::WebP(made) = made else { panic!("{made:?}") };
    assert_eq!(chunks(&made)[..2], ["VP8X", "ANIM"]);
    let canvas = [&made[24..27], &made[27..30]].map(|side| 1 + u32::from(side[0]));
    assert_eq!(canvas, [200, 175]);
}

#[test]
fn a_frame_that_makes_the_screen_too_large_is_refused_with_its_size() {
    let mut bytes = gif((240, 210)).write();
    let frame = bytes.windows(2).position(|pair| pair == [0x2C, 0]).unwrap();
    bytes[frame + 5..frame + 9].fill(0xFF);
    let error = error(&bytes);
    assert_eq!((error.kind(), error.limit()), (ErrorKind::TooLarge, Some(16_384)), "{error}");
}

#[test]
fn an_index_that_no_table_has_is_opaque_black() {
    let black = [0, 0, 0, 255];
    let index: fn(u16, u16) -> u8 = |x, _| if x < 150 { 1 } else { 200 };
    let all = |_, _| 7;
    for (what, gif, left) in [
        ("a shared table", Gif { index, ..gif((300, 300)) }, [30, 200, 30, 255]),
        (
            "a table of the frame",
            Gif { index, local: TWO.to_vec(), shared: vec![WHITE; 256], ..gif((300, 300)) },
            [30, 200, 30, 255],
        ),
        ("all of them", Gif { index: all, ..gif((300, 300)) }, black),
        ("no table at all", Gif { index, shared: Vec::new(), ..gif((300, 300)) }, black),
        (
            "on a larger screen",
            Gif { index, screen: (301, 300), ..gif((300, 300)) },
            [30, 200, 30, 255],
        ),
    ] {
        let bytes = gif.write();
        // The end is missing: another way through the decoder.
        for bytes in [&bytes[..], &bytes[..bytes.len() - 40]] {
            let shown = seen(bytes, 200, Fit::Cover);
            assert!(close(&shown.at(50, 100), &left), "{what}: {:?}", shown.at(50, 100));
            assert!(close(&shown.at(150, 100), &black), "{what}: {:?}", shown.at(150, 100));
        }
    }

    let transparent = Gif { index, transparent: Some(200), ..gif((300, 300)) }.write();
    let shown = seen(&transparent, 200, Fit::Cover);
    assert_eq!((shown.at(50, 100)[3], shown.at(150, 100)[3]), (255, 0), "but for transparency");
}

#[test]
fn an_index_that_no_table_has_is_black_in_an_animation_too() {
    let index: fn(u16, u16) -> u8 = |x, _| if x < 150 { 1 } else { 200 };
    for shared in [TWO.to_vec(), Vec::new()] {
        let first = Gif { shared, index, ..gif((300, 300)) };
        let second = Gif { index: |_, _| 200, ..gif((10, 10)) };
        let bytes = [first.start(), first.frame(), second.frame(), vec![0x3B]].concat();
        let made = crate::animate(&file(&bytes), Wanted::inside(200), &unhurried()).unwrap();
        let Rendered::WebP(made) = made else { panic!("{made:?}") };
        let frames = webp::AnimDecoder::new(&made).decode().unwrap();
        let frame = frames.get_frame(0).unwrap();
        let pixel = &frame.get_image()[4 * (100 * 200 + 150)..][..4];
        assert!(close(pixel, &[0, 0, 0, 255]), "{pixel:?}");
    }
}

#[test]
fn what_stands_before_the_first_frame_does_not_hide_it() {
    let gif = Gif { screen: (1, 1), ..gif((240, 210)) };
    let comment = [&b"\x21\xFE"[..], &b"\x03abc".repeat(20_000), b"\0"].concat();
    let bytes = [gif.start(), comment, gif.frame(), vec![0x3B]].concat();
    assert_eq!(probed(&bytes), size(240, 210));
    let middle = seen(&bytes, 200, Fit::Inside).at(100, 80);
    assert!(close(&middle, &[30, 200, 30, 255]), "{middle:?}");
}
