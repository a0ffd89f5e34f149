//! The way through a file's tables and scans, for both kinds of frame.

use std::rc::Rc;

use super::block::{Inverse, Needed, Plane};
use super::huffman::{AcTable, Codes, Coding, DcTable, END};
use super::markers::{
    Frame, FrameComponent, Item, Scan, Segments, huffman_tables, quantization_tables,
};
use super::progressive::{AcFirst, AcRefinement, DcLane, DcScan, Held};
use super::scale::{Part, largest_sampling};
use super::sequential::{self, Decoders};
use super::walk::{Grid, Lane, Late};

/// See [`slack`].
const LUMINANCE_SLACK: f32 = 12.0;
/// The same for chrominance, which WebP keeps at half the size.
const CHROMINANCE_SLACK: f32 = 16.0;
/// How many tables of each kind there may be.
const TABLES: usize = 4;

/// The state between scans.
pub(super) struct Decoder<'a> {
    frame: &'a Frame,
    segments: &'a Segments,
    file: &'a [u8],
    quantization: [Option<[u16; END]>; TABLES],
    dc_tables: [Option<Table<DcTable>>; TABLES],
    ac_tables: [Option<Table<AcTable>>; TABLES],
    restart_interval: usize,
    components: Vec<Component>,
}

/// A Huffman table, made when the first scan needs it.
struct Table<T> {
    codes: Codes,
    made: Option<Rc<T>>,
}

struct Component {
    part: Part,
    sampling: (u32, u32),
    /// Blocks across and down that show something.
    blocks: (u32, u32),
    /// Dequantization in zigzag order, from its first scan on; behind the block's end come zeros.
    factors: Option<[f32; 2 * END]>,
    /// Taken out while a scan works on it.
    plane: Option<Plane>,
    /// The same, for progressive frames.
    held: Option<Held>,
}

impl<'a> Decoder<'a> {
    /// For the `parts` of the components of `frame`, which is that of `segments`.
    pub(super) fn new(
        frame: &'a Frame,
        parts: &[Part],
        segments: &'a Segments,
        file: &'a [u8],
    ) -> Self {
        let is_progressive = frame.marker == PROGRESSIVE;
        let largest = largest_sampling(frame);
        let component = |(component, part): (&FrameComponent, &Part)| {
            let sampling = (u32::from(component.h), u32::from(component.v));
            let blocks = (
                (frame.width * sampling.0).div_ceil(8 * largest.0),
                (frame.height * sampling.1).div_ceil(8 * largest.1),
            );
            let held =
                is_progressive.then(|| Held::new((blocks.0, part.rows.1.min(blocks.1)), part.n));
            Component {
                part: *part,
                sampling,
                blocks,
                factors: None,
                plane: Some(Plane::new(*part)),
                held,
            }
        };
        Self {
            frame,
            segments,
            file,
            quantization: [None; TABLES],
            dc_tables: [const { None }; TABLES],
            ac_tables: [const { None }; TABLES],
            restart_interval: 0,
            components: frame.components.iter().zip(parts).map(component).collect(),
        }
    }

    /// The samples of each component, as its part says; `None` if there is no data at all.
    pub(super) fn run(mut self, is_late: &dyn Fn() -> bool) -> Result<Option<Vec<Vec<u8>>>, Late> {
        let file = self.file;
        let mut read = 0;
        for item in &self.segments.items {
            match item {
                Item::Quantization(range) => {
                    quantization_tables(&file[range.clone()], |number, values| {
                        if let Some(table) = self.quantization.get_mut(number) {
                            *table = Some(values);
                        }
                    })
                }
                Item::Huffman(range) => self.set_codes(&file[range.clone()]),
                Item::RestartInterval(interval) => self.restart_interval = *interval,
                Item::Scan(scan) => {
                    self.latch_factors(scan);
                    read += self.scan(scan, is_late)?.unwrap_or(0);
                }
            }
        }
        if read == 0 {
            return Ok(None);
        }
        if self.frame.marker == PROGRESSIVE {
            self.put_held(is_late)?;
        }
        Ok(Some(
            self.components
                .into_iter()
                .filter_map(|component| Some(component.plane?.samples))
                .collect(),
        ))
    }

    fn set_codes(&mut self, payload: &[u8]) {
        huffman_tables(payload, |is_ac, number, counts, symbols| {
            let codes = Codes::new(counts, symbols);
            match (is_ac, self.dc_tables.get_mut(number), self.ac_tables.get_mut(number)) {
                (false, Some(table), _) => *table = codes.map(|codes| Table { codes, made: None }),
                (true, _, Some(table)) => *table = codes.map(|codes| Table { codes, made: None }),
                _ => {}
            }
        });
    }

    /// A component keeps the table that its first scan finds.
    fn latch_factors(&mut self, scan: &Scan) {
        for of_scan in &scan.components {
            let table = usize::from(self.frame.components[of_scan.index].table);
            let component = &mut self.components[of_scan.index];
            if let (None, Some(Some(values))) = (component.factors, self.quantization.get(table)) {
                let mut factors = [0.0; 2 * END];
                for (factor, value) in factors.iter_mut().zip(values) {
                    *factor = f32::from(*value);
                }
                component.factors = Some(factors);
                if let Some(held) = &mut component.held {
                    let index = of_scan.index;
                    let is_its =
                        |scan: &&Scan| scan.components.iter().any(|other| other.index == index);
                    let slack = if component.part.n == 8 { 0.0 } else { slack(index) };
                    held.choose(self.segments.scans().filter(is_its), &factors, slack);
                }
            }
        }
    }

    /// Reads a scan if it is needed and all its tables are there. How many MCUs were read.
    fn scan(&mut self, scan: &Scan, is_late: &dyn Fn() -> bool) -> Result<Option<usize>, Late> {
        let data = &self.file[scan.data.clone()];
        let grid = self.grid(scan);
        if self.frame.marker != PROGRESSIVE {
            let Some(mut decoders) = self.sequential(scan) else { return Ok(None) };
            let read = grid.walk(data, true, is_late, &mut decoders);
            for (decoder, of_scan) in decoders.0.into_iter().zip(&scan.components) {
                self.components[of_scan.index].plane = Some(decoder.plane);
            }
            return read.map(Some);
        }
        if scan.band.start == 0 {
            let Some(mut dc) = self.dc_scan(scan) else { return Ok(None) };
            let read = grid.walk(data, true, is_late, &mut dc);
            for (lane, of_scan) in dc.lanes.into_iter().zip(&scan.components) {
                self.components[of_scan.index].held = Some(lane.held);
            }
            return read.map(Some);
        }
        self.ac_scan(scan, &grid, is_late)
    }

    fn ac_scan(
        &mut self,
        scan: &Scan,
        grid: &Grid,
        is_late: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Late> {
        let data = &self.file[scan.data.clone()];
        let of_scan = scan.components[0];
        let Some(held) = self.components[of_scan.index].held.take() else { return Ok(None) };
        if !held.wants(scan) {
            self.components[of_scan.index].held = Some(held);
            return Ok(None);
        }
        let Some(table) = self.ac_table(of_scan.ac_table) else {
            self.components[of_scan.index].held = Some(held);
            return Ok(None);
        };
        let (band, low, may_pass) = (scan.band.clone(), scan.low, !held.has_history());
        let (read, mut held) = if scan.high == 0 {
            let mut blocks = AcFirst { table, held, band, low, ended: 0 };
            (grid.walk(data, may_pass, is_late, &mut blocks), blocks.held)
        } else {
            let mut blocks = AcRefinement { table, held, band, low, ended: 0 };
            (grid.walk(data, may_pass, is_late, &mut blocks), blocks.held)
        };
        held.note(scan);
        self.components[of_scan.index].held = Some(held);
        read.map(Some)
    }

    fn grid(&self, scan: &Scan) -> Grid {
        let largest = largest_sampling(self.frame);
        let mcus =
            (self.frame.width.div_ceil(8 * largest.0), self.frame.height.div_ceil(8 * largest.1));
        let alone = scan.components.len() == 1;
        let lane = |index: usize| {
            let Component { part, sampling, .. } = &self.components[index];
            Lane {
                size: if alone { (1, 1) } else { *sampling },
                columns: part.columns,
                rows: part.rows,
            }
        };
        Grid {
            // A component alone has MCUs of one block, and none that show nothing.
            size: if alone { self.components[scan.components[0].index].blocks } else { mcus },
            lanes: scan.components.iter().map(|of_scan| lane(of_scan.index)).collect(),
            restart_interval: self.restart_interval,
        }
    }

    fn sequential(&mut self, scan: &Scan) -> Option<Decoders> {
        let mut tables = Vec::new();
        for of_scan in &scan.components {
            let factors = self.components[of_scan.index].factors?;
            tables.push((
                self.dc_table(of_scan.dc_table)?,
                self.ac_table(of_scan.ac_table)?,
                factors,
            ));
        }
        let mut decoders = Vec::new();
        for ((dc, ac, factors), of_scan) in tables.into_iter().zip(&scan.components) {
            let component = &mut self.components[of_scan.index];
            decoders.push(sequential::Decoder {
                dc,
                ac,
                factors,
                needed: Needed::new(component.part.n),
                inverse: Inverse::new(component.part.n),
                plane: component.plane.take()?,
                prediction: 0,
            });
        }
        Some(Decoders(decoders))
    }

    fn dc_scan(&mut self, scan: &Scan) -> Option<DcScan> {
        let mut tables = Vec::new();
        for of_scan in &scan.components {
            tables.push(if scan.high == 0 { Some(self.dc_table(of_scan.dc_table)?) } else { None });
        }
        let mut lanes = Vec::new();
        for (table, of_scan) in tables.into_iter().zip(&scan.components) {
            lanes.push(DcLane {
                table,
                held: self.components[of_scan.index].held.take()?,
                prediction: 0,
            });
        }
        Some(DcScan { lanes, low: scan.low })
    }

    fn dc_table(&mut self, number: usize) -> Option<Rc<DcTable>> {
        let Table { codes, made } = self.dc_tables.get_mut(number)?.as_mut()?;
        Some(made.get_or_insert_with(|| Rc::new(DcTable::new(codes.clone()))).clone())
    }

    fn ac_table(&mut self, number: usize) -> Option<Rc<AcTable>> {
        let coding =
            if self.frame.marker == PROGRESSIVE { Coding::Progressive } else { Coding::Sequential };
        let Table { codes, made } = self.ac_tables.get_mut(number)?.as_mut()?;
        Some(made.get_or_insert_with(|| Rc::new(AcTable::new(codes.clone(), coding))).clone())
    }

    /// Makes samples of all that is held.
    fn put_held(&mut self, is_late: &dyn Fn() -> bool) -> Result<(), Late> {
        for component in &mut self.components {
            let Component {
                part,
                factors: Some(factors),
                plane: Some(plane),
                held: Some(held),
                ..
            } = component
            else {
                continue;
            };
            held.put(factors, &Inverse::new(part.n), part, plane, is_late)?;
        }
        Ok(())
    }
}

/// The frame of a progressive picture with Huffman coding.
const PROGRESSIVE: u8 = 0xC2;

/// How large a step of a coefficient may be, at quantization 1, before the bits below it are read.
/// Eight is one level of a sample.
fn slack(component: usize) -> f32 {
    if component == 0 { LUMINANCE_SLACK } else { CHROMINANCE_SLACK }
}
