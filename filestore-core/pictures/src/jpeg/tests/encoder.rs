//! The test encoder of JPEG (ITU-T T.81): any sampling, scans and restart intervals, sequential and
//! progressive. It hands out the coefficients it wrote, which say what a decoder should see.

use std::f64::consts::PI;

use crate::jpeg::huffman::END;
use crate::jpeg::markers::ZIGZAG;

/// What to write.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Sampling factors of each component.
    pub(super) sampling: Vec<(u32, u32)>,
    pub(super) progressive: bool,
    /// The quantization of DC; that of the others grows from it.
    pub(super) finest: i32,
    /// MCUs between restart markers, 0 for none.
    pub(super) restart_interval: u32,
    pub(super) scans: Vec<ScanRecipe>,
}

/// Components, first and last coefficient, the bit refined plus 1 or 0, and the lowest bit.
pub(super) type ScanRecipe = (Vec<usize>, usize, usize, u8, u8);

/// What was written.
pub(super) struct Written {
    pub(super) bytes: Vec<u8>,
    pub(super) quantization: Quantization,
    pub(super) components: Vec<Coefficients>,
}

/// The quantized coefficients of one component, in zigzag order, blocks row by row.
pub(super) struct Coefficients {
    pub(super) blocks_across: u32,
    blocks_down: u32,
    /// Blocks across and down that show something.
    own: (u32, u32),
    pub(super) blocks: Vec<[i32; END]>,
}

/// The quantization of each place, the same for all components.
pub(super) type Quantization = [i32; END];

fn quantization(recipe: &Recipe) -> Quantization {
    std::array::from_fn(|at| i32::try_from(at).unwrap() / 3 + recipe.finest)
}

/// All components in one scan.
pub(super) fn sequential(components: usize) -> Vec<ScanRecipe> {
    vec![((0..components).collect(), 0, 63, 0, 0)]
}

/// The usual way of progressive pictures: bands, and bits that are added later.
pub(super) fn progressive(components: usize) -> Vec<ScanRecipe> {
    let all: Vec<_> = (0..components).collect();
    let mut scans = vec![(all.clone(), 0, 0, 0, 1), (vec![0], 1, 5, 0, 2)];
    scans.extend((1..components).map(|one| (vec![one], 1, 63, 0, 1)));
    scans.extend([(vec![0], 6, 63, 0, 2), (vec![0], 1, 63, 2, 1), (all, 0, 0, 1, 0)]);
    scans.extend((0..components).rev().map(|one| (vec![one], 1, 63, 1, 0)));
    scans
}

/// Writes a picture of generated shapes and noise.
pub(super) fn write(recipe: &Recipe) -> Written {
    let largest =
        recipe.sampling.iter().fold((1, 1), |most, one| (most.0.max(one.0), most.1.max(one.1)));
    let components: Vec<_> =
        (0..recipe.sampling.len()).map(|index| transform(recipe, index, largest)).collect();
    let mut bytes = b"\xFF\xD8".to_vec();
    let quantization = quantization(recipe);
    let tables = quantization.map(|value| u8::try_from(value).unwrap());
    segment(&mut bytes, 0xDB, &[&[0], &tables[..]].concat());
    let [.., h1, h0] = recipe.height.to_be_bytes();
    let [.., w1, w0] = recipe.width.to_be_bytes();
    let mut frame = vec![8, h1, h0, w1, w0, u8::try_from(components.len()).unwrap()];
    for (id, (h, v)) in (1..).zip(&recipe.sampling) {
        frame.extend([id, u8::try_from(h << 4 | v).unwrap(), 0]);
    }
    segment(&mut bytes, if recipe.progressive { 0xC2 } else { 0xC0 }, &frame);
    segment(&mut bytes, 0xDD, &recipe.restart_interval.to_be_bytes()[2..]);
    for scan in &recipe.scans {
        write_scan(&mut bytes, recipe, scan, &components, largest);
    }
    bytes.extend(b"\xFF\xD9");
    Written { bytes, quantization, components }
}

fn segment(bytes: &mut Vec<u8>, marker: u8, payload: &[u8]) {
    bytes.extend([0xFF, marker]);
    bytes.extend(u16::try_from(payload.len() + 2).unwrap().to_be_bytes());
    bytes.extend(payload);
}

fn transform(recipe: &Recipe, index: usize, largest: (u32, u32)) -> Coefficients {
    let (h, v) = recipe.sampling[index];
    let (blocks_across, blocks_down) =
        (recipe.width.div_ceil(8 * largest.0) * h, recipe.height.div_ceil(8 * largest.1) * v);
    let own =
        ((recipe.width * h).div_ceil(8 * largest.0), (recipe.height * v).div_ceil(8 * largest.1));
    let mut random = fastrand::Rng::with_seed(index as u64 + 1);
    let cosine =
        |at: usize, frequency: usize| ((2 * at + 1) as f64 * frequency as f64 * PI / 16.0).cos();
    let (quantization, mut blocks) = (quantization(recipe), Vec::new());
    for by in 0..blocks_down {
        for bx in 0..blocks_across {
            // Flat, smooth and noisy blocks, so that all lengths of blocks and runs occur.
            let noise = [0.0, 3.0, 40.0, 120.0][((bx / 2 + by / 3) % 4) as usize];
            let mut samples = [[0.0; 8]; 8];
            for (y, row) in samples.iter_mut().enumerate() {
                for (x, sample) in row.iter_mut().enumerate() {
                    let (x, y) = (f64::from(bx * 8) + x as f64, f64::from(by * 8) + y as f64);
                    let shape = 60.0 * (x / 37.0 + index as f64).sin() + 50.0 * (y / 23.0).cos();
                    *sample = (shape + noise * (random.f64() - 0.5)).clamp(-128.0, 127.0);
                }
            }
            let mut block = [0; END];
            for (at, value) in block.iter_mut().enumerate() {
                let (u, v) = (usize::from(ZIGZAG[at] % 8), usize::from(ZIGZAG[at] / 8));
                let mut sum = 0.0;
                for (y, row) in samples.iter().enumerate() {
                    for (x, sample) in row.iter().enumerate() {
                        sum += sample * cosine(x, u) * cosine(y, v);
                    }
                }
                let weight = |frequency: usize| if frequency == 0 { 0.125f64.sqrt() } else { 0.5 };
                *value = (sum * weight(u) * weight(v) / f64::from(quantization[at])).round() as i32;
            }
            blocks.push(block);
        }
    }
    Coefficients { blocks_across, blocks_down, own, blocks }
}

/// What a scan consists of, before its Huffman codes are known.
enum Token {
    /// Of the table with this number.
    Symbol(usize, u8),
    /// A value and how many bits it has.
    Bits(u32, u32),
    Restart,
}

fn write_scan(
    bytes: &mut Vec<u8>,
    recipe: &Recipe,
    (indices, start, end, high, low): &ScanRecipe,
    components: &[Coefficients],
    largest: (u32, u32),
) {
    let mut coder =
        Coder { tokens: Vec::new(), predictions: [0; 4], ended: 0, pending: Vec::new() };
    let alone = indices.len() == 1;
    let (across, down) = if alone {
        components[indices[0]].own
    } else {
        (recipe.width.div_ceil(8 * largest.0), recipe.height.div_ceil(8 * largest.1))
    };
    for mcu in 0..across * down {
        if recipe.restart_interval > 0 && mcu > 0 && mcu % recipe.restart_interval == 0 {
            coder.end_run();
            coder.tokens.push(Token::Restart);
            coder.predictions = [0; 4];
        }
        for index in indices {
            let component = &components[*index];
            let (h, v) = if alone { (1, 1) } else { recipe.sampling[*index] };
            for row in 0..v {
                for column in 0..h {
                    let (x, y) = (mcu % across * h + column, mcu / across * v + row);
                    assert!(y < component.blocks_down);
                    let block = &component.blocks[(y * component.blocks_across + x) as usize];
                    match (recipe.progressive, start, high) {
                        (false, ..) => coder.sequential(*index, block),
                        (true, 0, 0) => coder.dc(*index, block[0] >> low),
                        (true, 0, _) => {
                            coder.tokens.push(Token::Bits(block[0] as u32 >> low & 1, 1));
                        }
                        (true, _, 0) => coder.first(&block[*start..=*end], *low),
                        (true, ..) => coder.refine(&block[*start..=*end], *low),
                    }
                }
            }
        }
    }
    coder.end_run();
    let tables: Vec<_> = (0..2).map(|table| Table::new(&coder.tokens, table)).collect();
    for (class, table) in [0x00, 0x10].into_iter().zip(&tables) {
        if !table.symbols.is_empty() {
            let mut lengths = [0; 16];
            for length in &table.lengths {
                lengths[usize::from(*length) - 1] += 1;
            }
            segment(bytes, 0xC4, &[&[class], &lengths[..], &table.symbols].concat());
        }
    }
    let mut header = vec![u8::try_from(indices.len()).unwrap()];
    header.extend(indices.iter().flat_map(|index| [*index as u8 + 1, 0]));
    header.extend([*start as u8, *end as u8, high << 4 | low]);
    segment(bytes, 0xDA, &header);
    write_tokens(bytes, &coder.tokens, &tables);
}

fn write_tokens(bytes: &mut Vec<u8>, tokens: &[Token], tables: &[Table]) {
    let (mut buffer, mut count, mut restarts) = (0u64, 0u32, 0u8);
    let put = |bytes: &mut Vec<u8>, buffer: &mut u64, count: &mut u32| {
        while *count >= 8 {
            *count -= 8;
            let byte = (*buffer >> *count) as u8;
            bytes.push(byte);
            if byte == 0xFF {
                bytes.push(0);
            }
        }
    };
    for token in tokens {
        let (value, length) = match token {
            Token::Symbol(table, symbol) => tables[*table].code(*symbol),
            Token::Bits(value, length) => (*value, *length),
            Token::Restart => {
                let fill = (8 - count % 8) % 8;
                ((1 << fill) - 1, fill)
            }
        };
        buffer = buffer << length | u64::from(value) & ((1 << length) - 1);
        count += length;
        put(bytes, &mut buffer, &mut count);
        if matches!(token, Token::Restart) {
            bytes.extend([0xFF, 0xD0 + restarts % 8]);
            restarts = restarts.wrapping_add(1);
        }
    }
    buffer = buffer << 7 | 0x7F;
    count += 7;
    put(bytes, &mut buffer, &mut count);
}

/// A Huffman table: more frequent symbols have shorter codes, some as long as 16 bits.
struct Table {
    symbols: Vec<u8>,
    lengths: Vec<u8>,
    codes: Vec<u32>,
}

impl Table {
    fn new(tokens: &[Token], number: usize) -> Self {
        // How many codes there are of each length: those of T.81, table K.5.
        const PROFILE: [usize; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125];
        let mut counts = [0; 256];
        for token in tokens {
            if let Token::Symbol(table, symbol) = token {
                counts[usize::from(*symbol)] += usize::from(*table == number);
            }
        }
        let mut symbols: Vec<u8> =
            (0..=255).filter(|symbol| counts[usize::from(*symbol)] > 0).collect();
        symbols.sort_by_key(|symbol| std::cmp::Reverse(counts[usize::from(*symbol)]));
        assert!(symbols.len() <= 162);
        let profile = (1..=16u8).zip(PROFILE);
        let lengths: Vec<u8> = profile
            .flat_map(|(length, count)| std::iter::repeat_n(length, count))
            .take(symbols.len())
            .collect();
        let (mut code, mut last) = (0u32, 0);
        let codes = lengths.iter().map(|length| {
            code <<= length - last;
            last = *length;
            code += 1;
            code - 1
        });
        let codes = codes.collect();
        Self { symbols, lengths, codes }
    }

    fn code(&self, symbol: u8) -> (u32, u32) {
        let at = self.symbols.iter().position(|other| *other == symbol).unwrap();
        (self.codes[at], self.lengths[at].into())
    }
}

struct Coder {
    tokens: Vec<Token>,
    predictions: [i32; 4],
    /// Blocks that ended since the last symbol, and the bits that refine what they have.
    ended: u32,
    pending: Vec<u32>,
}

impl Coder {
    fn symbol(&mut self, table: usize, symbol: u32) {
        self.tokens.push(Token::Symbol(table, u8::try_from(symbol).unwrap()));
    }

    /// A value in as few bits as it needs; `run` zeros come before it.
    fn value(&mut self, table: usize, run: u32, value: i32) {
        let size = 32 - value.unsigned_abs().leading_zeros();
        self.symbol(table, run << 4 | size);
        self.tokens.push(Token::Bits(if value < 0 { value - 1 } else { value } as u32, size));
    }

    fn dc(&mut self, index: usize, dc: i32) {
        let difference = dc - std::mem::replace(&mut self.predictions[index], dc);
        self.value(0, 0, difference);
    }

    fn sequential(&mut self, index: usize, block: &[i32; END]) {
        self.dc(index, block[0]);
        let mut run = 0;
        for value in &block[1..] {
            if *value == 0 {
                run += 1;
                continue;
            }
            self.zeros(&mut run);
            self.value(1, std::mem::take(&mut run), *value);
        }
        if run > 0 {
            self.symbol(1, 0);
        }
    }

    /// The symbols of sixteen zeros, as long as there are that many.
    fn zeros(&mut self, run: &mut u32) {
        while *run > 15 {
            self.symbol(1, 0xF0);
            *run -= 16;
        }
    }

    fn end_run(&mut self) {
        if self.ended > 0 {
            let size = self.ended.ilog2();
            self.symbol(1, size << 4);
            self.tokens.push(Token::Bits(self.ended - (1 << size), size));
            self.ended = 0;
        }
        let pending = std::mem::take(&mut self.pending);
        self.tokens.extend(pending.into_iter().map(|bit| Token::Bits(bit, 1)));
    }

    fn first(&mut self, band: &[i32], low: u8) {
        let mut run = 0;
        for value in band {
            let value = value.signum() * (value.abs() >> low);
            if value == 0 {
                run += 1;
                continue;
            }
            self.end_run();
            self.zeros(&mut run);
            self.value(1, std::mem::take(&mut run), value);
        }
        if run > 0 {
            self.ended += 1;
        }
    }

    fn refine(&mut self, band: &[i32], low: u8) {
        let last_new = band.iter().rposition(|value| value.abs() >> low == 1);
        let (mut run, mut bits) = (0, Vec::new());
        for (at, value) in band.iter().enumerate() {
            let size = value.unsigned_abs() >> low;
            if size == 0 {
                run += 1;
                continue;
            }
            while run > 15 && last_new.is_some_and(|last| at <= last) {
                self.end_run();
                self.symbol(1, 0xF0);
                run -= 16;
                self.tokens.extend(bits.drain(..).map(|bit| Token::Bits(bit, 1)));
            }
            if size > 1 {
                bits.push(size & 1);
                continue;
            }
            self.end_run();
            self.symbol(1, run << 4 | 1);
            self.tokens.push(Token::Bits(u32::from(*value > 0), 1));
            self.tokens.extend(bits.drain(..).map(|bit| Token::Bits(bit, 1)));
            run = 0;
        }
        if run > 0 || !bits.is_empty() {
            self.ended += 1;
            self.pending.extend(bits);
        }
    }
}
