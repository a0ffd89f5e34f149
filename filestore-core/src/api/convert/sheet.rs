//! The map of a contact sheet.

use crate::api::{SheetCell, SheetMap};
use crate::variant::Sheet;

impl From<&Sheet> for SheetMap {
    /// Converts a sheet. An empty cell gets the details of its error, for callers with access.
    fn from(sheet: &Sheet) -> Self {
        let cells = sheet.cells.iter().map(|cell| {
            let id = cell.file_id.to_string();
            match &cell.shown {
                Ok(place) => SheetCell::shown(id, place.x, place.y, place.width, place.height),
                Err(error) => SheetCell::empty(id, error.kind(), error.message()),
            }
        });
        let grid = sheet.grid;
        Self::new(grid.cell(), grid.columns(), grid.rows(), cells.collect())
    }
}
