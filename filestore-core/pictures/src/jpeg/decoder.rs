//! Processes a file's tables and scans, for sequential and progressive frames.

use std::rc::Rc;

use super::block::{Inverse, Needed, Plane};
use super::huffman::{AcTable, Codes, Coding, DcTable, END};
use super::markers::{
    Class, Frame, FrameComponent, Item, PROGRESSIVE, Scan, Segments, huffman_tables,
    quantization_tables,
};
use super::progressive::{AcFirst, AcRefinement, DcComponent, DcScan, Held};
use super::scale::{Part, largest_sampling};
use super::sequential::{self, Decoders};
use super::standard;
use super::walk::{ComponentGrid, Grid, Late, Unwanted};
use crate::pixels::Model;

/// The [`slack`] of luminance.
const LUMINANCE_SLACK: f32 = 12.0;
/// The [`slack`] of chrominance, which WebP keeps at half the size.
const CHROMINANCE_SLACK: f32 = 16.0;
/// The maximum number of tables of each kind.
const TABLES: usize = 4;

/// The decoder's state between scans.
pub(super) struct Decoder<'a> {
    frame: &'a Frame,
    model: Model,
    segments: &'a Segments,
    file: &'a [u8],
    quantization: [Option<[u16; END]>; TABLES],
    dc_tables: [Option<Table<DcTable>>; TABLES],
    ac_tables: [Option<Table<AcTable>>; TABLES],
    restart_interval: usize,
    components: Vec<Component>,
}

/// A Huffman table, built when the first scan needs it.
struct Table<T> {
    /// The codes. `None` if the segment's codes do not fit.
    codes: Option<Codes>,
    made: Option<Rc<T>>,
}

struct Component {
    part: Part,
    sampling: (u32, u32),
    /// The number of visible blocks, across and down.
    blocks: (u32, u32),
    /// Dequantization in zigzag order, set by the first scan. Zeros follow the block's end.
    factors: Option<[f32; 2 * END]>,
    /// The decoded samples. `None` while a scan works on them.
    plane: Option<Plane>,
    /// The coefficients of a progressive frame. `None` while a scan works on them.
    held: Option<Held>,
}

impl Component {
    fn new(frame: &Frame, component: FrameComponent, part: Part) -> Self {
        let largest = largest_sampling(frame);
        let sampling = (u32::from(component.h), u32::from(component.v));
        let blocks = (
            (frame.width * sampling.0).div_ceil(8 * largest.0),
            (frame.height * sampling.1).div_ceil(8 * largest.1),
        );
        let held = (frame.marker == PROGRESSIVE)
            .then(|| Held::new((blocks.0, part.rows.1.min(blocks.1)), part.n));

        Self { part, sampling, blocks, factors: None, plane: Some(Plane::new(part)), held }
    }
}

impl<'a> Decoder<'a> {
    /// Prepares to decode `parts` of the frame's components. `frame` belongs to `segments`. `model` names the
    /// components.
    pub(super) fn new(
        frame: &'a Frame,
        model: Model,
        parts: &[Part],
        segments: &'a Segments,
        file: &'a [u8],
    ) -> Self {
        let components = frame.components.iter().zip(parts);
        Self {
            frame,
            model,
            segments,
            file,
            quantization: [None; TABLES],
            dc_tables: [const { None }; TABLES],
            ac_tables: [const { None }; TABLES],
            restart_interval: 0,
            components: components
                .map(|(component, part)| Component::new(frame, *component, *part))
                .collect(),
        }
    }

    /// Decodes the samples of each component for its part. `None` if the file has no data.
    pub(super) fn run(mut self, is_late: &dyn Fn() -> bool) -> Result<Option<Vec<Vec<u8>>>, Late> {
        let segments = self.segments;
        let mut read = 0;
        for item in &segments.items {
            match item {
                Item::Quantization(range) => self.set_quantization(&self.file[range.clone()]),
                Item::Huffman(range) => self.set_codes(&self.file[range.clone()]),
                Item::RestartInterval(interval) => self.restart_interval = *interval,
                Item::Scan(scan) => {
                    self.set_missing_codes();
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
        let planes = self.components.into_iter().filter_map(|component| component.plane);
        Ok(Some(planes.map(|plane| plane.samples).collect()))
    }

    fn set_quantization(&mut self, payload: &[u8]) {
        quantization_tables(payload, |number, values| {
            if let Some(table) = self.quantization.get_mut(number) {
                *table = Some(values);
            }
        });
    }

    fn set_codes(&mut self, payload: &[u8]) {
        huffman_tables(payload, |class, number, counts, symbols| {
            let codes = Codes::new(counts, symbols);
            match class {
                Class::Dc => set_table(&mut self.dc_tables, number, codes),
                Class::Ac => set_table(&mut self.ac_tables, number, codes),
            }
        });
    }

    /// Uses the standard tables for all tables that no segment has set. This is only for sequential frames,
    /// because the bands of progressive frames need codes that the standard tables lack.
    fn set_missing_codes(&mut self) {
        if self.frame.marker == PROGRESSIVE {
            return;
        }

        for (number, table) in self.dc_tables.iter_mut().enumerate().filter(|(_, t)| t.is_none()) {
            *table = standard::dc(number).map(|codes| Table { codes: Some(codes), made: None });
        }
        for (number, table) in self.ac_tables.iter_mut().enumerate().filter(|(_, t)| t.is_none()) {
            *table = standard::ac(number).map(|codes| Table { codes: Some(codes), made: None });
        }
    }

    /// Sets the quantization for the components in a scan. Each component keeps the table of its first scan.
    fn latch_factors(&mut self, scan: &Scan) {
        for of_scan in &scan.components {
            let index = of_scan.index;
            let table = usize::from(self.frame.components[index].table);
            let component = &mut self.components[index];
            let (None, Some(Some(values))) = (component.factors, self.quantization.get(table))
            else {
                continue;
            };

            let mut factors = [0.0; 2 * END];
            for (factor, value) in factors.iter_mut().zip(values) {
                *factor = f32::from(*value);
            }
            component.factors = Some(factors);

            if let Some(held) = &mut component.held {
                let scans = self.segments.scans().filter(|scan| has_component(scan, index));
                let slack = if component.part.n == 8 { 0.0 } else { slack(self.model, index) };
                held.choose(scans, &factors, slack);
            }
        }
    }

    /// Reads a scan if it is needed and all its tables are present. Returns the number of MCUs read.
    fn scan(&mut self, scan: &Scan, is_late: &dyn Fn() -> bool) -> Result<Option<usize>, Late> {
        if self.frame.marker != PROGRESSIVE {
            self.sequential_scan(scan, is_late)
        } else if scan.band.start == 0 {
            self.dc_scan(scan, is_late)
        } else {
            self.ac_scan(scan, is_late)
        }
    }

    fn sequential_scan(
        &mut self,
        scan: &Scan,
        is_late: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Late> {
        let Some(mut decoders) = self.sequential_decoders(scan) else { return Ok(None) };
        let data = &self.file[scan.data.clone()];
        let read = self.grid(scan).walk(data, Unwanted::Skipped, is_late, &mut decoders);

        for (decoder, of_scan) in decoders.0.into_iter().zip(&scan.components) {
            self.components[of_scan.index].plane = Some(decoder.plane);
        }
        read.map(Some)
    }

    fn dc_scan(&mut self, scan: &Scan, is_late: &dyn Fn() -> bool) -> Result<Option<usize>, Late> {
        let Some(mut dc) = self.dc_components(scan) else { return Ok(None) };
        let data = &self.file[scan.data.clone()];
        let read = self.grid(scan).walk(data, Unwanted::Skipped, is_late, &mut dc);

        for (component, of_scan) in dc.components.into_iter().zip(&scan.components) {
            self.components[of_scan.index].held = Some(component.held);
        }
        read.map(Some)
    }

    fn ac_scan(&mut self, scan: &Scan, is_late: &dyn Fn() -> bool) -> Result<Option<usize>, Late> {
        let of_scan = scan.components[0];
        if !self.components[of_scan.index].held.as_ref().is_some_and(|held| held.wants(scan)) {
            return Ok(None);
        }
        let Some(table) = self.ac_table(of_scan.ac_table) else { return Ok(None) };
        let Some(held) = self.components[of_scan.index].held.take() else { return Ok(None) };

        let data = &self.file[scan.data.clone()];
        let grid = self.grid(scan);
        let unwanted = if held.has_history() { Unwanted::Read } else { Unwanted::Skipped };
        let (band, low) = (scan.band.clone(), scan.low);
        let (read, mut held) = if scan.high == 0 {
            let mut blocks = AcFirst { table, held, band, low, ended: 0 };
            (grid.walk(data, unwanted, is_late, &mut blocks), blocks.held)
        } else {
            let mut blocks = AcRefinement { table, held, band, low, ended: 0 };
            (grid.walk(data, unwanted, is_late, &mut blocks), blocks.held)
        };

        held.note(scan);
        self.components[of_scan.index].held = Some(held);
        read.map(Some)
    }

    fn grid(&self, scan: &Scan) -> Grid {
        let is_alone = scan.components.len() == 1;
        let components = scan.components.iter().map(|of_scan| {
            let Component { part, sampling, .. } = &self.components[of_scan.index];
            ComponentGrid {
                size: if is_alone { (1, 1) } else { *sampling },
                columns: part.columns,
                rows: part.rows,
            }
        });

        let largest = largest_sampling(self.frame);
        let mcus =
            (self.frame.width.div_ceil(8 * largest.0), self.frame.height.div_ceil(8 * largest.1));
        Grid {
            // A component alone has MCUs of one block, and none that show nothing.
            size: if is_alone { self.components[scan.components[0].index].blocks } else { mcus },
            components: components.collect(),
            restart_interval: self.restart_interval,
        }
    }

    /// Takes the planes of a scan's components. If a table is missing, returns `None` and takes no plane.
    fn sequential_decoders(&mut self, scan: &Scan) -> Option<Decoders> {
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

    /// Takes the coefficients of a scan's components. If a table is missing, returns `None` and takes none.
    fn dc_components(&mut self, scan: &Scan) -> Option<DcScan> {
        let mut tables = Vec::new();
        for of_scan in &scan.components {
            tables.push(if scan.high == 0 { Some(self.dc_table(of_scan.dc_table)?) } else { None });
        }

        let mut components = Vec::new();
        for (table, of_scan) in tables.into_iter().zip(&scan.components) {
            let held = self.components[of_scan.index].held.take()?;
            components.push(DcComponent { table, held, prediction: 0 });
        }
        Some(DcScan { components, low: scan.low })
    }

    fn dc_table(&mut self, number: usize) -> Option<Rc<DcTable>> {
        let Table { codes, made } = self.dc_tables.get_mut(number)?.as_mut()?;
        let codes = codes.as_ref()?;
        Some(made.get_or_insert_with(|| Rc::new(DcTable::new(codes.clone()))).clone())
    }

    fn ac_table(&mut self, number: usize) -> Option<Rc<AcTable>> {
        let coding =
            if self.frame.marker == PROGRESSIVE { Coding::Progressive } else { Coding::Sequential };
        let Table { codes, made } = self.ac_tables.get_mut(number)?.as_mut()?;
        let codes = codes.as_ref()?;
        Some(made.get_or_insert_with(|| Rc::new(AcTable::new(codes.clone(), coding))).clone())
    }

    /// Computes samples from all held coefficients.
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

/// Replaces a table. If the codes do not fit, the table counts as missing.
fn set_table<T>(tables: &mut [Option<Table<T>>], number: usize, codes: Option<Codes>) {
    if let Some(table) = tables.get_mut(number) {
        *table = Some(Table { codes, made: None });
    }
}

fn has_component(scan: &Scan, index: usize) -> bool {
    scan.components.iter().any(|other| other.index == index)
}

/// Returns the largest error that a coefficient can have at quantization 1. Scans do not read the bits below
/// this step. Eight is one level of a sample.
fn slack(model: Model, component: usize) -> f32 {
    if model.is_chrominance(component) { CHROMINANCE_SLACK } else { LUMINANCE_SLACK }
}
